"""What tests of the command line begin with."""

import numpy as np
import pytest
from PIL import Image

from support.audit_study import audit as audit
from support.audit_study import study as study
from support.audit_study import tuned as tuned
from support.workspace import crossgraft as crossgraft
from support.workspace import run_once as run_once
from support.workspace import runs_made as runs_made
from support.workspace import workspace as workspace


@pytest.fixture
def drawings(workspace):
    """A table: four characters of two alphabets, each drawn by three writers twice."""
    (workspace / "drawn").mkdir()
    random = np.random.default_rng(0)
    rows = ["image,character,alphabet,writer"]
    for character in range(4):
        for number in range(6):
            name = f"drawn/{character}-{number}.png"
            pixels = random.integers(0, 90, (16, 16, 3)) + 40 * character
            Image.fromarray(pixels.astype(np.uint8)).save(workspace / name)
            rows.append(f"{name},c{character},a{character // 2},w{number // 2}")
    (workspace / "drawings.csv").write_text("\n".join(rows))
    return ("drawings.csv", "--label-column", "character", "--holdout", "0")
