"""The benchmark of GPUs says that there is none, or measures every row, small, on the CPU."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

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


@pytest.fixture
def printed_by(monkeypatch, tmp_path, capsys):
    """What the program prints, in this process, which has imported torch already; it is one without a GPU."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.syspath_prepend(str(PROGRAM.parent))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(PROGRAM), *arguments])
        runpy.run_path(str(PROGRAM), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_without_a_gpu_it_says_so(printed_by):
    assert printed_by().startswith("There is no GPU here, so that 0 rows were measured.")


@pytest.mark.slow
def test_every_row_is_measured_on_the_cpu(printed_by):
    printed = printed_by("--device", "cpu", "--smoke")
    assert all(row in printed for row in ROWS), printed
