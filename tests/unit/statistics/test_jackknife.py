import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError
from crossgraft.statistics import jackknife_blocks, jackknife_interval
from crossgraft.statistics.jackknife import Estimate


def test_the_interval_of_a_mean_is_the_usual_one_of_student():
    x = np.random.default_rng(0).normal(size=20)
    estimate = jackknife_interval(x.mean(), [np.delete(x, i).mean() for i in range(20)])
    standard_error = x.std(ddof=1) / np.sqrt(20)
    assert estimate.standard_error == pytest.approx(standard_error, rel=1e-12)
    assert estimate.high - x.mean() == pytest.approx(2.093024054408263 * standard_error, rel=1e-9)  # t19, 97.5 %


def test_an_estimate_says_whether_its_interval_contains_zero():
    assert Estimate(0.1, 0.1, -0.1, 0.3).contains_zero
    assert Estimate(0.1, 0.1, 0.0, 0.2).contains_zero
    assert not Estimate(-0.1, 0.01, -0.12, -0.08).contains_zero


@given(
    counts=st.lists(st.integers(1, 40), min_size=2, max_size=5),
    num_blocks=st.integers(3, 20),
    seed=st.integers(0, 99),
)
def test_blocks_without_groups_are_a_stratified_partition(counts, num_blocks, seed):
    targets = np.repeat(np.arange(len(counts)), counts)
    if len(targets) < 3:
        return
    blocks = jackknife_blocks(targets, num_blocks=num_blocks, seed=seed)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(targets)))
    sizes = [len(block) for block in blocks]
    assert max(sizes) - min(sizes) <= 1
    for label in range(len(counts)):
        shares = [int((targets[block] == label).sum()) for block in blocks]
        assert max(shares) - min(shares) <= 1


@given(st.lists(st.integers(0, 30), min_size=10, max_size=120), st.integers(0, 99))
def test_blocks_with_groups_never_split_a_group(groups, seed):
    groups = np.array(groups)
    num_groups = len(np.unique(groups))
    targets = np.arange(len(groups)) % 2
    if num_groups < 3:
        with pytest.raises(DataError, match=f"there are {num_groups}"):
            jackknife_blocks(targets, groups, seed=seed)
        return
    blocks = jackknife_blocks(targets, groups, seed=seed)
    assert len(blocks) == min(20, num_groups)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(groups)))
    owners = [set(groups[block].tolist()) for block in blocks]
    assert sum(len(owner) for owner in owners) == num_groups


def test_the_seed_decides_the_blocks():
    targets = np.arange(60) % 3
    first, again, other = (jackknife_blocks(targets, seed=seed) for seed in (0, 0, 1))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
