import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.statistics import jackknife_interval, rank_intervals


def literal(values, replicates, alpha):
    num_models, num_blocks = replicates.shape
    found = []
    for m in range(num_models):
        better = worse = 0
        for other in range(num_models):
            if other == m:
                continue
            estimate = jackknife_interval(values[other] - values[m], replicates[other] - replicates[m])
            half = estimate.standard_error * stats.t.ppf(1 - alpha / (2 * (num_models - 1)), num_blocks - 1)
            better += estimate.value - half > 0
            worse += estimate.value + half < 0
        found.append((1 + better, num_models - worse))
    return found


@given(st.integers(0, 200), st.integers(2, 6), st.integers(2, 12))
def test_equals_the_literal_definition(seed, num_models, num_blocks):
    rng = np.random.default_rng(seed)
    replicates = rng.normal(size=(num_models, 1)) + rng.normal(size=(num_models, num_blocks)) * 0.05
    values = replicates.mean(axis=1)
    found = rank_intervals(values, replicates)
    assert [(low, high) for _, low, high in found] == literal(values, replicates, 0.05)
    assert all(low <= rank <= high for rank, low, high in found)


def test_what_blocks_have_in_common_cancels():
    common = np.linspace(-5, 5, 10)
    replicates = np.stack([common + 0.2, common + 0.1, common])
    assert [(low, high) for _, low, high in rank_intervals(replicates.mean(axis=1), replicates)] == [(1, 1), (2, 2), (3, 3)]


def test_tied_models_share_their_rank():
    found = rank_intervals(np.array([1.0, 1.0, 0.0]), np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]))
    assert [tuple(interval) for interval in found] == [(1.5, 1, 2), (1.5, 1, 2), (3.0, 3, 3)]


def test_the_interval_holds_the_true_rank_as_often_as_it_says():
    rng = np.random.default_rng(0)
    means = np.array([0.4, 0.2, 0.1, 0.0])
    missed = 0
    for _ in range(200):
        data = rng.normal(means[:, None], 1.0, size=(4, 40))
        sums = data.reshape(4, 20, 2).sum(axis=2)
        replicates = (data.sum(axis=1, keepdims=True) - sums) / 38
        intervals = rank_intervals(data.mean(axis=1), replicates)
        missed += sum(not low <= rank <= high for rank, (_, low, high) in enumerate(intervals, start=1))
    assert missed / 800 < 0.05


def test_bad_input_is_named():
    with pytest.raises(DataError, match="two replicates"):
        rank_intervals(np.array([1.0, 2.0]), np.zeros((2, 1)))
    with pytest.raises(DataError, match="finite"):
        rank_intervals(np.array([1.0, np.nan]), np.zeros((2, 3)))
