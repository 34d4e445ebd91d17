"""Run commands in forks of this process, which imports everything once; each may be disturbed at a chosen point.

Reads scenarios as JSON from its arguments' file, runs them in order, and prints for each one line of JSON: the signal that ended
it, its exit code, the state of its run, what it said, and how many points it has. A point is a call that opens, makes, renames
or removes something in a folder; disturbances begin at a point, before the call.

A scenario has a ``folder`` to work in, a ``command``, its ``disturbances`` (folder in it, kind, and where it begins: a share of
the points of the undisturbed command, which has to come first), ``copy``: what the folder is made from, and ``warm up``: true for
one that is run in this very process.
"""

import contextlib
import errno
import gc
import io
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from pathlib import Path

WATCHED = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod"}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Disturbance:
    """An audit hook.

    Args:
        folder: Whose points count.
        kind: ``kill`` (SIGKILL), ``stop`` (SIGTERM), ``full`` (no space left from then on), ``read-only``, or None: only count.
        at: From 1: the point where it begins.
    """

    def __init__(self, folder, kind, at):
        self.folder = str(Path(folder).absolute())
        self.kind, self.at = kind, at
        self.points = 0
        self.armed = True

    def install(self):
        sys.addaudithook(self.hook)
        if self.kind == "full" and self.folder == str(Path.cwd()):
            fsync = os.fsync

            def full(file):
                if self.points >= self.at:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                fsync(file)

            os.fsync = full

    def hook(self, event, arguments):
        if not self.armed or event not in WATCHED or not self.is_inside(arguments[0]):
            return
        self.points += 1
        if self.points == self.at and self.kind in ("kill", "stop"):
            os.kill(os.getpid(), signal.SIGKILL if self.kind == "kill" else signal.SIGTERM)
        if self.points >= self.at and self.refuses(event, arguments):
            code = errno.EROFS if self.kind == "read-only" else errno.ENOSPC
            raise OSError(code, os.strerror(code), os.fspath(arguments[0]))

    def refuses(self, event, arguments):
        makes = event == "os.mkdir" or (event == "open" and bool(arguments[2] & WRITING))
        return makes if self.kind == "full" else self.kind == "read-only" and (makes or event != "open")

    def is_inside(self, path):
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        path = str(Path(os.fsdecode(path)).absolute())
        return path == self.folder or path.startswith(self.folder + os.sep)


def run(arguments):
    """A command line as the console script runs it; ``interpolate`` stands for the function, which writes nothing."""
    if arguments[0] == "interpolate":
        from crossgraft import interpolate

        settings = {"alphas": (0.0, 0.5, 1.0), "allow_code": "tiny_models:tiny", "device": "cpu", "workers": 1}
        found = interpolate(arguments[1], "images", linear=arguments[2], **settings)
        print(found.to_json())
        return 0
    from crossgraft.cli.main import run as run_and_exit

    try:
        run_and_exit(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


def enter(scenario):
    """The folder of a scenario, with its own store; a copy where that is asked."""
    if scenario.get("copy"):
        shutil.copytree(scenario["copy"], scenario["folder"])
    os.chdir(scenario["folder"])
    os.environ["CROSSGRAFT_CACHE"] = str(Path("store").absolute())


def play(scenario, disturbances, said, answer):
    """In a fork: the command with its disturbances; what it says and how it ended goes into files."""
    enter(scenario)
    said = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    for number in (signal.SIGTERM, signal.SIGHUP):  # handlers of the commands that were run before
        signal.signal(number, signal.SIG_DFL)
    disturbances = [Disturbance(*each) for each in disturbances]
    for disturbance in disturbances:
        disturbance.install()
    code = run(scenario["command"])
    for disturbance in disturbances:
        disturbance.armed = False
    answer.write_text(json.dumps({"code": code, "points": [each.points for each in disturbances]}))


def in_fork(scenario, points_of):
    command = json.dumps(scenario["command"])
    disturbances = [
        (folder, kind, 1 + int(share * points_of.get(command, 0))) for folder, kind, share in scenario["disturbances"]
    ]
    said, answer = Path(sys.argv[1]).with_suffix(".said"), Path(sys.argv[1]).with_suffix(".answer")
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            play(scenario, disturbances, said, answer)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    found = json.loads(answer.read_text()) if answer.exists() else {"code": None, "points": []}
    if [kind for _, kind, _ in disturbances] == [None]:
        points_of[command] = found["points"][0]
    record = Path(scenario["folder"], "run", "run.json")
    state = json.loads(record.read_text())["state"] if record.is_file() else None
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"signal": ended, "state": state, "said": said.read_text(), **found}


def main():
    scenarios, points_of = json.loads(Path(sys.argv[1]).read_text()), {}
    for scenario in scenarios:
        if scenario.get("warm up"):  # in this process, so that what it imports is there for all
            enter(scenario)
            with contextlib.redirect_stdout(io.StringIO()):
                code = run(scenario["command"])
            print(json.dumps({"signal": 0, "code": code, "said": ""}), flush=True)
            gc.freeze()  # a collection in a fork would copy every page
            assert threading.active_count() == 1, threading.enumerate()
        else:
            print(json.dumps(in_fork(scenario, points_of)), flush=True)


if __name__ == "__main__":
    main()
