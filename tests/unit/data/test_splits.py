"""Splits keep class shares, never share a patient, and are refused for other data."""

import json
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from crossgraft.data import Split, dataset_from_arrays, k_folds, make_split, official_split
from crossgraft.data.splits import PARTS
from crossgraft.errors import DataError, StorageError, UsageError

FRACTIONS = {"train": 0.7, "val": 0.1, "test": 0.2}


def shares_of_classes(split, targets, part):
    return np.bincount(targets[split.rows(part)], minlength=targets.max() + 1) / np.bincount(targets)


@given(st.lists(st.integers(3, 80), min_size=2, max_size=5), st.integers(0, 1000))
def test_without_groups_every_class_is_cut_at_the_shares(counts, seed):
    targets = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    split = make_split(targets, fractions=FRACTIONS, seed=seed)
    assert sorted([*split.train, *split.val, *split.test]) == list(range(len(targets)))
    for part, fraction in FRACTIONS.items():
        wanted = fraction * np.array(counts)
        found = np.bincount(targets[split.rows(part)], minlength=len(counts))
        assert (found >= 1).all()
        large = np.array(counts) >= 10  # below that, "at least one each" weighs more than the shares
        assert (np.abs(found - wanted)[large] < 1).all()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_group_is_in_two_parts_and_every_class_is_in_every_part(data):
    seed = data.draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    num_groups = data.draw(st.integers(12, 60))
    group_of_row = np.repeat(np.arange(num_groups), rng.integers(1, 6, num_groups))
    class_of_group = rng.permutation(np.arange(num_groups) % data.draw(st.integers(2, 4)))
    mixed = rng.random(len(group_of_row)) < data.draw(st.sampled_from([0.0, 0.3]))
    targets = np.where(mixed, rng.permutation(class_of_group[group_of_row]), class_of_group[group_of_row])
    groups = np.array([f"patient {group}" for group in group_of_row])
    assume(all(len(np.unique(groups[targets == index])) >= 3 for index in np.unique(targets)))
    split = make_split(targets, groups, fractions=FRACTIONS, seed=seed)
    assert sorted([*split.train, *split.val, *split.test]) == list(range(len(targets)))
    in_part = [set(groups[split.rows(part)]) for part in PARTS]
    assert not (in_part[0] & in_part[1] or in_part[0] & in_part[2] or in_part[1] & in_part[2])
    for part in PARTS:
        assert set(targets[split.rows(part)]) == set(targets)


@pytest.mark.parametrize(("seed", "num_groups"), [(386, 12), (15, 12), (212, 13)])
def test_groups_of_several_classes_leave_no_part_without_a_class(seed, num_groups):
    rng = np.random.default_rng(seed)
    group_of_row = np.repeat(np.arange(num_groups), rng.integers(1, 6, num_groups))
    own = rng.permutation(np.arange(num_groups) % 4)[group_of_row]
    targets = np.where(rng.random(len(own)) < 0.3, rng.permutation(own), own)
    groups = np.array([f"patient {group}" for group in group_of_row])
    assert all(len(np.unique(groups[targets == index])) >= 3 for index in range(4))
    for fractions in (FRACTIONS, {"train": 0.6, "val": 0.2, "test": 0.2}):
        split = make_split(targets, groups, fractions=fractions, seed=seed)
        assert all(set(targets[split.rows(part)]) == {0, 1, 2, 3} for part in PARTS)


