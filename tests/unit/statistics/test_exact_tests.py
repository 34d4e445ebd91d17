"""Exact tests of a few values, against scipy, literal enumeration, and what they must not depend on."""

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.statistics import mean_interval, sign_flip, two_sample_permutation

values = st.lists(st.integers(-5, 5).map(lambda each: each / 10), min_size=2, max_size=5).map(np.array)


@settings(max_examples=40, deadline=None)
@given(values, values)
@example(np.array([-0.1, -0.1, -0.4]), np.array([0.0, -0.1, -0.5]))
def test_two_samples_are_dealt_out_in_every_way(first, second):
    def apart(a, b, axis):
        return np.round(np.abs(np.mean(a, axis=axis) - np.mean(b, axis=axis)), 9)  # scipy knows no ties with 0 but exact ones

    expected = stats.permutation_test((first, second), apart, n_resamples=np.inf, alternative="greater", vectorized=True).pvalue
    found = two_sample_permutation(first, second)
    assert found.p_value == pytest.approx(expected) and found.p_value >= found.floor - 1e-15
    assert two_sample_permutation(second, first).p_value == pytest.approx(found.p_value)
    assert two_sample_permutation(3 * first + 7, 3 * second + 7).p_value == pytest.approx(found.p_value)


@settings(max_examples=40, deadline=None)
@given(values)
def test_signs_are_flipped_in_every_way(differences):
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    expected = np.mean([each >= abs(differences.sum()) - 1e-9 for each in sums])
    found = sign_flip(differences)
    assert found.p_value == pytest.approx(expected)
    assert found.floor == 2 / 2 ** len(differences)
    assert sign_flip(-differences).p_value == pytest.approx(found.p_value)


def test_floors_are_those_of_five_folds():
    low, high = np.arange(5.0), np.arange(10.0, 15.0)
    assert two_sample_permutation(low, high) == (2 / 252, 2 / 252)
    assert sign_flip(high) == (0.0625, 0.0625)
    assert two_sample_permutation(low[:2], high).floor == 1 / 21


def test_the_interval_of_a_mean_is_students():
    folds = np.array([0.62, 0.71, 0.66, 0.62, 0.69])
    low, high = stats.t.interval(0.95, 4, folds.mean(), stats.sem(folds))
    found = mean_interval(folds)
    assert found.mean == folds.mean() and (found.low, found.high) == pytest.approx((low, high), abs=0.01)
    assert found.low <= low + 1e-12 and found.high >= high - 1e-12
    even = np.array([0.6, 0.65, 0.7])  # no skewness: Student's alone
    low, high = stats.t.interval(0.95, 2, even.mean(), stats.sem(even))
    assert mean_interval(even)[:3] == pytest.approx((even.mean(), low, high))
    bounded, free = mean_interval(folds + 0.3, limits=(0.0, 1.0)), mean_interval(folds + 0.3)
    distance = 1 - bounded.mean  # the logarithm of it has Student's interval
    half = stats.t.ppf(0.975, 4) * stats.sem(folds)
    assert bounded.low == pytest.approx(1 - distance * np.exp(half / distance)) and bounded.low < free.low
    assert bounded.high == 1 < free.high


def test_groups_of_values_count_once():
    values, groups = np.array([0.1, 0.1, 0.3, 0.3, 0.2, 0.2]), ["a", "a", "b", "b", "c", "c"]
    assert mean_interval(values, groups)[:3] == pytest.approx(mean_interval(values[::2])[:3])
    with pytest.raises(DataError, match="2 groups and 6 values"):
        mean_interval(values, ["a", "b"])


def test_without_an_interval_there_is_a_reason():
    assert mean_interval(np.array([0.6, 0.7])) == (pytest.approx(0.65), None, None, "2 values, where 3 are needed")
    assert mean_interval(np.full(4, 0.9))[1:] == (None, None, "all values are equal, which tells nothing about others")
    assert mean_interval(np.arange(6.0), list("aabbcc"), least=4).reason == "3 groups, where 4 are needed"


@given(st.lists(st.floats(0, 1), min_size=3, max_size=12), st.floats(0.5, 0.99))
@example([0.0, 0.0, 2.868877471030894e-118], 0.5)  # its cube is 0
def test_ends_are_on_both_sides_and_within_limits(numbers, confidence):
    found = mean_interval(np.array(numbers), confidence=confidence, limits=(0.0, 1.0))
    if found.low is None:
        assert np.ptp(numbers) < 1e-9 and found.reason
    else:
        assert -1e-12 <= found.low < found.mean < found.high <= 1 + 1e-12 or found.mean in (found.low, found.high)


@pytest.mark.parametrize("wrong", [np.array([]), np.array([1.0, np.nan]), np.ones((2, 2))])
def test_bad_input(wrong):
    for test in (sign_flip, mean_interval, lambda each: two_sample_permutation(each, np.ones(2))):
        with pytest.raises((DataError, TypeError)):
            test(wrong)
    with pytest.raises(DataError, match="too many to try them all"):
        two_sample_permutation(np.arange(30.0), np.arange(30.0))
    with pytest.raises(DataError, match="too many"):
        sign_flip(np.arange(40.0))
