"""Send signals at random times to real commands, and run each again to its end: ``python -m support.random_signals --help``.

Each row is one trial: a command in a folder of its own, a signal at a time drawn evenly over the time that the command takes
undisturbed, and the same command again. Rows go to a CSV file; a second call goes on behind the last one.
"""

import argparse
import csv
import gc
import hashlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import pandas as pd
import psutil

import crossgraft
from freeze.collecting import collect
from freeze.comparing import differences
from support.forked import PRELOADED as VERBS_PRELOADED
from support.tiny import make_images, make_workspace

CODE = ("--code", "tiny_models.py")
ONE = ("--device", "cpu", "--workers", "1")
NARROW = ("--model", "zoo.yaml:narrow")
TUNE = ("tune", "images", *NARROW, *CODE, "--epochs", "2", *ONE)
FINISHED = {"full": TUNE, "linear": (*TUNE, "--method", "linear")}
SHOTS = ("--sampler", "n_way_k_shot:ways=2,shots=2", "--episodes", "8", "--heads", "ncc,copa:steps=2")
COMMANDS = {
    "check": ("check", "images", "--workers", "2", "--out", "out"),
    "split": ("split", "images", "--out", "out.json"),
    "rank": ("rank", "images", "--models", "zoo.yaml", *CODE, *ONE, "--out", "out"),
    "select": ("select", "images", "--models", "zoo.yaml", *CODE, "--epochs", "2", *ONE, "--out", "out"),
    "tune": (*TUNE, "--checkpoint-every", "1", "--out", "out"),
    "tune-compare": (*TUNE, "--compare", "linear,l2_sp:1", "--out", "out"),
    "predict": ("predict", "full", "new", *CODE, *ONE, "--out", "out"),
    "fewshot": ("fewshot", "images", *NARROW, *CODE, *SHOTS, *ONE, "--out", "out"),
    "distil": ("distil", "full", "linear", "--data", "images,images", "--names", "one,two", "--steps", "4",
               "--batch-size", "4", "--model", "zoo.yaml:wide", *CODE, *ONE, "--out", "out"),
    "interpolate": ("interpolate", "full", "images", "--linear", "linear", "--alphas", "0,0.5,1", *CODE, *ONE,
                    "--out", "out"),
    "compare": ("compare", "full", "linear", "--data", "images", *CODE, *ONE, "--out", "out"),
    "audit": ("audit", "full", "--data", "images", "--confounder", "tag", *CODE, *ONE, "--out", "out"),
    "audit-sweep": ("audit", "zoo.yaml", "--data", "images", "--shares", "0,0.5,1", "--folds", "2", *CODE, *ONE,
                    "--out", "out"),
    "edit": ("edit", "images", "out", "--with", "tag"),
    "export": ("export", "full", *CODE, "--format", "torch", "--out", "out"),
    "report": ("report", "full", "linear", "--out", "out.html"),
    "list": ("list", "confounders", "--data", "images", "--out", "out.html"),
    "completion": ("completion", "bash"),
    "demo": ("demo", "--toy", "--fast", "--out", "out"),
}  # fmt: skip
PRELOADED = [
    *VERBS_PRELOADED,
    *(f"crossgraft.{path.parent.name}.verb" for path in Path(crossgraft.__file__).parent.glob("*/verb.py")),
    *("crossgraft.demo", "matplotlib.backends.backend_agg", "sklearn.manifold", "scipy.optimize"),
]
NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
COSTS = re.compile("second|_at$|peak_bytes|resumed|from_cache|command_line")
COLUMNS = ("trial", "command", "start", "signal", "to", "at", "of", "code", "again", "wrong")
OURS = ("out", "out.json", "out.html", "cache", "known", "runs")
LIMIT_SECONDS = 300
EXIT_USAGE, EXIT_LOST, EXIT_INTERRUPTED = 2, 99, 130


class Program(subprocess.Popen):
    """A command as a user starts it."""

    def __init__(self, words, folder, environment, said):
        super().__init__(
            [sys.executable, "-m", "crossgraft", *words], cwd=folder, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said,
        )  # fmt: skip