def test_where_no_cut_gives_every_part_every_class_one_is_drawn_all_the_same():
    targets, groups = np.array([0, 1, 1, 2, 2, 0]), np.array([0, 0, 1, 1, 2, 2])
    split = make_split(targets, groups, fractions={"train": 0.5, "test": 0.5}, seed=0)
    missing = [set(targets) - set(targets[split.rows(part)]) for part in ("train", "test")]
    assert sum(map(len, missing)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_with_many_groups_the_class_shares_are_near(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(300), rng.integers(1, 5, 300))
    targets = (rng.random(300) < 0.15).astype(int)[groups]
    split = make_split(targets, groups, fractions=FRACTIONS, seed=seed)
    for part, fraction in FRACTIONS.items():
        np.testing.assert_allclose(shares_of_classes(split, targets, part), fraction, atol=0.02)


def test_many_groups_of_many_classes_need_little_memory(monkeypatch):
    from crossgraft.split.result import describe_split

    targets = np.repeat(np.arange(1000), 8)
    groups = np.arange(len(targets)) // 4
    asked = []
    rows_of_part = Split.rows
    monkeypatch.setattr(Split, "rows", lambda self, part: asked.append(part) or rows_of_part(self, part))
    dataset = dataset_from_arrays(np.zeros((len(targets), 1, 1), np.uint8), targets, groups=groups)
    tracemalloc.start()
    try:
        split = make_split(targets, groups, fractions={"train": 0.5, "test": 0.5}, seed=0)
        record = describe_split(split, dataset, "arrays", targets, dataset.class_names)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [row.class_counts for row in record.splits] == [[4] * 1000] * 2
    assert len(asked) <= 6
    assert most < 6 * len(np.unique(groups)) * 1000  # bytes: counts of 64 bits, with a copy, would be 16 for each of both


def test_a_class_of_two_patients_is_in_both_parts():
    groups = np.repeat(np.arange(22), 4)
    targets = (groups >= 20).astype(int)  # the rare class has exactly one patient for each part
    for seed in range(10):
        split = make_split(targets, groups, fractions={"train": 0.8, "test": 0.2}, seed=seed)
        assert (targets[split.rows("test")] == 1).sum() == 4


def test_a_split_is_drawn_from_its_seed():
    targets = np.repeat([0, 1], 30)
    draws = [make_split(targets, fractions=FRACTIONS, seed=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1]
    assert draws[0].train != draws[2].train


@pytest.mark.parametrize(
    "fractions",
    [{"train": 0.5, "test": 0.4}, {"train": 1.2, "test": -0.2}, {"val": 0.5, "test": 0.5}, {"train": 1.0, "test": 0.0}, {}],
)
def test_fractions_without_a_meaning(fractions):
    with pytest.raises(UsageError, match="add up to 1"):
        make_split(np.repeat([0, 1], 9), fractions=fractions, seed=0)


def test_a_class_with_one_image_can_not_be_split():
    with pytest.raises(DataError, match="Class number 1 has 1 image and cannot be in each of train, test"):
        make_split(np.array([0, 0, 0, 1]), fractions={"train": 0.5, "test": 0.5}, seed=0)


def test_a_class_that_can_not_be_split_is_called_by_its_name():
    targets, names = np.array([0, 0, 0, 1]), ("benign", "malignant")
    with pytest.raises(DataError, match="The class malignant has 1 image"):
        make_split(targets, fractions={"train": 0.5, "test": 0.5}, seed=0, class_names=names)
    with pytest.raises(DataError, match="The class malignant has 1 group"):
        k_folds(np.tile(targets, 2), np.array(list("abcdaecd")), num_folds=2, seed=0, class_names=names)


def test_a_class_of_one_patient_can_not_be_split():
    with pytest.raises(DataError, match=r"Class number 1 has 1 group \(patient\)"):
        make_split(np.array([0, 0, 0, 1, 1]), np.array(list("abcdd")), fractions={"train": 0.5, "test": 0.5}, seed=0)


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_cover_every_row_once(grouped):
    targets = np.tile([0, 1, 1], 20)
    groups = np.repeat(np.arange(15), 4) if grouped else None
    splits = k_folds(targets, groups, num_folds=5, seed=0)
    assert sorted(row for split in splits for row in split.test) == list(range(60))
    for split in splits:
        assert sorted([*split.train, *split.test]) == list(range(60))
        if groups is not None:
            assert not set(groups[split.rows("train")]) & set(groups[split.rows("test")])
        assert 2 <= (targets[split.rows("test")] == 0).sum() <= 6
    assert splits != k_folds(targets, groups, num_folds=5, seed=1)
    assert splits[0].method.startswith("fold 1 of 5")
    assert ("leakage not checked" in splits[0].method) == (not grouped)


@pytest.mark.parametrize(
    ("targets", "groups", "message"),
    [
        ([0, 0, 0, 0, 1, 1], None, "Class number 1 has 2 images"),
        ([0, 0, 0, 1, 1, 1], "aabbab", "There are 2 groups"),
        ([0, 0, 0, 1, 1, 1], "abcddd", "Class number 1 has 1 group"),
    ],
)
def test_data_that_can_not_be_folded(targets, groups, message):
    with pytest.raises(DataError, match=message):
        k_folds(np.array(targets), None if groups is None else np.array(list(groups)), num_folds=3, seed=0)


def test_one_fold_is_no_fold():
    with pytest.raises(UsageError, match="at least 2"):
        k_folds(np.array([0, 1]), num_folds=1, seed=0)


@pytest.fixture
def dataset(pixels):
    return dataset_from_arrays([pixels(seed) for seed in range(10)], [0, 1] * 5, name="ten")


@pytest.fixture
def split(dataset):
    fractions = {"train": 0.6, "test": 0.4}
    return make_split(dataset.targets, fractions=fractions, seed=0, data_fingerprint=dataset.listing_fingerprint)


def test_a_saved_split_is_read_back(tmp_path, split):
    split.save(tmp_path / "split.json")
    assert Split.load(tmp_path / "split.json") == split


def test_another_split_is_replaced_only_when_that_is_said(tmp_path, split):
    file = tmp_path / "split.json"
    split.save(file)
    other = split.model_copy(update={"train": split.test, "test": split.train})
    with pytest.raises(UsageError, match="holds a split already"):
        other.save(file)
    assert Split.load(file) == split
    other.save(file, overwrite=True)
    assert Split.load(file) == other
    file.write_text("image,label")
    with pytest.raises(UsageError, match="is not a split of crossgraft"):
        other.save(file, overwrite=True)
    assert file.read_text() == "image,label"


def test_applying_a_split_takes_its_rows(dataset, split):
    test = split.apply(dataset, "test")
    assert [dataset.image_name(row) for row in split.test] == [test.image_name(row) for row in range(len(test))]
    assert test.split_method == split.method
    assert "test rows of the split" in test.rows_used


def test_a_split_is_refused_for_other_data(dataset, split, pixels):
    relabelled = dataset_from_arrays([pixels(seed) for seed in range(10)], [1, 0] * 5, name="ten")
    for other in (dataset.take(range(9)), relabelled):
        with pytest.raises(DataError, match="made for 10 other images"):
            split.apply(other)


def by_patient(dataset, patients):
    return replace(dataset, groups=None if patients is None else np.asarray(patients), group_column="patient")


def split_by(dataset):
    fractions = {"train": 0.6, "test": 0.4}
    made = make_split(dataset.targets, dataset.groups, fractions=fractions, seed=0, data_fingerprint=dataset.listing_fingerprint)
    return made.model_copy(update={"rows_fingerprint": dataset.rows_fingerprint})


def test_a_split_is_refused_where_it_divides_the_groups_of_today(dataset, split, tmp_path):
    """Drawn by image, by other patients, or saved before groups were told from rows: counts are said, no name is."""
    pairs = by_patient(dataset, [f"PLANTED-{row // 2}" for row in range(10)])
    of_four = by_patient(dataset, [f"PLANTED-{row // 4}" for row in range(10)])
    with pytest.raises(DataError, match=r"these 10 images of ten, but with no groups: \d of 5 groups by patient have") as one:
        split.apply(pairs)
    with pytest.raises(DataError, match=r"but with other groups: \d of 3 groups by patient ha(s|ve) images in more") as two:
        split_by(pairs).apply(of_four)
    assert "PLANTED" not in str(one.value) + str(two.value)
    old = split_by(pairs).model_copy(update={"rows_fingerprint": ""})
    with pytest.raises(DataError, match="names, labels or groups differ"):
        old.apply(of_four)
    assert split_by(pairs).apply(pairs, "test")


def test_a_split_that_divides_no_group_of_today_is_kept(dataset, split):
    parts = split.part_names()
    together = by_patient(dataset, [f"{part} {row % 2}" for row, part in enumerate(parts)])
    assert len(split.apply(together, "test")) == len(split.test)
    renamed = by_patient(dataset, [f"{part} of today" for part in parts])
    assert len(split_by(together).apply(renamed)) == len(split_by(together).train)


def test_a_split_by_patients_is_refused_without_them(dataset):
    made = split_by(by_patient(dataset, [row // 2 for row in range(10)]))
    with pytest.raises(DataError, match=r"opened without groups now\. Name their column with --group-column"):
        made.apply(dataset)


def test_a_copy_from_another_process_has_no_names_to_compare(dataset, split):
    other = pickle.loads(pickle.dumps(dataset))
    assert len(split.apply(other)) == len(split.train)
    with pytest.raises(DataError, match="names, labels or groups differ"):
        split.apply(replace(other, _sealed=("x", "y"), groups=np.arange(10)))


def test_an_empty_part_is_an_error(dataset, split):
    with pytest.raises(DataError, match="no val rows"):
        split.apply(dataset, "val")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": [0]}, "a row is in two parts"),
        ({"train": [10], "test": []}, "not between 0 and 9"),
        ({"train": "all"}, r"\(train\)"),
        ({"colour": 1}, r"\(colour\)"),
    ],
)
def test_files_that_are_not_splits(tmp_path, split, change, message):
    content = split.model_dump(mode="json") | {"train": [0, 1], "test": [2]} | change
    (tmp_path / "split.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=message):
        Split.load(tmp_path / "split.json")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"[1, 2]"])
def test_files_that_can_not_be_read(tmp_path, content):
    if content is not None:
        (tmp_path / "split.json").write_bytes(content)
    with pytest.raises(DataError, match=r"split\.json"):
        Split.load(tmp_path / "split.json")


def test_a_split_that_can_not_be_written(tmp_path, split):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StorageError):
        split.save(tmp_path / "file" / "split.json")


def test_the_official_split_is_kept(tmp_path, pixels):
    from crossgraft.data import open_dataset

    images = np.stack([pixels(seed) for seed in range(6)])
    parts = {"train": slice(0, 4), "test": slice(4, 6)}
    arrays = {f"{part}_images": images[rows] for part, rows in parts.items()}
    labels = {f"{part}_labels": np.arange(6)[rows] % 2 for part, rows in parts.items()}
    np.savez(tmp_path / "data.npz", **arrays, **labels)
    split = official_split(open_dataset(tmp_path / "data.npz", use_split=None))
    assert (split.train, split.val, split.test) == ((0, 1, 2, 3), (), (4, 5))
    assert split.seed is None


def test_data_without_splits_have_no_official_one(dataset):
    with pytest.raises(DataError, match="ten has no splits"):
        official_split(dataset)


def test_a_split_that_is_not_there_is_told_with_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"There is no split file .*nothere\.json\. Give the split\.json .* --holdout or --folds"):
        Split.load(tmp_path / "nothere.json")
