"""Fewer images, fairly drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.data.sampling import limit_rows, limit_rows_of_parts, share_out, take_per_class
from crossgraft.errors import DataError, UsageError

TARGETS = np.array([0] * 6 + [1] * 3 + [2])


def test_the_same_number_of_each_class():
    rows = take_per_class(np.array([0, 1, 0, 1, 0, 1, 1]), 2, seed=0)
    assert rows.tolist() == sorted(rows)
    assert np.array([0, 1, 0, 1, 0, 1, 1])[rows].tolist().count(0) == 2
    assert len(set(rows)) == 4


def test_draws_depend_on_the_seed_and_on_nothing_else():
    draws = [take_per_class(np.repeat([0, 1], 50), 10, seed=seed).tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_a_class_with_too_few_images_is_named():
    with pytest.raises(DataError, match="class rare has 1 image; 2"):
        take_per_class(TARGETS, 2, seed=0, class_names=["a", "b", "rare"])


def test_less_than_one_image_a_class_is_refused():
    with pytest.raises(UsageError, match="at least 1"):
        take_per_class(TARGETS, 0, seed=0)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(0, 80))
def test_shares_are_kept(counts, extra):
    counts = np.array(counts)
    total = min(len(counts) + extra, int(counts.sum()))
    shares = share_out(counts, total)
    assert shares.sum() == total
    assert (shares >= 1).all() and (shares <= counts).all()
    targets = np.repeat(np.arange(len(counts)), counts)
    np.testing.assert_array_equal(np.bincount(targets[limit_rows(targets, total, seed=0)]), shares)


def test_proportions_of_a_large_sample():
    np.testing.assert_array_equal(share_out(np.array([600, 300, 100]), 100), [60, 30, 10])


def test_a_limit_above_the_number_of_images_keeps_all():
    assert limit_rows(TARGETS, 99, seed=0).tolist() == list(range(10))


def test_a_limit_below_the_number_of_classes_is_refused():
    with pytest.raises(UsageError, match="--limit 2 is less than the 3 classes"):
        limit_rows(TARGETS, 2, seed=0)


def test_fewer_rows_of_a_split_keep_the_shares_of_parts_and_a_class_of_each_in_train():
    targets = np.array([0] * 80 + [1] * 18 + [2] * 2)
    parts = np.array((["train"] * 6 + ["val", "test", "test", ""]) * 10)
    chosen = limit_rows_of_parts(targets, parts, 30, seed=0)
    found = {name: int((parts[chosen] == name).sum()) for name in ("train", "val", "test", "")}
    assert found == {"train": 20, "val": 3, "test": 7, "": 0}
    assert set(targets[chosen][parts[chosen] == "train"]) == set(targets[parts == "train"])
    assert chosen.tolist() == sorted(chosen)
    assert chosen.tolist() == limit_rows_of_parts(targets, parts, 30, seed=0).tolist()
    assert len(limit_rows_of_parts(targets, parts, 1000, seed=0)) == 90  # a row of no part is left out
    with pytest.raises(UsageError, match="less than the 3 parts"):
        limit_rows_of_parts(targets, parts, 2, seed=0)


def test_a_part_with_fewer_images_than_classes_has_its_largest_classes():
    targets = np.tile(np.arange(5), 20)
    parts = np.repeat(["train", "test"], [75, 25])
    chosen = limit_rows_of_parts(targets, parts, 12, seed=3)
    assert np.bincount(targets[chosen][parts[chosen] == "train"]).min() >= 1
    assert (parts[chosen] == "test").sum() == 3


def test_labels_of_a_split_are_limited_by_part():
    labels = (np.random.default_rng(0).random((60, 3)) < 0.5).astype(np.int64)
    parts = np.repeat(["train", "test"], [40, 20])
    chosen = limit_rows_of_parts(labels, parts, 15, seed=0)
    assert [(parts[chosen] == name).sum() for name in ("train", "test")] == [10, 5]
