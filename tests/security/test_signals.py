"""SIGTERM and SIGHUP end a command as Ctrl-C does, child processes too; a program that imports crossgraft keeps its handlers."""

import json
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from crossgraft.cli import main as cli
from crossgraft.cli.main import StopSignals
from crossgraft.stopping import ask_to_end
from support import forked
from support.tiny import make_workspace

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")


@pytest.fixture(autouse=True)
def default_handlers():
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    yield
    ask_to_end(None)
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_exit_code_is_that_of_the_signal(monkeypatch, number):
    def main(_):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        return cli.EXIT_INTERRUPTED

    monkeypatch.setattr(cli, "main", main)
    with pytest.raises(SystemExit) as ended:
        cli.run([])
    assert ended.value.code == 128 + number


def test_a_signal_decides_the_code_however_the_command_ended():
    signals = StopSignals()
    assert [signals.exit_code(code) for code in (0, 1, 3, 130)] == [0, 1, 3, 130]
    ask_to_end(signal.SIGTERM)
    ask_to_end(signal.SIGINT)
    assert {signals.exit_code(code) for code in (0, 1, 3, 130)} == {143}


def test_a_signal_that_is_ignored_stays_so():
    """``nohup crossgraft tune …`` survives the terminal."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    StopSignals().install()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    signal.raise_signal(signal.SIGHUP)


def test_a_program_that_calls_main_keeps_its_handlers(capsys):
    assert cli.main(["--version"]) == 0
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


def test_what_is_said_after_a_hangup_goes_nowhere(monkeypatch):
    signals = StopSignals()
    reader, writer = os.pipe()
    signals._terminals = [writer]
    signals.install()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGHUP)
    os.write(writer, b"a line for a terminal that is gone")
    os.close(writer)
    assert os.read(reader, 10) == b""
    os.close(reader)


WHILE_A_TEXT_IS_EXECUTED = """
import signal
from crossgraft.cli import main as cli

cli.main = lambda _: exec("signal.raise_signal(signal.SIGHUP)")
cli.run([])
"""


def test_a_signal_while_a_text_is_executed_ends_a_module_with_its_own_code(tmp_path):
    (tmp_path / "program.py").write_text(WHILE_A_TEXT_IS_EXECUTED)
    done = begin("-m", "program", folder=tmp_path)
    assert (done.returncode, done.stderr) == (128 + signal.SIGHUP, "")


IN_A_DESTRUCTOR = """
import signal
from crossgraft.cli import main as cli

class Thing:
    def __del__(self):
        {}

cli.main = lambda _: len(str(Thing()))
cli.run([])
"""


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [("signal.raise_signal(signal.SIGHUP)", 128 + signal.SIGHUP, ""), ("raise KeyError('other')", None, "KeyError: 'other'")],
)
def test_a_signal_in_a_destructor_ends_the_command_without_a_traceback(tmp_path, line, code, said):
    """Python cannot raise there, and says so: of an error it must, of a signal the code of the command tells."""
    (tmp_path / "program.py").write_text(IN_A_DESTRUCTOR.format(line))
    done = begin("-m", "program", folder=tmp_path)
    assert code in (None, done.returncode)
    assert said in done.stderr if said else not done.stderr


WHILE_THE_COMMAND_IS_IMPORTED = """
import signal
import sys

class Finder:
    def find_spec(self, name, *_):
        if name == "crossgraft.cli.main":
            signal.raise_signal(int(sys.argv[1]))

sys.meta_path.insert(0, Finder())
from crossgraft.__main__ import run

run()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_before_the_command_has_begun_ends_it_without_a_word(number, tmp_path):
    done = begin("-c", WHILE_THE_COMMAND_IS_IMPORTED, str(int(number)), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")  # 128 + number for a shell


def begin(*words, folder):
    def no_signal_is_ignored():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=no_signal_is_ignored,
    )


def training_in(folder):
    """Words of ``tune --devices 2`` with a network of a module beside the zoo file."""
    make_workspace(folder)
    zoo = folder / "zoo.yaml"
    zoo.write_text(zoo.read_text().strip().splitlines()[0] + "\n")  # one model
    network = ("--model", "zoo.yaml", "--code", "tiny_models.py", "--method", "partial:1")
    processes = ("--devices", "2", "--device", "cpu", "--workers", "2")
    long = ("--batch-size", "4", "--epochs", "100000", "--no-images", "--no-store", "--out", "run")
    return ["tune", "images", *network, *processes, *long]


def start_training(folder):
    """From a folder where Python does not look."""
    script = "import sys; sys.path.remove(''); from crossgraft.cli.main import run; run(sys.argv[1:])"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", script, *training_in(folder)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_checkpoint(training, folder):
    process = psutil.Process(training.pid)
    while not list(folder.glob("run/jobs/only/checkpoint/checkpoint.safetensors")):
        assert process.is_running() and process.status() != psutil.STATUS_ZOMBIE, training
        time.sleep(0.1)
    return process.children(recursive=True)


@pytest.mark.slow
def test_processes_of_a_training_find_a_network_beside_the_zoo_file_and_end_with_the_first(tmp_path):
    training = start_training(tmp_path)
    try:
        children = wait_for_checkpoint(training, tmp_path)
        assert len(children) >= 2
        os.killpg(training.pid, signal.SIGTERM)  # as a job scheduler does: to all of them
        _, said = training.communicate(timeout=120)
        assert training.returncode == 128 + signal.SIGTERM, said
        assert "Interrupted. What was finished is kept" in said
        assert json.loads((tmp_path / "run" / "run.json").read_text())["state"] == "interrupted"
        assert psutil.wait_procs(children, timeout=60)[1] == []
    finally:
        training.kill()


@pytest.mark.slow
@pytest.mark.xdist_group(forked.GROUP)
def test_processes_of_a_killed_training_end_by_themselves(tmp_path):
    training = forked.start("crossgraft", *training_in(tmp_path), environment=os.environ, cwd=tmp_path)
    try:
        children = wait_for_checkpoint(training, tmp_path)
        assert len(children) >= 2
        training.kill()
        training.join()
        assert psutil.wait_procs(children, timeout=60)[1] == []
    finally:
        training.kill()


POOL = """
import sys, time
from pathlib import Path
from crossgraft.cli import main as cli
from crossgraft.running.jobs import worker_pool

def work(_):
    with worker_pool(2) as pool:
        said = "__import__('pathlib').Path('begun').touch() or __import__('time').sleep(1)"
        jobs = [pool.submit(eval, said) for _ in range(600)]
        try:
            jobs[-1].result()
        finally:
            [job.cancel() for job in jobs]

cli._run = work
cli.run([])
"""


@pytest.mark.slow
def test_workers_of_the_demo_end_with_the_first(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    demo = subprocess.Popen(
        [sys.executable, "-c", POOL], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        while not (tmp_path / "begun").exists():
            assert demo.poll() is None, demo.communicate()
            time.sleep(0.1)
        workers = psutil.Process(demo.pid).children(recursive=True)
        os.killpg(demo.pid, signal.SIGTERM)
        _, said = demo.communicate(timeout=120)
        assert demo.returncode == 128 + signal.SIGTERM, said
        assert psutil.wait_procs(workers, timeout=60)[1] == []
    finally:
        demo.kill()
