"""A few of the trials of ``support.random_signals``, which sends any number: ``python -m support.random_signals FOLDER``.

``CROSSGRAFT_SIGNALS`` is how many forks get one; 6 by default. Programs, which import for seconds, are a third as many.
"""

import csv
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NUMBER = int(os.environ.get("CROSSGRAFT_SIGNALS", "6"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork") or not hasattr(signal, "SIGHUP"), reason="signals of POSIX, to forks"),
]


def test_a_command_ends_with_the_code_of_its_signal_and_the_same_command_makes_up_for_it(tmp_path):
    trials = {"fork": NUMBER, "program": max(1, NUMBER // 3)}
    places = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    asked = ["--trials", *map(str, trials.values()), "--start", *trials]
    done = subprocess.run(
        [sys.executable, "-m", "support.random_signals", str(tmp_path), *asked],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": places},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["start"] for row in rows) == trials
    assert not [row for row in rows if row["wrong"]]
