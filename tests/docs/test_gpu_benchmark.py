"""The benchmark of GPUs says that there is none, or measures every row, small, on the CPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "gpu.py"
ROWS = (
    "decode and resize, 1 threads",
    "look, ",
    "train, ",
    "its first epoch",
    "step of ",
    "with RepSim",
    "eigh, ",
    "rank, 2 networks",
)


def run(*arguments, folder):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "CROSSGRAFT_CACHE": str(folder)}
    command = [sys.executable, "-W", "error::DeprecationWarning:__main__", str(PROGRAM), *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_without_a_gpu_it_says_so(tmp_path):
    assert run(folder=tmp_path).startswith("There is no GPU here, so that 0 rows were measured.")


@pytest.mark.slow
def test_every_row_is_measured_on_the_cpu(tmp_path):
    printed = run("--device", "cpu", "--smoke", folder=tmp_path)
    assert all(row in printed for row in ROWS), printed
