"""A folder with a study of toil in it, run as a command of its own."""

import os
import subprocess
import sys

import pandas as pd

from support.toy_jobs import install

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
        frame = pd.read_csv(self.folder / out / "results.csv")
        return frame[frame["metric"] != "begun_at"].drop(columns=["seconds", "run"]).reset_index(drop=True)

    def num_done(self, out="out"):
        return len(list((self.folder / out / "jobs").glob("*/done.json")))