class Fork:
    """A command that begins at once, in a fork of this process, which has imported what it needs."""

    def __init__(self, words, folder, environment, said):
        sys.stdout.flush()
        self.code = None
        waiting, ready = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            code = EXIT_LOST
            try:
                os.setsid()
                os.close(ready)
                nowhere = os.open(os.devnull, os.O_RDWR)
                for target, source in enumerate((nowhere, nowhere, said.fileno())):
                    os.dup2(source, target)
                os.chdir(folder)
                os.environ.clear()
                os.environ.update(environment)
                sys.path.insert(0, str(folder))
                from crossgraft.cli.main import run

                run(list(words))
            except SystemExit as ended:
                code = int(ended.code or 0)
            except KeyboardInterrupt:  # before the command set its handlers
                code = EXIT_INTERRUPTED
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(ready)
        os.read(waiting, 1)  # its group is there: signals can be sent to it
        os.close(waiting)

    def wait(self, seconds):
        """As of a program."""
        end = time.monotonic() + seconds
        while self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise subprocess.TimeoutExpired("fork", seconds)
            else:
                time.sleep(0.002)
        return self.code


class Stage:
    """Folders to run commands in, each a copy of the same one."""

    def __init__(self, root, *, forks):
        self.root, self.forks, self.start = root, forks, "fork" if forks else "program"
        self.base = root / "base"
        if not (root / "ready").exists():
            shutil.rmtree(self.base, ignore_errors=True)
            self.base.mkdir(parents=True)
            make_workspace(self.base)
            make_images(self.base / "new", {"benign": 3, "malignant": 3})
            for name, words in FINISHED.items():
                code, said, _ = self.run((*words, "--out", name), self.base)
                assert code == 0, said
            (root / "ready").touch()
        self.before = contents(self.base)

    def whole(self, name):
        """The command undisturbed: its exit code, what it leaves, and its seconds."""
        place = self.root / f"whole-{self.start}-{name}"
        note = place.with_suffix(".json")
        if not note.exists():
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.base, place)
            code, said, seconds = self.run(COMMANDS[name], place, forks=self.forks)
            assert code == 0, f"{name} {code} {said}"
            note.write_text(json.dumps({"code": code, "seconds": seconds}))
        noted = json.loads(note.read_text())
        return noted["code"], left(place), noted["seconds"]

    def run(self, words, folder, *, forks=True, strike=None):
        """Exit code as a shell says it, what was said on stderr, seconds; ``strike``: seconds, signal, to the group?"""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CROSSGRAFT_")}
        environment |= {"OMP_NUM_THREADS": "1", "CROSSGRAFT_CACHE": str(folder / "cache"), "HOME": str(folder)}
        environment |= {"MPLCONFIGDIR": str(self.root / "matplotlib"), "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
        began = time.monotonic()
        with (folder.parent / f"{folder.name}.err").open("w+") as said:
            process = (Fork if forks else Program)(words, folder, environment, said)
            if strike is not None:
                seconds, number, to_group = strike
                try:
                    process.wait(seconds)
                except subprocess.TimeoutExpired:
                    (os.killpg if to_group else os.kill)(process.pid, number)
            try:
                code = process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                code = process.wait(LIMIT_SECONDS)
            took = time.monotonic() - began
            left_behind = still_there(process.pid)
            said.seek(0)
            text = said.read() + "".join(f"\nleft behind: {each}" for each in left_behind)
        return (128 - code if code < 0 else code), text, took

    def trial(self, number, seed):
        """One row."""
        draw = random.Random(f"{seed} {self.forks} {number}")
        quick = [each for each in COMMANDS if each != "demo"]  # which runs all of them, for a minute
        name = "demo" if number in range(236, 240) else quick[number % len(quick)]
        code_whole, values, seconds = self.whole(name)
        number_sent, to_group = draw.choice(NUMBERS), draw.random() < 0.5
        at = draw.random() * seconds
        place = self.root / f"trial-{self.start}-{number}"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self.base, place)
        code, said, _ = self.run(COMMANDS[name], place, forks=self.forks, strike=(at, number_sent, to_group))
        wrong = []
        if code not in (code_whole, 128 + number_sent):
            wrong.append(f"exit {code}")
        wrong += [line for line in ("Traceback", "Internal error", "left behind", "Exception ignored") if line in said]
        wrong += [f"changed {each}" for each in changed(self.before, contents(place))]
        if code == code_whole:
            wrong += [f"done: {each}" for each in compared(name, values, left(place))]
        else:
            wrong += half_written(place)
        if said and (wrong or code not in (code_whole,)):
            (self.root / f"said-{self.start}-{number}.txt").write_text(said)
        again, said_again, _ = self.run(COMMANDS[name], place)
        if code == code_whole and again == EXIT_USAGE and "--overwrite" in said_again:
            pass  # it was done, and says that it replaces nothing unasked
        elif again != code_whole:
            wrong.append(f"again {again}: {said_again[-300:]}")
        else:
            wrong += [f"again: {each}" for each in compared(name, values, left(place))]
        wrong += [f"litter {each}" for each in litter(place)]
        if not wrong:
            shutil.rmtree(place)
        to = "group" if to_group else "one"
        found = (number, name, self.start, number_sent.name, to, round(at, 3), round(seconds, 3), code, again)
        return dict(zip(COLUMNS, (*found, " | ".join(wrong)[:2000]), strict=True))


