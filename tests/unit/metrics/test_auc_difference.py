"""The difference of two AUCs of the same images, against a bootstrap of patients and what must hold exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from crossgraft.errors import DataError
from crossgraft.metrics import auc, auc_difference


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
    assert (same.value, same.low, same.high) == pytest.approx((0, 0, 0), abs=1e-6)
    apart = auc(first, targets, groups)
    assert found.high - found.low < 2 * (apart.high - apart.low)


def test_it_agrees_with_a_bootstrap_of_patients():
    """2 000 draws of whole patients, paired, as the definition of the interval has it."""
    first, second, targets, groups = patients(3)
    rng = np.random.default_rng(0)
    rows_of = [np.flatnonzero(groups == each) for each in np.unique(groups)]
    draws = []
    for _ in range(2000):
        rows = np.concatenate([rows_of[each] for each in rng.integers(0, len(rows_of), len(rows_of))])
        if 0 < targets[rows].sum() < len(rows):
            draws.append(roc_auc_score(targets[rows], first[rows]) - roc_auc_score(targets[rows], second[rows]))
    low, high = np.percentile(draws, [2.5, 97.5])
    found = auc_difference(first, second, targets, groups)
    assert found.high - found.low == pytest.approx(high - low, rel=0.15)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.02)
    alone = auc_difference(first, second, targets)
    assert alone.high - alone.low < found.high - found.low  # images of a patient are not independent


def test_its_interval_covers():
    """The truth of a pair of models that are equally good lies inside in about 95 of 100 studies."""
    inside = 0
    for seed in range(200):
        found = auc_difference(*patients(seed, number=40, images=3, kept=1.0))
        inside += found.low <= 0 <= found.high
    assert 182 <= inside <= 198


def test_bad_input():
    with pytest.raises(DataError, match="Both models need a score"):
        auc_difference.__wrapped__(np.ones(3), np.ones(2), np.array([0, 1, 1]))
    found = auc_difference(np.arange(4.0), np.arange(4.0)[::-1].copy(), np.array([0, 0, 1, 1]), np.array([1, 1, 2, 2]))
    assert found.value == 1 and found.low is None and "No interval" in found.note
