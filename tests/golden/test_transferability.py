"""Our scores against numbers computed by the authors' own code (see transferability.json for source and tolerance)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crossgraft.scores import SCORES, ScoreInputs

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "transferability.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture(scope="module")
def problems():
    with np.load(HERE / "transferability.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def inputs_of(problems, name, dtype):
    return ScoreInputs(
        features=problems[f"{name}/features"].astype(dtype),
        labels=problems[f"{name}/labels"],
        source_logits=problems[f"{name}/source_logits"].astype(dtype),
    )


def label(row):
    return f"{row['problem']}-{row['score']}-{row['source']}"


@pytest.mark.parametrize("row", GOLDEN, ids=label)
def test_score_equals_the_authors_code(problems, row):
    value = SCORES.get(row["score"]).evaluate(inputs_of(problems, row["problem"], np.float64), **row["options"])
    allowed = row["tolerance"] * (abs(row["value"]) if row["relative"] else 1.0)
    assert abs(value - row["value"]) <= allowed


@pytest.mark.parametrize("row", GOLDEN, ids=label)
def test_float32_features_are_close(problems, row):
    value = SCORES.get(row["score"]).evaluate(inputs_of(problems, row["problem"], np.float32), **row["options"])
    allowed = max(row["tolerance"], 1e-4) * max(1.0, abs(row["value"]))
    assert abs(value - row["value"]) <= allowed


def test_the_released_logme_differs_from_the_evidence_where_n_is_below_d(problems):
    logme = SCORES.get("logme")
    for name, differs in (("P1", False), ("P3", True)):
        given = inputs_of(problems, name, np.float64)
        gap = abs(logme.evaluate(given) - logme.evaluate(given, variant="released"))
        assert (gap > 3) if differs else (gap == 0)
