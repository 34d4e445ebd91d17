"""Scores that promise not to depend on the scale of the features keep the promise over twelve decades, in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import SCORES, ScoreInputs
from unit.scores.conftest import make_problem

PROMISED_BY_DEFINITION = {
    *("logme", "h_score", "regularized_h_score", "lfc"),  # maximised over, or divided by, the spread of the features
    *("parc", "knn_probe", "linear_probe", "itm", "lead"),  # standardised first
}
"""The others have an absolute constant in their definition: a floor, a ridge, a distortion, a prior variance or a softmax."""


def test_who_promises_it():
    assert {name for name, score in SCORES if "scale" in score.invariances} == PROMISED_BY_DEFINITION


@pytest.mark.parametrize("name", sorted(PROMISED_BY_DEFINITION))
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 1e-4)], ids=["float64", "float32"])
def test_value_is_that_of_any_scale(name, dtype, tolerance):
    features, labels = make_problem(60, 20)

    def value(scale):
        return SCORES.get(name).evaluate(ScoreInputs(features=(scale * features).astype(dtype), labels=labels))

    expected = pytest.approx(value(1.0), abs=tolerance)
    assert value(1e-6) == expected
    assert value(1e6) == expected
