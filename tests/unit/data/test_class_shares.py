"""Classes with shares that were asked for, and pairs from the same group."""

from collections import Counter

import numpy as np
import pytest

from crossgraft import edit_data, open_dataset
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.sampling import read_shares, take_class_shares, take_pairs
from crossgraft.errors import DataError, UnknownNameError, UsageError

NAMES = ("benign", "malignant", "normal")
TARGETS = np.repeat([0, 1, 2], [60, 30, 10])


def most_images(counts, shares):
    """Literally: the largest total of which no class needs more images than it has."""
    return max(
        total
        for total in range(1, sum(counts) + 1)
        if all(share * total <= n + 1e-9 for share, n in zip(shares, counts, strict=True))
    )


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7])
def test_as_many_images_as_there_can_be(share):
    two = np.repeat([0, 1], [40, 25])
    kept = take_class_shares(two, {"b": share}, class_names=("a", "b"), seed=0)
    counts = np.bincount(two[kept.numbers])
    assert counts.sum() == most_images((40, 25), (1 - share, share))
    assert abs(counts[1] / counts.sum() - share) < 1 / counts.sum()
    assert np.array_equal(kept.numbers, np.unique(kept.numbers))


def test_classes_that_are_not_named_divide_the_rest_as_before():
    kept = take_class_shares(TARGETS, {"malignant": 0.5}, class_names=NAMES, seed=1)
    counts = np.bincount(TARGETS[kept.numbers])
    assert counts[1] == 30
    assert counts[0] / counts[2] == pytest.approx(6, rel=0.2)
    assert "50\N{NO-BREAK SPACE}% malignant" in kept.said


def test_each_part_has_the_shares_and_a_limit_keeps_the_parts():
    targets, parts = np.tile([0, 0, 0, 1], 50), np.repeat(["train", "val", "test", ""], [100, 40, 40, 20])
    whole = take_class_shares(targets, {"b": 0.5}, class_names=("a", "b"), parts=parts, seed=0).numbers
    fewer = take_class_shares(targets, {"b": 0.5}, class_names=("a", "b"), parts=parts, limit=36, seed=0).numbers
    for numbers, sizes in ((whole, (50, 20, 20)), (fewer, (20, 8, 8))):
        assert Counter(parts[numbers].tolist()) == dict(zip(("train", "val", "test"), sizes, strict=True))
        for part in ("train", "val", "test"):
            assert targets[numbers][parts[numbers] == part].mean() == 0.5
    assert set(fewer) <= set(whole)
    again = take_class_shares(targets, {"b": 0.5}, class_names=("a", "b"), parts=parts, seed=0).numbers
    other = take_class_shares(targets, {"b": 0.5}, class_names=("a", "b"), parts=parts, seed=1).numbers
    assert np.array_equal(whole, again)
    assert not np.array_equal(whole, other)


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"malignat": 0.3}, UnknownNameError, "Did you mean malignant"),
        ({"benign": 0.5, "malignant": 0.3, "normal": 0.1}, UsageError, "add up to 0.9, not 1"),
        ({"benign": 0.5, "malignant": 0.5}, UsageError, "leave nothing for normal"),
        ("benign", UsageError, "write CLASS=SHARE"),
        ("benign=x", UsageError, "between 0 and 1, got 'x'"),
        ("benign=0.9,malignant=0.9", UsageError, "add up to 1.8, more than 1"),
        ("benign=0.1,benign=0.2", UsageError, "names the class benign twice"),
        ("", UsageError, "names no class"),
    ],
)
def test_wrong_shares_are_named(asked, error, message):
    with pytest.raises(error, match=message):
        take_class_shares(TARGETS, read_shares(asked), class_names=NAMES, seed=0)


def test_shares_that_cannot_be_had_are_refused():
    parts = np.repeat(["train", "val"], [95, 5])
    with pytest.raises(DataError, match="val has no image of the class benign"):
        take_class_shares(TARGETS, {"malignant": 0.3}, class_names=NAMES, parts=parts, seed=0)
    with pytest.raises(DataError, match="too few images for these class shares"):
        take_class_shares(np.repeat([0, 1], [50, 1]), {"b": 0.8}, class_names=("a", "b"), seed=0)
    with pytest.raises(UsageError, match="several labels"):
        take_class_shares(np.ones((4, 2), np.int64), {"b": 0.8}, class_names=("a", "b"), seed=0)


def test_a_part_has_one_image_fewer_where_only_that_gives_the_shares():
    """Of a limit of 24, 5 would fall to test and 3 to val: no half of each class."""
    targets, parts = np.tile([0, 1], 48), np.repeat(["train", "val", "test"], [62, 14, 20])
    kept = take_class_shares(targets, {"b": 0.5}, class_names=("a", "b"), parts=parts, limit=24, seed=0).numbers
    assert {part: np.bincount(targets[kept][parts[kept] == part]).tolist() for part in ("train", "val", "test")} == {
        "train": [8, 8], "val": [1, 1], "test": [2, 2]
    }  # fmt: skip


