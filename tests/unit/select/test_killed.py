"""A selection that is killed at any point hands over the same model with the same bits."""

import json
import os
import random
import shutil
import signal

import pytest

from support import forked
from support.tiny import make_images, make_workspace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group(forked.GROUP),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of one process"),
]

POINTS = int(os.environ.get("CROSSGRAFT_SELECTION_POINTS", "3"))  # ten and more where there is time


def attempts(folder, pairs):
    words = ("support.killed_selection", str(folder), json.dumps([[str(o), n] for o, n in pairs]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CROSSGRAFT_CACHE": str(folder / "cache")}
    done = forked.run(*words, environment=environment, cwd=folder, timeout=400)
    return [int(line) for line in done.stdout.split()], done.stderr


def test_killed_anywhere_it_hands_over_the_same_model_with_the_same_bits(tmp_path):
    make_workspace(tmp_path)
    shutil.rmtree(tmp_path / "images")
    make_images(tmp_path / "images", {"benign": 80, "malignant": 80})
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    codes, said = attempts(tmp_path, [(whole, None)])
    assert codes == [0], said
    killed.mkdir()  # costs are measured once: the killed selection begins with those of the whole one
    run = json.loads((whole / "run.json").read_text())
    (killed / "run.json").write_text(json.dumps({**run, "state": "interrupted"}))
    shutil.copy(whole / "plan.json", killed)
    draw = random.Random(3)
    points = [draw.randint(2, 40) for _ in range(POINTS)]
    codes, said = attempts(tmp_path, [*((killed, point) for point in points), (killed, None)])
    assert codes[-1] == 0 and codes.count(-signal.SIGKILL) == 0, said
    assert signal.SIGKILL in codes, said
    for name in ("model/weights.safetensors", "training_images.json"):
        assert (whole / name).read_bytes() == (killed / name).read_bytes()
    first, again = (json.loads((folder / "report.json").read_text()) for folder in (whole, killed))
    assert first["selected"] == again["selected"] and first["metrics"] == again["metrics"]
    assert first["candidates"] == again["candidates"]
