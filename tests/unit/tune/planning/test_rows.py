from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DataError, UsageError
from crossgraft.tune.planning.rows import columns_of
from support.rows import rows_of


def dataset(n=60, *, groups=None, splits=None, labels=None):
    pixels = np.random.default_rng(0).integers(0, 255, (n, 6, 6, 3), dtype=np.uint8)
    made = dataset_from_arrays(pixels, np.arange(n) % 3 if labels is None else labels, groups=groups)
    return made if splits is None else replace(made, splits=np.asarray(splits))


def is_partition(parts, n):
    rows = np.concatenate([parts.train, parts.val, parts.test])
    return np.array_equal(np.sort(rows), np.arange(n))


def test_parts_that_are_given_are_kept():
    splits = np.array(["train", "val", "test"])[np.arange(60) // 20]
    rows = rows_of(dataset(splits=splits))
    (parts,) = rows.parts
    assert parts.train.tolist() == list(range(20))
    assert parts.val.tolist() == list(range(20, 40))
    assert parts.test.tolist() == list(range(40, 60))
    assert set(rows.origins.values()) == {"given with the data"}


def test_missing_val_and_test_come_from_train_alone_and_keep_class_shares():
    splits = np.where(np.arange(60) < 45, "train", "test")
    parts = rows_of(dataset(splits=splits)).parts[0]
    assert parts.test.tolist() == list(range(45, 60))
    assert parts.val.max() < 45
    assert np.bincount(parts.val % 3).tolist() == [3, 3, 3]
    of_train_only = rows_of(dataset(splits=["train"] * 60)).parts[0]
    assert is_partition(of_train_only, 60)
    assert np.bincount(of_train_only.test % 3).tolist() == [4, 4, 4]


def test_every_row_has_one_part_and_the_seed_decides_which():
    one, same, other = (rows_of(dataset(), seed=seed).parts[0] for seed in (0, 0, 1))
    assert is_partition(one, 60)
    assert one.test.tolist() == same.test.tolist() != other.test.tolist()


def test_groups_stay_together_and_this_is_said():
    groups = np.arange(60) // 4
    rows = rows_of(dataset(groups=groups))
    parts = rows.parts[0]
    assert not set(groups[parts.train]) & set(groups[parts.val])
    assert not set(groups[np.concatenate([parts.train, parts.val])]) & set(groups[parts.test])
    assert rows.num_shared_groups == 0
    assert rows.leakage == "No group is in two parts (15 groups of column groups)."


def test_shared_groups_of_a_given_split_are_counted_and_missing_groups_are_said():
    splits = np.array(["train", "val", "test"])[np.random.default_rng(0).permutation(60) % 3]
    rows = rows_of(dataset(groups=np.arange(60) // 4, splits=splits))
    assert rows.num_shared_groups == 15
    assert rows.leakage.startswith("Leakage: of the 15 groups of column groups, 15 have images")
    assert rows_of(dataset()).leakage.startswith("Patient leakage not checked")


def test_folds_test_every_row_once_and_take_val_from_the_others():
    groups = np.arange(60) // 2
    rows = rows_of(dataset(groups=groups), folds=3)
    assert np.array_equal(np.sort(np.concatenate([parts.test for parts in rows.parts])), np.arange(60))
    assert all(is_partition(parts, 60) and parts.val.size for parts in rows.parts)
    assert rows.num_shared_groups == 0
    assert rows.split_record() is None
    (second,) = rows_of(dataset(groups=groups), folds=3, fold=1).parts
    assert second.test.tolist() == rows.parts[1].test.tolist()
    assert second.name == "fold-1"


def test_fewer_training_images_leave_val_and_test_whole():
    whole, fewer = rows_of(dataset()), rows_of(dataset(), per_class=5)
    assert fewer.parts[0].test.tolist() == whole.parts[0].test.tolist()
    assert np.bincount(fewer.parts[0].train % 3).tolist() == [5, 5, 5]
    assert set(fewer.parts[0].train) < set(whole.parts[0].train)
    assert len(rows_of(dataset(), limit=30).dataset) == 30


def test_a_saved_split_gives_the_same_rows_again(tmp_path):
    rows = rows_of(dataset())
    rows.split_record().save(tmp_path / "split.json")
    again = rows_of(dataset(), split=tmp_path / "split.json", seed=5)
    assert again.parts[0].train.tolist() == rows.parts[0].train.tolist()
    assert again.parts[0].test.tolist() == rows.parts[0].test.tolist()
    with pytest.raises(DataError, match="other images"):
        rows_of(dataset(57), split=tmp_path / "split.json")


def test_several_labels_keep_their_shares():
    labels = (np.random.default_rng(1).random((60, 2)) < 0.5).astype(int)
    rows = rows_of(dataset(labels=labels), holdout=0.3)
    parts = rows.parts[0]
    assert is_partition(parts, 60)
    assert abs(labels[parts.test].mean() - labels.mean()) < 0.1
    assert [row.name for row in rows.split_rows()] == ["train", "val", "test"]


def test_without_val_there_is_none():
    rows = rows_of(dataset(), val_fraction=0.0)
    assert not rows.has_val
    assert rows.parts[0].val.size == 0


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        ({"val_fraction": 1.0}, UsageError, "--val-fraction must lie between 0 and 1"),
        ({"folds": 3, "holdout": 0.2}, UsageError, "--holdout and --folds choose the same thing"),
        ({"fold": 1}, UsageError, "--fold says which of several folds"),
        ({"folds": 3, "fold": 3}, UsageError, "--fold must lie between 0 and 2"),
        ({"label_column": "x"}, UsageError, "belongs to opening the data"),
    ],
)
def test_contradicting_options(options, kind, said):
    with pytest.raises(kind, match=said):
        rows_of(dataset(), **options)


def test_data_that_can_not_be_tuned_on_are_named():
    with pytest.raises(DataError, match="no split train"):
        rows_of(dataset(splits=["test"] * 60))
    with pytest.raises(UsageError, match="split of its own, which is kept"):
        rows_of(dataset(splits=["train", "test"] * 30), folds=3)
    of_two = np.where(np.arange(60) % 3 == 2, "test", "train")
    with pytest.raises(DataError, match="no image has the class 2"):
        rows_of(dataset(splits=of_two))


def test_columns_of_subgroups_must_exist():
    made = replace(dataset(), attributes={"sex": np.array(["f", "m"] * 30)})
    assert list(columns_of(made, " sex ")) == ["sex"]
    assert columns_of(made, None) == {}
    with pytest.raises(UsageError, match=r"no such further column \(it has: sex\)"):
        rows_of(made, subgroups=["age"])


def test_what_rank_would_have_opened_is_known():
    splits = np.where(np.arange(60) < 45, "train", "test")
    made = dataset(splits=splits)
    given = rows_of(made)
    assert given.ranked_fingerprint == made.take(given.parts[0].train).fingerprint
    drawn = rows_of(dataset())
    assert drawn.ranked_fingerprint == dataset().take(drawn.parts[0].train).fingerprint
    assert rows_of(dataset(), folds=3).ranked_fingerprint == dataset().fingerprint


def test_one_class_is_refused():
    with pytest.raises(DataError, match="All 60 images of arrays have the class 0, so there is nothing to tell apart"):
        rows_of(dataset(labels=np.zeros(60, dtype=int)))


def test_folds_do_not_divide_pairs(tmp_path):
    """Two images of each of 12 lesions, and two lesions of each patient."""
    table = ["path,label,patient,lesion"]
    for number in range(24):
        Image.fromarray(np.full((8, 8), 10 * number, dtype=np.uint8)).save(tmp_path / f"{number}.png")
        table.append(f"{number}.png,{'ab'[number % 2]},P{number // 4},L{number // 2}")
    (tmp_path / "table.csv").write_text("\n".join(table) + "\n")
    for column in ("patient", "lesion"):  # lesions of a patient stay with it
        rows = rows_of(tmp_path / "table.csv", folds=3, pair_by="lesion", group_column=column)
        assert len(rows.dataset) == 24
    with pytest.raises(UsageError, match=r"drawn by image, would divide pairs of one lesion .* --group-column lesion"):
        rows_of(tmp_path / "table.csv", folds=3, pair_by="lesion", group_column="none")
