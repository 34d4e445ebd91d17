"""A process that crossgraft starts runs no module of the current folder, which may have come with the images."""

import os
import subprocess
import sys

import pytest

from crossgraft.compute import nothing_imported_unasked
from crossgraft.tune.engine import launch

POOL = """
from crossgraft.running import jobs

jobs.prepare_worker = int  # imports torch otherwise
with jobs.worker_pool(1) as pool:
    print([pool.submit(abs, -7).result()])
"""


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """The current folder, with modules that say that they were run."""
    folder = tmp_path / "images"
    folder.mkdir()
    for name in ("multiprocessing", "socket", "struct"):
        (folder / f"{name}.py").write_text("open('was_run', 'a').close()\nraise SystemExit(3)\n")
    monkeypatch.chdir(folder)
    return folder


def test_workers_of_the_demo_and_what_tidies_up_after_them(hostile, tmp_path):
    script = tmp_path / "script.py"  # with -c the current folder would be one of the parent
    script.write_text(POOL)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert not (hostile / "was_run").exists()
    assert said.stdout == "[7]\n", said.stderr


def test_processes_of_a_training(hostile, monkeypatch):
    monkeypatch.setattr(launch, "_work", print)  # imports torch otherwise
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    processes = []
    for line in launch._started(1, hostile / "weights", processes):
        processes[0].join()
        line.close()
    assert not (hostile / "was_run").exists()
    assert processes[0].exitcode == 0


@pytest.mark.parametrize("before", [None, "", "1"])
def test_processes_of_the_users_program_start_as_before(monkeypatch, before):
    script = sys.modules["__main__"]
    if before is None:
        monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONSAFEPATH", before)
    with nothing_imported_unasked():
        assert sys.modules["__main__"] is not script
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert sys.modules["__main__"] is script
    assert os.environ.get("PYTHONSAFEPATH") == before
