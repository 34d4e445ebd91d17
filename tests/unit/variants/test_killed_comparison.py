"""A comparison that is killed while its second variant trains ends like one that was not."""

import json
import os
import signal

import numpy as np
import pytest

from crossgraft import compare_fine_tunings
from crossgraft.tune.record import TuningRecord
from support import forked
from unit.variants.test_compare import FAST, without_time

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group(forked.GROUP),
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that nothing survives"),
    pytest.mark.usefixtures("tiny_models"),
]

KILLS_ITSELF = """
import os, signal, sys
from crossgraft import compare_fine_tunings
from crossgraft.variants import study

train = study.train_and_evaluate

def kills(prepared, plan, **others):
    if prepared.request.options.method == "linear":
        os.kill(os.getpid(), signal.SIGKILL)
    return train(prepared, plan, **others)

study.train_and_evaluate = kills
compare_fine_tunings("squares.npz", compare="full,linear", out="run", **FAST)
"""


def test_a_killed_comparison_ends_like_a_whole_one(squares, tmp_path):
    pixels = np.stack([squares.read(row) for row in range(len(squares))])
    np.savez(tmp_path / "squares.npz", images=pixels, labels=squares.targets, patient=squares.groups)
    call = {**FAST, "group_column": "patient"}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}
    script = tmp_path / "kills_itself.py"
    script.write_text(KILLS_ITSELF.replace("**FAST", f"**{call!r}"))
    killed = forked.run(script, environment=environment, cwd=tmp_path, timeout=600)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    first = tmp_path / "run" / "trainings" / "full-0" / "report.json"
    before = first.stat().st_mtime_ns
    TuningRecord.model_validate_json(first.read_bytes())
    assert json.loads((tmp_path / "run" / "run.json").read_text())["state"] == "running"
    record = compare_fine_tunings("squares.npz", compare="full,linear", out="run", **call).record
    assert first.stat().st_mtime_ns == before, "a finished training was done again"
    whole = compare_fine_tunings("squares.npz", compare="full,linear", out="whole", **call).record
    assert without_time(record) == without_time(whole)
