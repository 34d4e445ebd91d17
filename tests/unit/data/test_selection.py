"""Which rows are used, decided before any image is opened."""

import numpy as np
import pytest

from crossgraft.data.selection import RowSelection
from crossgraft.data.sources import SourceRows
from crossgraft.errors import DataError, UsageError

TARGETS = np.array([0, 1] * 10)


@pytest.fixture
def rows():
    return SourceRows(
        name="data",
        labels=TARGETS,
        image_names=[str(row) for row in range(20)],
        decode=lambda row: np.zeros((1, 1, 1), np.uint8),
        groups=np.repeat(np.arange(10), 2),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"holdout": 0.2, "folds": 5}, "--holdout and --folds choose the same thing"),
        ({"limit": 5, "per_class": 2}, "--limit and --per-class choose"),
        ({"holdout": 1.0}, "--holdout must be 0, or lie between 0 and 1, not 1.0"),
        ({"holdout": -0.1}, "--holdout must be 0, or lie"),
        ({"folds": 5, "fold": 5}, "--fold must lie between 0 and 4, not 5"),
        ({"folds": 5, "fold": -1}, "--fold must lie"),
        ({"fold": 1}, "give their number with --folds"),
    ],
)
def test_contradictions(options, message):
    with pytest.raises(UsageError, match=message):
        RowSelection(**options)


def test_without_a_wish_there_is_no_split(rows):
    assert RowSelection().make_split(rows, TARGETS, ("a", "b")) is None
    assert RowSelection().fewer(rows, np.arange(20), TARGETS, ("a", "b"), whole=True) is None


def test_a_held_out_part_keeps_groups_together(rows):
    split = RowSelection(holdout=0.3).make_split(rows, TARGETS, ("a", "b"))
    assert len(split.test) == 6
    assert not set(rows.groups[list(split.train)]) & set(rows.groups[list(split.test)])


def test_each_fold_is_held_out_once(rows):
    held_out = [RowSelection(folds=5, fold=fold).make_split(rows, TARGETS, ("a", "b")).test for fold in range(5)]
    assert sorted(row for part in held_out for row in part) == list(range(20))


def test_an_official_split_is_not_overruled(rows):
    official = SourceRows(**{**vars(rows), "splits": np.array(["train"] * 20)})
    with pytest.raises(UsageError, match="has a split of its own, which is kept"):
        RowSelection(holdout=0.2).make_split(official, TARGETS, ("a", "b"))


def test_a_split_of_other_rows_is_refused(rows, tmp_path):
    RowSelection(holdout=0.3).make_split(rows, TARGETS, ("a", "b")).save(tmp_path / "split.json")
    renamed = SourceRows(**{**vars(rows), "image_names": [f"new {row}" for row in range(20)]})
    with pytest.raises(DataError, match="made for 20 other images than the 20 of data"):
        RowSelection(split=tmp_path / "split.json").make_split(renamed, TARGETS, ("a", "b"))


@pytest.mark.parametrize(
    ("options", "said"), [({"per_class": 3}, "3 images of each class"), ({"limit": 7}, "7 of 20 images"), ({"limit": 70}, "")]
)
def test_words_for_what_is_left(rows, options, said):
    assert RowSelection(**options).fewer(rows, np.arange(20), TARGETS, ("a", "b"), whole=False).said == said
