"""What is said of rows by what they are for."""

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.tune.parts import FoldRows, TuningRows


def rows(*parts, groups=None, **fields):
    pixels = np.arange(12, dtype=np.uint8)[:, None, None, None] + np.zeros((12, 4, 4, 3), np.uint8)
    dataset = dataset_from_arrays(pixels, np.arange(12) % 2, groups=groups)
    origins = {"train": "given", "val": "drawn", "test": "given"}
    return TuningRows(dataset, tuple(parts), origins, **fields)


def parts(train, val, test, fold=None):
    return FoldRows(*(np.asarray(each, dtype=np.int64) for each in (train, val, test)), fold)


WHOLE = parts(range(6), range(6, 8), range(8, 12))


def test_each_part_has_its_row_with_counts_and_origin():
    shown = rows(WHOLE, groups=np.arange(12) // 4).split_rows()
    assert [(row.name, row.num_images, row.num_groups, row.class_counts, row.origin) for row in shown] == [
        ("train", 6, 2, [3, 3], "given"),
        ("val", 2, 1, [1, 1], "drawn"),
        ("test", 4, 1, [2, 2], "given"),
    ]
    without_val = rows(parts(range(8), [], range(8, 12)))
    assert [row.name for row in without_val.split_rows()] == ["train", "test"]
    assert not without_val.has_val
    assert rows(WHOLE).split_in_words == "train and test: given; val: drawn"


def test_groups_on_both_sides_of_one_fold_are_leakage_and_of_two_folds_are_not():
    shared = rows(WHOLE, groups=np.arange(12) // 4)
    assert shared.num_shared_groups == 1  # the second group is in train and in val
    assert (
        shared.leakage == "Leakage: of the 3 groups of column groups, 1 have images in more than one part; results are too good."
    )
    folds = (parts(range(6), [], range(6, 12), 0), parts(range(6, 12), [], range(6), 1))
    apart = rows(*folds, groups=np.arange(12) // 6, num_folds=2)
    assert apart.num_shared_groups == 0
    assert apart.leakage == "No group is in two parts (2 groups of column groups)."
    assert rows(WHOLE).leakage.startswith("Patient leakage not checked")


def test_folds_are_not_one_split():
    folded = rows(parts(range(6), [], range(6, 12), 3), num_folds=5)
    assert folded.split_record() is None
    assert [row.name for row in folded.split_rows()] == ["test of fold 3"]
    assert (folded.parts[0].name, WHOLE.name) == ("fold-3", "")


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_rows_of_a_part_by_its_name(part):
    assert WHOLE.rows(part) is getattr(WHOLE, part)
