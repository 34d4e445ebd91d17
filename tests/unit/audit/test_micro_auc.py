"""The area of the released code: a literal version with its thresholds, and what tells it from the pairwise AUC."""

from __future__ import annotations

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crossgraft.audit.fold_scores import KERAS_THRESHOLDS, micro_auc
from crossgraft.errors import DataError, UsageError


def literal(p, y, number):
    """Rates at every threshold, and trapezoids between them."""
    epsilon = 1e-7
    thresholds = [-epsilon, *[(i + 1) / (number - 1) for i in range(number - 2)], 1 + epsilon]
    scores, truth = np.column_stack([1 - p, p]).ravel(), np.eye(2)[y].ravel()
    found = [[(scores[truth == side] > each).mean() for each in thresholds] for side in (1, 0)]
    return sum((found[1][i] - found[1][i + 1]) * (found[0][i] + found[0][i + 1]) / 2 for i in range(len(thresholds) - 1))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30).flatmap(lambda n: arrays(float, n, elements=st.floats(0, 1))), st.integers(2, 30), st.data())
def test_thresholds_are_those_of_keras(p, number, data):
    y = data.draw(arrays(np.int64, len(p), elements=st.integers(0, 1)))
    # a probability that is a threshold up to rounding may fall on either side
    steps = np.r_[p, 1 - p] * (number - 1)
    if (np.abs(steps - np.round(steps)) < 1e-6).any():
        return
    assert micro_auc(p, y, num_thresholds=number) == pytest.approx(literal(p, y, number), abs=1e-12)


def test_many_thresholds_are_exact():
    rng = np.random.default_rng(0)
    p, y = rng.random(60), rng.integers(0, 2, 60)
    assert micro_auc(p, y, num_thresholds=1_000_001) == pytest.approx(micro_auc(p, y), abs=1e-4)
    assert micro_auc(p, y, num_thresholds=KERAS_THRESHOLDS) == pytest.approx(micro_auc(p, y), abs=0.01)


def test_what_never_says_positive_looks_good_where_positives_are_few():
    y = np.repeat([1, 0], [31, 52])
    assert micro_auc(np.full(83, 0.3), y) == pytest.approx(52 / 83)
    upside_down = np.r_[np.full(31, 0.1), np.full(52, 0.4)]
    assert micro_auc(upside_down, y) > 0.3  # every pair is in the wrong order


@pytest.mark.parametrize(("p", "y"), [([0.5], [0, 1]), ([], []), ([1.5], [1]), ([np.nan], [1]), ([0.5], [2])])
def test_wrong_input_is_named(monkeypatch, p, y):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(DataError):
        micro_auc(np.array(p, dtype=float), np.array(y, dtype=int))


def test_one_threshold_is_refused():
    with pytest.raises(UsageError, match="at least 2"):
        micro_auc(np.array([0.5]), np.array([1]), num_thresholds=1)