def test_of_each_group_as_many_of_every_class():
    rng = np.random.default_rng(0)
    targets, patients = rng.integers(0, 2, 200), rng.integers(0, 60, 200).astype(str)
    kept = take_pairs(targets, patients, "patient", class_names=("a", "b"), seed=3)
    counts = {p: [int(((patients == p) & (targets == c)).sum()) for c in (0, 1)] for p in np.unique(patients)}
    for patient, (a, b) in counts.items():  # literally
        of_patient = kept.numbers[patients[kept.numbers] == patient]
        assert np.bincount(targets[of_patient], minlength=2).tolist() == [min(a, b)] * 2
    lost = sum(not min(pair) for pair in counts.values())
    assert lost
    assert f"{lost} of {len(counts)} groups" in (kept.left_out or "")


def test_a_limit_keeps_pairs_whole_and_rows_without_a_group_have_none():
    targets, patients = np.tile([0, 1], 20), np.repeat(np.arange(20), 2).astype(str)
    patients[:4] = ""
    parts = np.repeat(["train", "test"], [30, 10])
    whole = take_pairs(targets, patients, "patient", class_names=("a", "b"), parts=parts, seed=0).numbers
    assert whole.tolist() == list(range(4, 40))
    kept = take_pairs(targets, patients, "patient", class_names=("a", "b"), parts=parts, limit=13, seed=0).numbers
    assert len(kept) == 12
    assert kept.min() >= 4
    assert all(count == 2 for count in Counter(patients[kept].tolist()).values())
    with pytest.raises(DataError, match="no group of the column patient with an image of every class"):
        take_pairs(targets, np.arange(40), "patient", class_names=("a", "b"), seed=0)
    with pytest.raises(UsageError, match="less than one set of 2 images in each of 2 parts"):
        take_pairs(targets, patients, "patient", class_names=("a", "b"), parts=parts, limit=3, seed=0)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Slices of patients: two with a finding, two without; every third patient has none."""
    from PIL import Image

    folder = tmp_path_factory.mktemp("slices")
    lines = ["path,label,patient,scanner"]
    rng = np.random.default_rng(0)
    for patient in range(9):
        for number in range(4):
            name = f"{patient}_{number}.png"
            Image.fromarray(rng.integers(0, 255, (12, 12), dtype=np.uint8)).save(folder / name)
            label = "nodule" if patient % 3 and number < 2 else "none"
            lines.append(f"{name},{label},P{patient},{'AB'[patient % 2]}")
    (folder / "slices.csv").write_text("\n".join(lines) + "\n")
    return folder / "slices.csv"


def test_opening_records_what_was_kept_and_says_what_was_not(table, capsys):
    from crossgraft.progress import Reporter

    pairs = open_dataset(table, use_split=None, pair_by="patient", reporter=Reporter())
    assert pairs.class_counts == (12, 12)
    assert set(pairs.groups) == {f"P{each}" for each in range(9) if each % 3}
    assert "12 pairs matched by patient, 3 of 9 groups without" in pairs.rows_used
    assert "3 of 9 groups of the column patient lack an image of a class" in capsys.readouterr().err
    shared = open_dataset(table, use_split=None, class_shares={"nodule": 0.5})
    assert shared.class_counts == (12, 12)
    assert "24 of 36 images with 50" in shared.rows_used
    with pytest.raises(UnknownNameError, match="Did you mean scanner"):
        open_dataset(table, use_split=None, pair_by="scaner")


@pytest.mark.parametrize(
    "options", [{"class_shares": "nodule=0.5", "pair_by": "patient"}, {"class_shares": "nodule=0.5", "per_class": 2}]
)
def test_two_ways_at_once_are_refused(table, options):
    with pytest.raises(UsageError, match="choose the same thing in different ways"):
        open_dataset(table, use_split=None, **options)


def test_edited_data_have_the_shares(table, tmp_path):
    edited = edit_data(table, edits="low_pass:0.2", class_shares="nodule=0.3", out=tmp_path / "edited")
    assert sorted(edited.dataset.class_counts) == [10, 24]  # 34 = 24 / 0.7, rounded down
    assert len((tmp_path / "edited" / "labels.csv").read_text().splitlines()) == 1 + sum(edited.dataset.class_counts)
    paired = edit_data(open_dataset(table, use_split=None), edits="low_pass:0.2", pair_by="patient")
    assert paired.dataset.class_counts == (12, 12)


def test_open_data_are_chosen_from_in_the_same_way():
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    data = dataset_from_arrays(images, np.repeat(["a", "b"], [30, 10]))
    edited = edit_data(data, edits="low_pass:0.2", class_shares={"b": 0.5})
    assert edited.dataset.class_counts == (10, 10)
