"""The search for a factor: which one is tried next, and when it ends."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.tune.engine.selection_rule import MOST_TRAININGS, TOLERANCE
from crossgraft.tune.keep_search import Tried, next_factor


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        ([], 1.0),
        ([(1, 0.81)], None),  # there
        ([(1, 0.83)], None),
        ([(1, 0.84)], 0.2),  # too similar: weaker
        ([(1, 0.5)], 5.0),
        ([(1, 0.5), (5, 0.6)], 25.0),
        ([(1, 0.5), (5, 0.503)], 125.0),  # a flat step: farther
        ([(1, 0.5), (5, 0.503), (125, 0.504)], 78_125.0),
        ([(1, 0.5), (5, 0.503), (125, 0.504), (78_125, 0.504)], 1e-3),  # or was all of it too strong?
        ([(1, 0.5), (5, 0.503), (125, 0.504), (78_125, 0.504), (1e-3, 0.4)], None),  # out of reach
        ([(1, 0.5), (5, 0.503), (125, 0.504), (78_125, 0.504), (1e-3, 0.9)], math.exp(0.75 * math.log(1e-3))),
        ([(1, 0.5), (5, 0.503), (125, 0.6)], 625.0),
        ([(1, 0.99), (0.2, 0.988)], 0.008),
        ([(1, 0.99), (0.2, 0.988), (0.008, 0.989)], 1.28e-5),
        ([(1, 0.99), (0.2, 0.988), (0.008, 0.989), (1.28e-5, 0.99)], None),  # nothing moves them
        ([(1, None)], 0.04),  # too much from the start
        ([(1, None), (0.04, None)], None),
        ([(1, None), (0.04, 0.5)], 0.2),
        ([(1, 0.5), (5, None)], math.sqrt(5)),  # too much: halfway on a logarithmic scale
        ([(1, 0.5), (5, 0.6), (25, None)], math.sqrt(125)),
        ([(1, 0.5), (5, None), (2.24, 0.9)], math.exp(0.75 * math.log(2.24))),
        ([(1, 0.5), (5, None), (4.8, 0.6)], None),
        ([(1, 0.99), (0.2, 0.98)], 0.04),
        ([(1, 0.9), (0.2, 0.7)], math.sqrt(0.2)),  # half of the way, on a logarithmic scale
        ([(1, 0.9), (0.2, 0.1)], math.exp(0.125 * math.log(0.2))),
        ([(1, 0.85), (0.2, 0.1)], math.exp(0.1 * math.log(0.2))),  # not too near to an end
        ([(1, 0.9), (0.95, 0.7)], None),  # nothing lies between them
        ([(1, 0.9), (0.2, 0.7), (0.447, 0.72)], math.exp((1 - 0.08 / 0.18) * math.log(0.447))),
    ],
)
def test_the_next_factor_by_hand(tried, expected):
    found = next_factor(0.8, [Tried(float(factor), similarity) for factor, similarity in tried])
    assert found == (None if expected is None else pytest.approx(expected, rel=5e-3))


def test_it_ends_after_so_many_trainings():
    on_one_side = [Tried(5.0**number, 0.1 + 0.01 * number) for number in range(6)]
    assert next_factor(0.8, on_one_side[:-1]) is not None and next_factor(0.8, on_one_side) is None
    on_both = [*on_one_side[:5], Tried(1e7, 0.95), Tried(1e6, 0.94), Tried(1e5, 0.93)]
    assert len(on_both) == MOST_TRAININGS
    assert next_factor(0.8, on_both[:-1]) is not None and next_factor(0.8, on_both) is None


def test_a_target_between_two_trainings_is_looked_for_longer():
    """Logistic over the logarithm of the factor; six trainings end at 0.849."""

    def similarity(factor):
        return 0.98 / (1 + (0.0077 / factor) ** 2.3)

    tried = []
    while (factor := next_factor(0.8, tried)) is not None:
        tried.append(Tried(factor, similarity(factor)))
    assert len(tried) > 6 and abs(tried[-1].similarity - 0.8) <= TOLERANCE


@settings(max_examples=60, deadline=None)
@given(target=st.floats(0.3, 0.95), middle=st.floats(-4, 4), slope=st.floats(0.3, 1.5), low=st.floats(0.0, 0.2))
def test_it_finds_what_a_rising_curve_has(target, middle, slope, low):
    """Of a similarity that rises with the factor from ``low`` to 1, within so many trainings or to the nearest it tried."""

    def similarity(factor):
        return low + (1 - low) / (1 + math.exp(-slope * (math.log(factor) - middle)))

    tried = []
    while (factor := next_factor(target, tried)) is not None:
        assert factor > 0 and factor not in [each.factor for each in tried]
        assert factor == float(f"{factor:.3g}")
        tried.append(Tried(factor, similarity(factor)))
    assert len(tried) <= MOST_TRAININGS
    misses = [abs(each.similarity - target) for each in tried]
    assert min(misses) <= TOLERANCE or len(tried) >= 6
    assert min(misses) <= misses[0]


@pytest.mark.parametrize("times", [10, 30, 100, 300])
def test_a_term_that_is_far_too_strong_is_weakened_until_the_target_is_there(times):
    """The term holds the features at every factor near 1, and lets them go within a decade."""

    def similarity(factor):
        return 0.3 + 0.666 / (1 + (0.07 / (times * factor)) ** 1.2)

    tried = []
    while (factor := next_factor(0.8, tried)) is not None:
        tried.append(Tried(factor, similarity(factor)))
    assert len(tried) <= MOST_TRAININGS
    assert min(abs(each.similarity - 0.8) for each in tried) <= TOLERANCE
