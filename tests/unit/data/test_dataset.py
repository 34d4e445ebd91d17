"""Rows, subsets and classes of a data set."""

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.errors import CrossgraftError, DataError, UsageError


@pytest.fixture
def animals(pixels):
    """Six images of three classes and three groups."""
    return dataset_from_arrays(
        [pixels(seed, height=4 + seed) for seed in range(6)],
        ["dog", "cat", "cow", "dog", "cat", "dog"],
        groups=["a", "a", "b", "b", "c", "c"],
        name="animals",
    )


def test_rows_read_back(animals, pixels):
    assert len(animals) == 6
    assert animals.class_names == ("cat", "cow", "dog")
    assert animals.targets.tolist() == [2, 0, 1, 2, 0, 2]
    assert animals.class_counts == (2, 1, 3)
    np.testing.assert_array_equal(animals.read(3), pixels(3, height=7))
    assert animals.image_name(3) == "animals row 3"


def test_taking_rows_keeps_everything_in_step(animals, pixels):
    taken = animals.take([5, 0], rows_used="two rows", split_method="by hand")
    assert taken.labels.tolist() == ["dog", "dog"]
    assert taken.groups.tolist() == ["c", "a"]
    assert taken.image_name(0) == "animals row 5"
    assert (taken.rows_used, taken.split_method) == ("two rows", "by hand")
    np.testing.assert_array_equal(taken.read(0), pixels(5, height=9))
    assert taken.image_kinds == {"4×6 grey 8-bit": 1, "9×6 grey 8-bit": 1}


def test_taking_rows_keeps_the_class_list(animals):
    dogs = animals.take(animals.labels == "dog")
    assert dogs.class_names == animals.class_names
    assert dogs.class_counts == (0, 0, 3)
    assert dogs.rows_used == "3 of 6 rows (all rows (no split given))"


def test_taking_twice_is_taking_once(animals):
    twice = animals.take([1, 3, 5]).take([2, 0])
    assert twice.fingerprint == animals.take([5, 1]).fingerprint
    assert twice.fingerprint != animals.take([1, 5]).fingerprint


@pytest.mark.parametrize(
    ("rows", "message"),
    [([], "empty"), ([6], "Row 6"), ([-7], "Row -7"), (np.array([True]), "6 rows"), (np.zeros(6, bool), "empty")],
)
def test_rows_that_do_not_exist(animals, rows, message):
    with pytest.raises(UsageError, match=message):
        animals.take(rows)


def test_selected_classes_count_from_zero(animals):
    selected = animals.select_classes(["dog", "cat"])
    assert selected.class_names == ("dog", "cat")
    assert selected.targets.tolist() == [0, 1, 0, 1, 0]
    assert selected.labels.tolist() == ["dog", "cat", "dog", "cat", "dog"]


@pytest.mark.parametrize("names", [["cat", "bird"], ["cat", "cat"]])
def test_classes_that_can_not_be_selected(animals, names):
    with pytest.raises(UsageError, match="the classes are cat, cow, dog"):
        animals.select_classes(names)


def test_the_fingerprint_sees_pixels_labels_and_groups(pixels):
    images = [pixels(0), pixels(1)]
    base = dataset_from_arrays(images, [0, 1]).fingerprint
    assert dataset_from_arrays(images, [0, 1], name="renamed").fingerprint == base
    assert dataset_from_arrays(images, [1, 0]).fingerprint != base
    assert dataset_from_arrays(images, [0, 1], groups=["p", "q"]).fingerprint != base
    changed = images[1].copy()
    changed[0, 0] ^= 1
    assert dataset_from_arrays([images[0], changed], [0, 1]).fingerprint != base


def test_grey_arrays_need_no_channel_axis():
    assert dataset_from_arrays(np.zeros((2, 4, 5), np.uint8), [0, 1]).read(0).shape == (4, 5, 1)


@pytest.mark.parametrize(
    "image", [np.zeros((4, 4, 2), np.uint8), np.zeros(4, np.uint8), np.zeros((4, 4), np.int64), np.zeros((4, 4), np.complex64)]
)
def test_arrays_that_are_not_images(image):
    with pytest.raises(DataError, match=r"Image 0 has shape .* expected"):
        dataset_from_arrays([image, image], [0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"images": []}, "There are no images"),
        ({"labels": np.zeros((2, 1, 1))}, "The labels have shape"),
        ({"labels": ["a", None]}, "The label is missing in row 1"),
        ({"labels": ["", "b"]}, "The label is missing in row 0"),
        ({"labels": [-1, 1], "class_names": ["a", "b"]}, "The labels go from -1 to 1"),
        ({"class_names": ["a"]}, "The labels go from 0 to 1"),
        ({"class_names": ["a", ""]}, "class_names is empty"),
        ({"class_names": ""}, "class_names is empty"),
        ({"name": " "}, "name is empty"),
        ({"groups": [["p"], ["q"]]}, "The groups have shape"),
    ],
)
def test_arrays_that_say_too_little(pixels, arguments, message):
    given = {"images": [pixels(0), pixels(1)], "labels": [0, 1]} | arguments
    with pytest.raises(CrossgraftError, match=message):
        dataset_from_arrays(**given)


@pytest.mark.parametrize(("labels", "groups"), [([0], None), ([0, 1], ["a"])])
def test_arrays_of_different_lengths(pixels, labels, groups):
    with pytest.raises(DataError, match="do not belong together: 2 images"):
        dataset_from_arrays([pixels(0), pixels(1)], labels, groups=groups)
