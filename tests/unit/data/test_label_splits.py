"""Splits of images with several labels: no group in two parts, every label within the stated bound, rare ones placed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.data import k_folds, limit_rows, make_split, take_per_class
from crossgraft.data._label_split import assign_label_sets, rounding_bound, share_out_patterns
from crossgraft.errors import DataError, UsageError

FRACTIONS = {"train": 0.7, "val": 0.1, "test": 0.2}


@st.composite
def labelled_groups(draw):
    """Label sets of any density, and groups of any sizes (or none)."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    num_rows, num_labels = draw(st.integers(6, 120)), draw(st.integers(1, 8))
    density = rng.choice([0.02, 0.1, 0.5, 0.9], num_labels)
    targets = (rng.random((num_rows, num_labels)) < density).astype(np.int64)
    if draw(st.booleans()):
        return targets, None
    sizes = rng.choice([1, 1, 2, 9], num_rows)
    groups = np.repeat(np.arange(num_rows), sizes)[:num_rows]
    return (targets, rng.permutation(groups)) if len(np.unique(groups)) >= 5 else (targets, None)


def deviations(parts, targets, shares):
    """Of sizes and label counts of each part from their shares, in images."""
    marks = np.column_stack([targets, np.ones(len(targets))])
    counts = np.array([marks[parts == part].sum(axis=0) for part in range(len(shares))])
    return np.abs(counts - np.outer(shares, marks.sum(axis=0)))


def most_marks(targets, groups):
    """t: images of one group plus, over all labels, its images with that label."""
    marks = 1 + targets.sum(axis=1)
    return marks.max() if groups is None else np.bincount(np.unique(groups, return_inverse=True)[1], marks).max()


@settings(max_examples=150, deadline=None)
@given(labelled_groups(), st.sampled_from([(0.8, 0.2), (0.7, 0.1, 0.2), (1 / 5,) * 5, (0.05, 0.95)]), st.integers(0, 99))
def test_no_group_is_torn_and_every_label_is_within_the_bound(problem, shares, seed):
    targets, groups = problem
    found = assign_label_sets(targets, groups, np.array(shares), seed)
    if groups is not None:
        assert len(np.unique(np.column_stack([groups, found.parts]), axis=0)) == len(np.unique(groups))
    factor = {2: 1, 3: 2, 5: 2.27}[len(shares)]
    off = deviations(found.parts, targets, shares)
    assert found.bound <= factor * most_marks(targets, groups) + 1e-9
    assert off.max() < found.bound + 1e-6
    assert found.largest_deviation == pytest.approx(off.max())
    np.testing.assert_array_equal(assign_label_sets(targets, groups, np.array(shares), seed).parts, found.parts)


@settings(max_examples=100, deadline=None)
@given(labelled_groups(), st.sampled_from([(0.5, 0.5), (0.3, 0.7), (0.7, 0.1, 0.2), (1 / 9,) * 9]), st.integers(0, 99))
def test_the_rounding_alone_keeps_the_bound(problem, shares, seed):
    """The proof is about this step; what follows must not be what saves it."""
    targets, _ = problem
    marks = np.column_stack([targets, np.ones(len(targets))]).astype(np.float64)
    units = np.random.default_rng(seed).integers(1, 4, len(marks))
    shared = share_out_patterns(marks, units, np.array(shares), np.random.default_rng(seed))
    assert (shared >= 0).all()
    np.testing.assert_array_equal(shared.sum(axis=1), units)
    off = np.abs(shared.T @ marks - np.outer(shares, units @ marks))
    assert off.max() < rounding_bound(marks, np.array(shares)) + 1e-6


@pytest.mark.parametrize("num_parts", range(2, 40))
def test_the_bound_of_equal_parts_is_below_2_27_marks(num_parts):
    shares = np.full(num_parts, 1 / num_parts)
    assert rounding_bound(np.ones((1, 1)), shares) < 2.27


@settings(max_examples=60, deadline=None)
@given(labelled_groups(), st.integers(0, 99))
def test_a_label_of_enough_units_is_in_every_part(problem, seed):
    targets, _ = problem
    split = make_split(targets, fractions=FRACTIONS, seed=seed)
    counts = targets.sum(axis=0)
    for part in FRACTIONS:
        held = targets[split.rows(part)].sum(axis=0)
        names = [f"{label} is not in {part}" for label in np.flatnonzero((held == 0) & (counts > 0))]
        assert "such gaps" in split.method or all(name in split.method for name in names)
        if len(targets) >= 60:  # then no part is so small that rare labels compete for its few places
            assert (held[counts >= 12] > 0).all()


