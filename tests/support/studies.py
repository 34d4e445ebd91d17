"""Studies of toil: run as a command of its own in a folder, or in this process."""

import os
import subprocess
import sys
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool

import pandas as pd
import pytest

from crossgraft import run_study
from support.toy_jobs import install, registered

STUDY = """\
command: toil
grid: {data: [a, bb, ccc, dddd]}
fixed: {steps: 4, step_seconds: 0.1}
settings:
  one:
  more: {bonus: 0.1}
seeds: 3
"""
NUM_JOBS = 24


class Here(Executor):
    """Does everything at once, in this thread; loses calls as it is told.

    Args:
        lost: Numbers of the calls that it loses.
    """

    def __init__(self, lost=()):
        self.lost, self.calls = set(lost), 0

    def submit(self, fn, /, *args, **kwargs):
        self.calls += 1
        future = Future()
        if self.calls in self.lost:
            future.set_exception(BrokenProcessPool("a worker is gone"))
            return future
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def undisturbed(folder):
    """The table of the study, each job of which was done at once in this process."""
    (folder / "study.yaml").write_text(STUDY.replace("step_seconds: 0.1", "step_seconds: 0"))
    with pytest.MonkeyPatch.context() as patch:
        registered(patch)
        assert run_study(folder / "study.yaml", out=folder / "out", executor=Here()).exit_code == 0
    return table_of(folder / "out")


def table_of(out):
    """Its rows without what they cost and where they were made."""
    frame = pd.read_csv(out / "results.csv")
    return frame[frame["metric"] != "begun_at"].drop(columns=["seconds", "peak_mb", "run"]).reset_index(drop=True)


class Place:
    """A folder with a study in it, and an environment that has its command."""

    def __init__(self, folder, study=STUDY, **environment):
        self.folder = folder
        own = {"PYTHONPATH": install(folder / "site"), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
        self.environment = {**os.environ, **environment, **own}
        (folder / "study.yaml").write_text(study)

    def start(self, *flags, out="out"):
        command = [sys.executable, "-m", "crossgraft", "bench", "study.yaml", "--out", out, *flags]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ended(self, *flags, out="out"):
        process = self.start(*flags, out=out)
        said, warned = process.communicate(timeout=300)
        return process.returncode, said, warned

    def table(self, out="out"):
        return table_of(self.folder / out)

    def num_done(self, out="out"):
        return len(list((self.folder / out / "jobs").glob("*/done.json")))
