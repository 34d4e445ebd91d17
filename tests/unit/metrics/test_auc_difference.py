"""The difference of two AUCs of the same images, against a bootstrap of patients and what must hold exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics import auc, auc_combination, auc_difference


def patients(seed, number=60, images=4, kept=0.8):
    """Images of a patient are alike, and both models look at the same images."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(number), images)
    targets = np.repeat(rng.random(number) < 0.5, images).astype(np.int64)
    shared = targets + 0.8 * np.repeat(rng.standard_normal(number), images)
    first = shared + rng.standard_normal(number * images)
    second = kept * shared + rng.standard_normal(number * images)
    return first, second, targets, groups


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_it_is_a_difference_of_the_same_images(seed):
    first, second, targets, groups = patients(seed, number=20, images=2)
    found = auc_difference(first, second, targets, groups)
    assert found.value == pytest.approx(roc_auc_score(targets, first) - roc_auc_score(targets, second))
    assert found.low <= found.value <= found.high
    other = auc_difference(second, first, targets, groups)
    assert (other.value, other.low, other.high) == pytest.approx((-found.value, -found.high, -found.low))
    same = auc_difference(first, 2 * first + 1, targets, groups)
    fewest = min(len(np.unique(groups[targets == side])) for side in (0, 1))
    most = 1 - 0.025 ** (1 / fewest)  # nobody changed: the exact upper end of a share of which there was none
    assert (same.value, same.low, same.high) == pytest.approx((0, -most, most))
    alone = [auc(scores, targets, groups) for scores in (first, second)]
    assert found.high - found.low < sum(each.high - each.low for each in alone)


def auc_by_ranks(targets, scores):
    """What scikit-learn computes in thirty times as long."""
    positive = stats.rankdata(scores)[targets == 1]
    return (positive.mean() - (len(positive) + 1) / 2) / (len(targets) - len(positive))


def test_it_agrees_with_a_bootstrap_of_patients():
    """2 000 draws of whole patients, paired, as the definition of the interval has it."""
    first, second, targets, groups = patients(3)
    rng = np.random.default_rng(0)
    rows_of = [np.flatnonzero(groups == each) for each in np.unique(groups)]
    draws = []
    for _ in range(2000):
        rows = np.concatenate([rows_of[each] for each in rng.integers(0, len(rows_of), len(rows_of))])
        if 0 < targets[rows].sum() < len(rows):
            draws.append(auc_by_ranks(targets[rows], first[rows]) - auc_by_ranks(targets[rows], second[rows]))
    assert auc_by_ranks(targets, first) == pytest.approx(roc_auc_score(targets, first))
    low, high = np.percentile(draws, [2.5, 97.5])
    found = auc_difference(first, second, targets, groups)
    assert 0.95 < (found.high - found.low) / (high - low) < 1.3
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)
    alone = auc_difference(first, second, targets)
    assert alone.high - alone.low < found.high - found.low  # images of a patient are not independent


def test_bad_input():
    with pytest.raises(DataError, match="Both models need a score"):
        auc_difference.__wrapped__(np.ones(3), np.ones(2), np.array([0, 1, 1]))
    found = auc_difference(np.arange(4.0), np.arange(4.0)[::-1].copy(), np.array([0, 0, 1, 1]), np.array([1, 1, 2, 2]))
    assert found.value == 1 and found.low is None and "No interval" in found.note


def combined(terms, targets):
    return sum(coefficient * roc_auc_score(targets, scores) for coefficient, scores in terms)


def several(seed, number=30):
    first, second, targets, groups = patients(seed, number=number, images=3)
    third = np.round(first - second, 1)  # ties
    return [(0.7, first), (-1.5, second), (0.4, third)], targets, groups


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_a_combination_of_two_is_their_difference(seed):
    first, second, targets, groups = patients(seed, number=20, images=2)
    for units in (groups, None):
        expected = auc_difference(first, second, targets, units)
        assert auc_combination([(1.0, first), (-1.0, second)], targets, units) == expected
        turned = auc_combination([(-1.0, second), (1.0, first)], targets, units)
        assert turned[:3] == pytest.approx(expected[:3])
        # terms of the same scores are put together first
        twice = auc_combination([(0.5, first), (-2.0, second), (0.5, first), (1.0, second)], targets, units)
        assert twice[:3] == pytest.approx(expected[:3])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 999))
