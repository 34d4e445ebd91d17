"""``crossgraft audit --frequency``: from a command to a section of the report and a table."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from crossgraft.audit.record import AuditRecord

CODE = ("--code", "tiny_models.py")
FAST = ("--workers", "1", "--device", "cpu", "--quiet")
DATA = ("--data", "study.csv", "--group-column", "patient")
EDITS = ("--confounder", "low_pass:0.2", "--confounder", "tag:0.5,xy=[0.1,0.1]", "--frequency")


@pytest.fixture
def study(workspace):
    """60 squares of 30 patients in a table; ill ones are brighter."""
    rng = np.random.default_rng(0)
    rows = ["path,label,patient"]
    (workspace / "scans").mkdir()
    for number in range(60):
        pixels = rng.integers(20, 150, (16, 16, 3)) + 40 * (number % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(workspace / "scans" / f"Jones{number:03d}.png")
        rows.append(f"scans/Jones{number:03d}.png,{('healthy', 'ill')[number % 2]},Smith{number // 2}")
    (workspace / "study.csv").write_text("\n".join(rows))
    return workspace


def record_of(folder):
    return AuditRecord.model_validate_json((folder / "report.json").read_bytes())


@pytest.mark.parametrize("stage", ["native", "input"])
def test_a_pretrained_network_has_spectra_and_overlaps(study, crossgraft, stage):
    done = crossgraft("audit", "tiny_models:tiny", *DATA, *CODE, *FAST, *EDITS, "--folds", "2", "--stage", stage, "--out", "out")
    assert done.code == 0, done.err
    found = record_of(study / "out").frequency
    (model,) = found.models
    assert [each.objective for each in model.priorities] == ["features"] and model.bands is None
    assert [each.is_informative for each in model.artefacts] == [True, False]
    assert [rank.spearman for rank in found.ranks] == [None, None]
    assert "Ranks of 1 models say nothing" in found.ranks[0].reason or not found.ranks[0].points
    assert "Overlap of artefacts with the learning priority" in done.out
    table = pd.read_csv(study / "out" / "frequency.csv")
    assert set(table["curve"]) == {"images", "pretrained network", "artefact"}
    assert "Frequencies" in (study / "out" / "report.html").read_text(encoding="utf-8")


def test_a_trained_network_is_compared_with_its_start_and_loses_frequencies(study, crossgraft):
    tune = ("tune", "study.csv", "--group-column", "patient", "--model", "tiny_models:tiny", "--epochs", "2")
    assert crossgraft(*tune, *FAST, "--no-images", "--out", "tuned").code == 0
    done = crossgraft("audit", "tuned", *DATA, *CODE, *FAST, *EDITS, "--out", "out")
    assert done.code == 0, done.err
    (model,) = record_of(study / "out").frequency.models
    assert [each.network for each in model.priorities] == ["tuned", "pretrained", "tuned"], model.notes
    assert len(model.bands.points) == 16 and model.notes == []
    curves = set(pd.read_csv(study / "out" / "frequency.csv")["curve"])
    assert curves == {"images", "tuned network", "pretrained network", "artefact", "low-pass", "high-pass"}
    assert "Jones" not in (study / "out" / "frequency.csv").read_text()


def test_without_the_option_there_is_nothing_of_it(study, crossgraft):
    without = [each for each in EDITS if each != "--frequency"]
    assert crossgraft("audit", "tiny_models:tiny", *DATA, *CODE, *FAST, *without, "--folds", "2", "--out", "out").code == 0
    assert json.loads((study / "out" / "report.json").read_text())["frequency"] is None
    assert not (study / "out" / "frequency.csv").exists()
