"""Our scores against numbers computed by the authors' own code (see transferability.json for source and tolerance)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from crossgraft.scores import SCORES, ScoreInputs, ZooScore

HERE = Path(__file__).parent
GOLDEN = json.loads((HERE / "transferability.json").read_text(encoding="utf-8"))["values"]


@pytest.fixture(scope="module")
def problems():
    with np.load(HERE / "transferability.npz", allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


def evaluate(problems, row, dtype):
    """The score of the row, or the part of it that the row is about."""
    name = row["problem"]
    given = ScoreInputs(
        features=problems[f"{name}/features"].astype(dtype),
        labels=problems[f"{name}/labels"],
        source_logits=problems[f"{name}/source_logits"].astype(dtype),
        source_features=problems[f"{name}/{row['source_features']}"].astype(dtype) if "source_features" in row else None,
    )
    score = SCORES.get(row["score"])
    if "part" not in row:
        return score.evaluate(given, **row["options"])
    is_zoo_level = isinstance(score, ZooScore)
    parts = score.parts(given, **row["options"]) if is_zoo_level else score.evaluate(given, **row["options"]).parts
    return parts[row["part"]]


def label(row):
    return "-".join([row["problem"], row["score"], *([row["part"]] if "part" in row else []), row["source"]])


@pytest.mark.parametrize("row", GOLDEN, ids=label)
def test_score_equals_the_authors_code(problems, row):
    value = evaluate(problems, row, np.float64)
    allowed = row["tolerance"] * (abs(row["value"]) if row["relative"] else 1.0)
    assert abs(value - row["value"]) <= allowed


@pytest.mark.parametrize("row", GOLDEN, ids=label)
def test_float32_features_are_close(problems, row):
    value = evaluate(problems, row, np.float32)
    allowed = max(row["tolerance"], 1e-4) * max(1.0, abs(row["value"]))
    assert abs(value - row["value"]) <= allowed


def test_the_released_logme_differs_from_the_evidence_where_n_is_below_d(problems):
    logme = SCORES.get("logme")
    for name, differs in (("P1", False), ("P3", True)):
        given = ScoreInputs(features=problems[f"{name}/features"].astype(np.float64), labels=problems[f"{name}/labels"])
        gap = abs(logme.evaluate(given) - logme.evaluate(given, variant="released"))
        assert (gap > 3) if differs else (gap < 1e-6)


@pytest.mark.parametrize("row", [row for row in GOLDEN if row["score"] == "logme" and not row["options"]], ids=label)
def test_no_iteration_that_stops_early_is_above_the_maximum_of_the_evidence(problems, row):
    value = evaluate(problems, row, np.float64)
    assert value > row["value"] - 1e-8  # what they read off α, β of one step and ‖m‖² of the last is no value of the evidence
    assert (value - row["value"] > 1e-3) == (row["problem"] == "P3")


def test_etrans_broken_copy_of_sfda_is_not_matched(problems):
    """Its eigenvectors are orthonormal, so it scores by the nearest mean: 0.2 of 5 classes, at chance."""
    given = ScoreInputs(features=problems["P1/features"].astype(np.float64), labels=problems["P1/labels"])
    assert SCORES.get("sfda").evaluate(given) - 0.2000010908493666 > 0.5
