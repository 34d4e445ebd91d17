"""Scores that promise not to depend on the scale of the features keep the promise over twelve decades, in both precisions."""

from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import SCORES, ScoreInputs, ZooScore
from unit.scores.conftest import make_problem

OF_FEATURES = [
    name
    for name, score in SCORES
    if SCORES.origin(name) == "crossgraft" and "features" in score.inputs and not {"source_logits", "model"} & set(score.inputs)
]
PROMISED = [name for name in OF_FEATURES if "scale" in SCORES.get(name).invariances]


def values(name, dtype):
    """The value, or the parts of a score whose value needs a zoo, at scales of 1, a millionth and a million."""
    features, labels = make_problem(60, 20)
    given = [ScoreInputs(features=(scale * features).astype(dtype), labels=labels) for scale in (1.0, 1e-6, 1e6)]
    score = SCORES.get(name)
    return [[*score.parts(each).values()] if isinstance(score, ZooScore) else [float(score.evaluate(each))] for each in given]


@pytest.mark.parametrize("name", PROMISED)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 1e-4)], ids=["float64", "float32"])
def test_value_is_that_of_any_scale(name, dtype, tolerance):
    plain, small, large = values(name, dtype)
    assert small == pytest.approx(plain, abs=tolerance)
    assert large == pytest.approx(plain, abs=tolerance)


@pytest.mark.parametrize("name", sorted({*OF_FEATURES} - {*PROMISED}))
def test_who_does_not_promise_it_has_a_reason(name):
    """An absolute constant in its definition: a floor, a ridge, a distortion, a prior variance or a softmax."""
    plain, small, large = values(name, np.float64)
    changed = max(abs(np.subtract([small, large], plain)).ravel())
    assert changed > 1e-4, f"{name} does not depend on the scale: let its invariances say so"
