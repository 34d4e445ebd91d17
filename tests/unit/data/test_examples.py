"""A few images of every class, drawn before any is decoded."""

import itertools

import numpy as np
import pytest

from crossgraft.data import open_dataset
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.describe import example_rows, open_examples
from crossgraft.edit.options import SheetOptions
from crossgraft.errors import DataError, UnreadableImageError, UsageError
from crossgraft.progress import Reporter
from support.tiny import make_images

TARGETS = np.array([0] * 10 + [1] * 4 + [2])
QUIET = Reporter(quiet=True)


def options(**said):
    return SheetOptions(data="", **said)


def test_classes_take_turns_the_largest_first():
    for number, counts in {1: [1, 0, 0], 2: [1, 1, 0], 3: [1, 1, 1], 4: [2, 1, 1], 6: [3, 2, 1], 99: [10, 4, 1]}.items():
        rows = example_rows(TARGETS, 3, number, seed=0)
        assert np.bincount(TARGETS[rows], minlength=3).tolist() == counts, number
        assert len(set(rows)) == len(rows) and (np.diff(TARGETS[rows]) >= 0).all()


def test_fewer_are_among_more_and_another_seed_draws_others():
    for seed in range(4):
        several = [set(example_rows(TARGETS, 3, number, seed=seed)) for number in range(1, 9)]
        assert all(few < more for few, more in itertools.pairwise(several))
    assert len({tuple(example_rows(TARGETS, 3, 3, seed=seed)) for seed in range(20)}) > 5


def test_of_several_labels_each_image_stands_once_and_one_without_any_is_left_out():
    targets = np.array([[1, 1], [1, 0], [0, 0], [0, 1]])
    assert set(example_rows(targets, 2, 9, seed=0)) == {0, 1, 3}
    rows = example_rows(targets, 2, 2, seed=0)
    assert targets[rows].any(axis=0).all()


def test_only_drawn_images_are_decoded_and_numbers_count_all(tmp_path):
    make_images(tmp_path / "scans", {"a": 6, "b": 3})
    rows = example_rows(np.array([0] * 6 + [1] * 3), 2, 4, seed=3)
    files = sorted((tmp_path / "scans").rglob("*.png"))
    for place, file in enumerate(files):
        if place not in rows:
            file.write_text("no image")
    found = open_examples(str(tmp_path / "scans"), options(), 4, seed=3, reporter=QUIET)
    assert found.numbers == [row + 1 for row in rows]
    assert [found.dataset.image_name(place) for place in range(4)] == [
        file.relative_to(tmp_path / "scans").as_posix() for file in map(files.__getitem__, rows)
    ]
    assert found.dataset.rows_used == "4 of 9 images"


def test_open_data_give_the_same_images_as_their_location(tmp_path):
    make_images(tmp_path / "scans", {"a": 6, "b": 3})
    closed = open_examples(str(tmp_path / "scans"), options(), 3, seed=1, reporter=QUIET)
    opened = open_examples(open_dataset(tmp_path / "scans", use_split=None), options(), 3, seed=1, reporter=QUIET)
    assert closed.numbers == opened.numbers
    assert closed.dataset.image_digests == opened.dataset.image_digests
    assert closed.dataset.fingerprint == opened.dataset.fingerprint


def test_one_class_is_enough_and_fewer_images_are_all(tmp_path):
    make_images(tmp_path / "scans", {"a": 2})
    assert open_examples(str(tmp_path / "scans"), options(), 5, seed=0, reporter=QUIET).numbers in ([1, 2], [2, 1])


def test_unreadable_images(tmp_path):
    make_images(tmp_path / "scans", {"a": 2, "b": 1})
    (tmp_path / "scans" / "b" / "00.png").write_text("no image")
    location = str(tmp_path / "scans")
    with pytest.raises(UnreadableImageError, match=r"b/00\.png"):
        open_examples(location, options(), 3, seed=0, reporter=QUIET)
    found = open_examples(location, options(skip_unreadable=True), 3, seed=0, reporter=QUIET)
    assert sorted(found.numbers) == [1, 2] and found.dataset.skipped_unreadable == ("b/00.png",)
    for file in (tmp_path / "scans").rglob("*.png"):
        file.write_text("no image")
    with pytest.raises(DataError, match="None of the 3 images drawn from scans can be decoded"):
        open_examples(location, options(skip_unreadable=True), 3, seed=0, reporter=QUIET)


def test_data_without_images_or_labels_are_refused(tmp_path):
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="No images"):
        open_examples(str(tmp_path / "nothing"), options(), 3, seed=0, reporter=QUIET)
    images = np.random.default_rng(0).integers(0, 255, (4, 9, 9), dtype=np.uint8)
    unlabelled = dataset_from_arrays(images, np.zeros((4, 2), dtype=int), class_names=["mass", "cyst"])
    with pytest.raises(DataError, match="no image with a label"):
        open_examples(unlabelled, options(), 3, seed=0, reporter=QUIET)
    make_images(tmp_path / "scans", {"a": 2, "b": 1})
    with pytest.raises(UsageError, match="label"):
        open_examples(str(tmp_path / "scans"), options(label_column="kind"), 3, seed=0, reporter=QUIET)