def test_a_combination_is_the_sum_of_the_areas(seed):
    terms, targets, groups = several(seed)
    found = auc_combination(terms, targets, groups)
    assert found.value == pytest.approx(combined(terms, targets))
    assert found.low < found.value < found.high
    opposite = auc_combination([(-coefficient, scores) for coefficient, scores in terms], targets, groups)
    assert opposite[:3] == pytest.approx((-found.value, -found.high, -found.low))
    larger = auc_combination([(3 * coefficient, scores) for coefficient, scores in terms], targets, groups)
    assert larger[:3] == pytest.approx((3 * found.value, 3 * found.low, 3 * found.high))


def by_hand(terms, targets):
    """Influence of each image from all pairs: (its mean of won comparisons − AUC) / number of its class, times c."""
    influence = np.zeros(len(targets))
    positive, negative = np.flatnonzero(targets == 1), np.flatnonzero(targets == 0)
    for coefficient, scores in terms:
        won = np.array([[(scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]) for j in negative] for i in positive])
        influence[positive] += coefficient * (won.mean(axis=1) - won.mean()) / len(positive)
        influence[negative] += coefficient * (won.mean(axis=0) - won.mean()) / len(negative)
    return influence


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("grouped", [False, True])
def test_its_interval_squares_and_adds_those_of_the_areas(seed, grouped):
    terms, targets, groups = several(seed)
    units = groups if grouped else np.arange(len(targets))
    found = auc_combination(terms, targets, groups if grouped else None)
    alone = [auc(scores, targets, groups if grouped else None) for _, scores in terms]
    fewest = min(len(np.unique(units[targets == side])) for side in (0, 1))
    corrected = []
    for _, scores in terms:
        influence = by_hand([(1.0, scores)], targets)
        for side in (0, 1):
            number = len(np.unique(units[targets == side]))
            influence[targets == side] *= np.sqrt(number / (number - 1))
        corrected.append([influence[units == each].sum() for each in np.unique(units)])
    rho = np.array([[a @ b / np.sqrt((a @ a) * (b @ b)) for b in np.array(corrected)] for a in np.array(corrected)])
    down = np.array([each.value - each.low for each in alone])
    up = np.array([each.high - each.value for each in alone])
    c = np.array([coefficient for coefficient, _ in terms])
    most = max(float((c * side) @ rho @ (c * side)) for side in (down, up))
    reach = []
    for side in (np.where(c > 0, down, up), np.where(c > 0, up, down)):
        square = min(float((c * side) @ rho @ (c * side)), most)
        shrunk = (1 - 1 / fewest) * square + float(np.square(c * side).sum()) / fewest
        reach.append(np.sqrt(max(square, shrunk)))
    bound = max(c[c > 0].sum(), -c[c < 0].sum())
    expected = max(-bound, found.value - reach[0]), min(bound, found.value + reach[1])
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.num_groups == (len(np.unique(groups)) if grouped else None)


def test_a_combination_of_nothing():
    targets = np.array([0, 0, 1, 1])
    scores = np.arange(4.0)
    with pytest.raises(DataError, match="at least one term"):
        auc_combination([], targets)
    for bad in (np.nan, np.inf):
        with pytest.raises(DataError, match="finite coefficients"):
            auc_combination([(1.0, scores), (bad, scores)], targets)
    with pytest.raises(DataError, match="finite scores"):
        auc_combination([(1.0, np.array([0, 1, np.nan, 3]))], targets)
    with pytest.raises(NotApplicable):
        auc_combination([(1.0, scores)], np.ones(4, dtype=np.int64))
    zero = auc_combination([(0.0, scores), (0.0, -scores)], targets)
    assert zero.value == 0 and zero.low < 0 < zero.high


def test_areas_among_some_of_the_images():
    """An area of two cells is that of their images, and patients in both cells are known."""
    rng = np.random.default_rng(1)
    targets, cell, patients = rng.integers(0, 2, 200), rng.integers(0, 2, 200) == 1, np.repeat(np.arange(100), 2)
    scores = rng.normal(size=200) + targets
    first, second = np.where(targets == 1, cell, ~cell), np.where(targets == 1, ~cell, cell)
    found = auc_combination([(1.0, scores), (-1.0, scores)], targets, patients, among=[first, second])
    areas = [roc_auc_score(targets[mask], scores[mask]) for mask in (first, second)]
    assert found.value == pytest.approx(areas[0] - areas[1], abs=1e-12)
    everyone = np.ones(200, dtype=bool)
    assert auc_combination([(1.0, scores)], targets, patients, among=[everyone]) == auc_combination(
        [(1.0, scores)], targets, patients
    )
    alone = auc_combination([(1.0, scores[first])], targets[first], patients[first])
    masked = auc_combination([(1.0, scores)], targets, patients, among=[first])
    assert masked[:3] == pytest.approx(alone[:3])
    with pytest.raises(NotApplicable):
        auc_combination([(1.0, scores)], targets, among=[targets == 1])