def literal_iterative_stratification(counts, shares, rng):
    """Sechidis, Tsoumakas and Vlahavas 2011, algorithm 1: the rarest label left goes first, to the part that wants it most.

    `counts`: marks of each unit (images with each label, then images); the paper has one image a unit.
    """
    wanted = np.outer(shares, counts.sum(axis=0))
    part, left = np.full(len(counts), -1), np.ones(len(counts), dtype=bool)
    while left.any():
        remaining = counts[left, :-1].sum(axis=0)
        label = int(np.where(remaining > 0, remaining, np.inf).argmin()) if remaining.any() else -1
        for unit in np.flatnonzero(left & (counts[:, label] > 0)):
            best = np.flatnonzero(wanted[:, label] == wanted[:, label].max())
            best = best[wanted[best, -1] == wanted[best, -1].max()]
            part[unit] = rng.choice(best)
            wanted[part[unit]] -= counts[unit]
            left[unit] = False
    return part


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("grouped", [False, True])
def test_at_least_as_near_to_the_shares_as_iterative_stratification(grouped, seed):
    rng = np.random.default_rng(seed)
    targets = (rng.random((600, 10)) < np.geomspace(0.3, 0.03, 10)).astype(np.int64)
    units = np.unique(rng.integers(0, 150, 600), return_inverse=True)[1] if grouped else np.arange(600)
    counts = np.zeros((units.max() + 1, 11))
    np.add.at(counts, units, np.column_stack([targets, np.ones(600)]))
    shares = np.array([0.7, 0.1, 0.2])
    theirs = deviations(literal_iterative_stratification(counts, shares, rng)[units], targets, shares)
    ours = deviations(assign_label_sets(targets, units if grouped else None, shares, seed).parts, targets, shares)
    per_image = 1 / targets.sum(axis=0)
    assert ours.max() <= theirs.max() + 1e-9
    assert (ours[:, :-1] * per_image).mean() <= (theirs[:, :-1] * per_image).mean() + 1e-9


def test_parts_are_drawn_from_their_seed():
    targets = (np.random.default_rng(0).random((80, 3)) < 0.3).astype(np.int64)
    draws = [make_split(targets, fractions=FRACTIONS, seed=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1]
    assert draws[0].train != draws[2].train
    assert sorted([*draws[0].train, *draws[0].val, *draws[0].test]) == list(range(80))


def test_the_method_says_how_near_the_shares_are_and_which_label_is_missing():
    targets = np.zeros((50, 2), dtype=np.int64)
    targets[::2, 0] = 1
    targets[7, 1] = 1
    split = make_split(targets, np.arange(50), fractions={"train": 0.8, "test": 0.2}, seed=0, class_names=("common", "rare"))
    assert "stratified by label (at most 0.2 images off a share, where less than 2 is sure)" in split.method
    assert split.method.endswith("no group in two parts; rare is not in test")
    assert "patient leakage not checked" in make_split(targets, fractions={"train": 0.8, "test": 0.2}, seed=0).method


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_cover_every_row_once(grouped):
    rng = np.random.default_rng(0)
    targets = (rng.random((60, 4)) < 0.3).astype(np.int64)
    groups = np.repeat(np.arange(20), 3) if grouped else None
    splits = k_folds(targets, groups, num_folds=5, seed=0)
    assert sorted(row for split in splits for row in split.test) == list(range(60))
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(60))
        if groups is not None:
            assert not set(groups[split.rows("train")]) & set(groups[split.rows("test")])
        assert abs(targets[split.rows("test")].sum(axis=0) - targets.sum(axis=0) / 5).max() < 3
    assert splits[0].method.startswith("fold 1 of 5 is the test, stratified by label")
    assert splits != k_folds(targets, groups, num_folds=5, seed=1)


def test_more_parts_than_groups_are_refused():
    targets = np.eye(4, dtype=np.int64)
    with pytest.raises(DataError, match=r"There are 2 groups \(patients\) for 3 folds. Ask for at most 2 folds."):
        k_folds(targets, np.array([0, 0, 1, 1]), num_folds=3, seed=0)
    with pytest.raises(DataError, match="There are 2 images for 3 parts"):
        make_split(targets[:2], fractions=FRACTIONS, seed=0)


@settings(max_examples=60, deadline=None)
@given(labelled_groups(), st.integers(1, 130), st.integers(0, 99))
def test_a_limit_is_met_exactly_and_keeps_the_label_shares(problem, limit, seed):
    targets, _ = problem
    rows = limit_rows(targets, limit, seed=seed)
    assert len(rows) == len(set(rows)) == min(limit, len(targets))
    assert rows.tolist() == sorted(rows)
    share = len(rows) / len(targets)
    assert np.abs(targets[rows].sum(axis=0) - share * targets.sum(axis=0)).max() < 2 * most_marks(targets, None)


def test_a_limit_keeps_the_labels_of_a_large_set():
    targets = (np.random.default_rng(0).random((3000, 6)) < np.geomspace(0.3, 0.01, 6)).astype(np.int64)
    rows = limit_rows(targets, 500, seed=0)
    np.testing.assert_allclose(targets[rows].sum(axis=0), targets.sum(axis=0) / 6, atol=1)
    assert rows.tolist() != limit_rows(targets, 500, seed=1).tolist()


def test_the_same_number_of_each_class_has_no_meaning_with_several_labels():
    with pytest.raises(UsageError, match="or use --limit, which keeps the share of every label"):
        take_per_class(np.eye(4, dtype=np.int64), 2, seed=0)