def still_there(group):
    """Processes of the command that outlive it by more than some seconds."""
    for _ in range(50):
        found = [each for each in psutil.process_iter() if in_group(each, group)]
        if not found:
            return []
        time.sleep(0.1)
    return [" ".join(each.cmdline())[:200] for each in found]


def in_group(process, group):
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False


def contents(folder):
    """Hash of each file that the command has no business with."""
    files = (path for path in folder.rglob("*") if path.is_file())
    named = {path.relative_to(folder).as_posix(): path for path in files}
    return {
        name: hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in named.items()
        if name.split("/")[0] not in OURS and "__pycache__" not in name
    }


def changed(before, now):
    return sorted({name for name in {*before, *now} if before.get(name) != now.get(name)} - {"results.jsonl"})


def left(folder):
    """The result of a command, without costs."""
    files = {}
    for name in OURS[:3]:
        if (folder / name).is_dir():
            files |= collect(folder / name)
        elif (folder / name).is_file():
            files[name] = json.loads((folder / name).read_text()) if name.endswith(".json") else "there"
    return {"exit": 0, "files": files}


def compared(name, values, now):
    for each in differences(name, values, now, how="exact"):
        if not COSTS.search(each.place) and not COSTS.search(each.file):
            yield str(each)


def half_written(folder):
    """A file is there as a whole or not at all; a run says that it was interrupted."""
    record = folder / "out" / "run.json"
    if record.is_file():
        state = json.loads(record.read_text())["state"]
        if state not in ("interrupted", "done"):
            yield f"state {state}"
    for path in (folder / "out").rglob("*"):
        if path.suffix == ".json" and path.is_file():
            json.loads(path.read_text())
        if path.suffix == ".html" and path.is_file() and not path.read_text().rstrip().endswith("</html>"):
            yield f"half a page {path.name}"
        if path.suffix == ".csv" and path.is_file() and path.stat().st_size:
            pd.read_csv(path)
    page = folder / "out.html"
    if page.is_file() and not page.read_text().rstrip().endswith("</html>"):
        yield "half a page"


def litter(folder):
    """Temporary files that are still there after the second run."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return [name for name in names if re.search(r"\.tmp|\.partial|\.crossgraft-(before|unfinished)|\.new-", name)]


def rows_of(path):
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--trials", type=int, nargs="+", default=[300], help="of each way to start")
    words.add_argument("--seed", default="300 signals")
    words.add_argument("--start", choices=("fork", "program"), nargs="+", default=["fork"], help="programs import for seconds")
    given = words.parse_args()
    root = given.folder.absolute()
    root.mkdir(parents=True, exist_ok=True)
    rows = root / "rows.csv"
    done = {(row["start"], int(row["trial"])) for row in rows_of(rows)}
    for number in NUMBERS:  # a program that is started in the background may ignore some, and so would the commands
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for module in PRELOADED:
        importlib.import_module(module)
    stages = [Stage(root, forks=start == "fork") for start in given.start]
    gc.freeze()
    with rows.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not done:
            writer.writeheader()
        for stage, trials in zip(stages, given.trials, strict=True):
            for number in range(trials):
                if (stage.start, number) in done:
                    continue
                row = stage.trial(number, given.seed)
                writer.writerow(row)
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()
