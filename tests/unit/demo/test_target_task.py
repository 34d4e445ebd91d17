from dataclasses import replace

import numpy as np
import pytest

from crossgraft.demo.toy_zoo import IMAGES_PER_CLASS, divide_digits
from crossgraft.errors import DataError


def images_of(dataset):
    return {dataset.image_name(row) for row in range(len(dataset))}


def test_test_writers_are_seen_nowhere_else(demo_data):
    seen = set(demo_data.source.groups) | set(demo_data.train.groups)
    assert seen.isdisjoint(demo_data.test.groups)
    assert len(seen) == len(set(demo_data.test.groups)) == 7


def test_no_image_is_in_two_parts(demo_data):
    parts = [images_of(part) for part in (demo_data.source, demo_data.train, demo_data.test)]
    assert sum(map(len, parts)) == len(set.union(*parts))


def test_source_and_target_are_different_digits(demo_data):
    assert set(demo_data.source.labels) == {0, 1, 2, 3, 4}
    assert set(demo_data.train.labels) == set(demo_data.test.labels) == {5, 6, 7, 8, 9}
    np.testing.assert_array_equal(demo_data.test.targets, demo_data.test.labels - 5)


def test_the_small_set_has_the_same_number_of_each_class(demo_data):
    assert demo_data.train.class_counts == (IMAGES_PER_CLASS,) * 5
    assert demo_data.train.rows_used == "10 images of each digit 5–9 from 7 of 14 writers"


def test_the_seed_chooses_writers_and_images(digits, demo_data):
    assert images_of(divide_digits(digits, seed=0).train) == images_of(demo_data.train)
    other = divide_digits(digits, seed=1)
    assert set(other.test.groups) != set(demo_data.test.groups)


def test_writers_are_needed(digits):
    with pytest.raises(DataError, match="writer of each image"):
        divide_digits(replace(digits, groups=None), seed=0)
