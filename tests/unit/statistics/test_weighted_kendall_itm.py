import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError
from crossgraft.statistics import weighted_kendall_itm

few_values = st.lists(st.integers(-5, 5), min_size=2, max_size=8)


def literal(score, truth):
    """Eq. 1 of the paper with loops; tied models share their mean rank."""

    def ranks(values):
        return [1 + sum(v > u for v in values) + (sum(v == u for v in values) - 1) / 2 for u in values]

    G, P = ranks(truth), ranks(score)
    agree = total = 0.0
    for i in range(len(G)):
        for j in range(i + 1, len(G)):
            weight = 1 / (G[i] + G[j])
            total += weight
            agree += weight * np.sign((G[i] - G[j]) * (P[i] - P[j]))
    return agree / total


@given(few_values, st.randoms(use_true_random=False))
def test_equals_the_literal_definition_with_ties(score, random):
    truth = [random.randint(-3, 3) for _ in score]
    value = weighted_kendall_itm([float(s) for s in score], [float(t) for t in truth])
    if len(set(score)) == 1 or len(set(truth)) == 1:
        assert math.isnan(value)
    else:
        assert value == pytest.approx(literal(score, truth), abs=1e-12)


@given(st.lists(st.integers(-99, 99), min_size=2, max_size=8, unique=True))
def test_opposite_order_changes_the_sign(score):
    truth = np.arange(float(len(score)))
    values = np.array(score, dtype=float)
    assert weighted_kendall_itm(-values, truth) == pytest.approx(-weighted_kendall_itm(values, truth))


def test_weights_come_from_the_truth_alone():
    truth = [4.0, 3.0, 2.0, 1.0]
    top, bottom = [3.0, 4.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]
    total = sum(1 / (i + j) for i in range(1, 5) for j in range(i + 1, 5))
    assert weighted_kendall_itm(top, truth) == pytest.approx(1 - 2 / 3 / total)
    assert weighted_kendall_itm(bottom, truth) == pytest.approx(1 - 2 / 7 / total)


def test_bad_input_is_named():
    with pytest.raises(DataError, match="must be finite"):
        weighted_kendall_itm([1.0, float("inf")], [1.0, 2.0])
