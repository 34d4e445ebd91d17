"""The split that commands draw by themselves: the same for all, whole groups, rare classes in train."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.data.selection import TEST_SHARE, complete_split
from crossgraft.data.splits import PARTS
from crossgraft.errors import DataError
from crossgraft.options.data import VAL_SHARE

LISTING = "0" * 64


def split(targets, groups=None, given=None, **more):
    return complete_split(np.asarray(targets), groups, given, **{"seed": 0, "data_fingerprint": LISTING, **more})


@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(20, 120), st.booleans())
@settings(max_examples=50, deadline=None)
def test_every_row_has_one_part_and_no_group_two(seed, num_classes, n, is_grouped):
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, num_classes, n)
    groups = rng.integers(0, max(2, n // 4), n) if is_grouped else None
    found = split(targets, groups, seed=seed)
    assert sorted([*found.train, *found.val, *found.test]) == list(range(n))
    assert set(targets[found.rows("train")]) == set(targets)
    for part, other in (("train", "val"), ("train", "test"), ("val", "test")):
        units = np.arange(n) if groups is None else groups
        assert not set(units[found.rows(part)]) & set(units[found.rows(other)])


def test_shares_are_a_fifth_and_a_fifth_of_the_rest():
    found = split(np.repeat([0, 1], 50))
    assert (len(found.test), len(found.val), len(found.train)) == (20, 16, 64)
    assert np.bincount(np.repeat([0, 1], 50)[found.rows("test")]).tolist() == [10, 10]
    assert (TEST_SHARE, VAL_SHARE) == (0.2, 0.2)
    assert found.origins["test"] == "20% of all rows, drawn by image"
    assert found.origins["val"] == "20% of all rows outside test, drawn by image"
    assert found.method.endswith("; stratified by class")


def test_test_rows_do_not_depend_on_the_share_of_val_and_all_depends_on_the_seed():
    targets = np.repeat([0, 1, 2], 30)
    one, other = split(targets), split(targets, val_share=0.0)
    assert one.test == other.test
    assert other.val == ()
    assert set(other.train) == {*one.train, *one.val}
    assert split(targets, seed=1).test != one.test
    assert split(targets) == one


@pytest.mark.parametrize("groups", [None, np.array([*range(20), *range(20), 90, 91, 91])])
def test_a_class_that_cannot_be_in_two_parts_stays_in_train(groups):
    targets = np.array([0] * 20 + [1] * 20 + [2] + [3, 3])
    found = split(targets, groups)
    assert 40 in found.train
    if groups is not None:
        assert {41, 42} <= {*found.train}  # one patient
    else:
        assert len({41, 42} & {*found.test}) == 1
    assert {0, 1} <= {*targets[found.rows("test")]}


def test_a_patient_who_stays_may_make_another_class_rare():
    targets = np.array([0] * 10 + [1, 1, 2])
    groups = np.array([*range(10), 50, 51, 51])  # the only image of class 2 keeps an image of class 1 with it
    found = split(targets, groups)
    assert {10, 11, 12} <= {*found.train}


def test_given_parts_are_kept_and_missing_ones_come_from_train():
    given = np.array(["train"] * 30 + ["test"] * 8 + [""] * 2)
    found = split(np.arange(40) % 2, given=given)
    assert found.test == tuple(range(30, 38))
    assert len(found.val) == 6
    assert found.origins["val"] == "20% of the training rows, drawn by image"
    alone = split(np.arange(40) % 2, groups=np.arange(40), given=np.array(["train"] * 40), group_column="lesion")
    assert alone.origins["test"] == "20% of the training rows, drawn by lesion"
    assert alone.origins["val"] == "20% of the training rows outside test, drawn by lesion"
    assert not {38, 39} & {*found.train, *found.val, *found.test}
    assert found.origins["test"] == "given with the data"
    complete = np.array([*PARTS] * 10)
    assert split(np.arange(30) % 2, given=complete).seed is None
    with pytest.raises(DataError, match="no split train"):
        split(np.arange(4) % 2, given=np.array(["test"] * 4))


def test_parts_that_are_elsewhere_are_not_drawn():
    """`rank` lists the training rows alone, and finds the same rows in them as `tune` in all."""
    given = np.array(["train"] * 40 + ["test"] * 10)
    whole = split(np.arange(50) % 2, given=given)
    alone = split(np.arange(40) % 2, given=given[:40], elsewhere=("test",))
    assert (alone.train, alone.val, alone.test) == (whole.train, whole.val, ())
    assert alone.origins == whole.origins


def test_labels_keep_their_shares():
    labels = (np.random.default_rng(0).random((200, 3)) < 0.4).astype(np.int64)
    found = split(labels)
    assert np.abs(labels[found.rows("test")].mean(axis=0) - labels.mean(axis=0)).max() < 0.06
    assert found.method.endswith("; stratified by label")


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_images_all_train_where_none_can_be_spared(n):
    found = split(np.arange(n))
    assert found.train == tuple(range(n))
    labels = np.ones((1, 2), dtype=np.int64)
    assert split(labels).train == (0,)
