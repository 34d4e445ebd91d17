"""Images that look least like their class."""

import json

import numpy as np
import pytest

from crossgraft import check_data
from crossgraft.data import dataset_from_arrays
from crossgraft.data.checks.odd_images import MOST_ODD, NUM_USUAL, find_odd_images


def pictures(number, seed=0):
    return np.random.default_rng(seed).integers(100, 120, (number, 8, 8)).astype(np.uint8)


def test_distances_are_those_from_the_mean_picture():
    found = find_odd_images(pictures(12))
    values = pictures(12).astype(float)
    literal = [np.sqrt(np.mean((one - values.mean(axis=0)) ** 2)) for one in values]
    assert found.distances == pytest.approx(literal, rel=1e-5)
    assert found.odd == np.argsort(-np.asarray(literal), kind="stable")[:4].tolist()


def test_an_inverted_and_an_empty_image_are_far_and_come_first():
    many = pictures(60)
    many[7], many[40] = 0, 255 - many[40]
    found = find_odd_images(many)
    assert found.odd[:2] == [7, 40] and len(found.odd) == MOST_ODD and len(found.usual) == NUM_USUAL
    assert [place for place in range(60) if found.distances[place] > found.limit] == [7, 40]
    assert not set(found.odd) & set(found.usual)


@pytest.mark.parametrize(("number", "usual", "odd"), [(1, 1, 0), (2, 1, 1), (3, 2, 1), (6, 4, 2), (9, 5, 3)])
def test_small_classes_show_each_image_at_most_once(number, usual, odd):
    found = find_odd_images(pictures(number))
    assert (len(found.usual), len(found.odd)) == (usual, odd)
    assert len({*found.usual, *found.odd}) == usual + odd


def test_a_check_keeps_a_strip_of_each_class(tmp_path):
    images = [*pictures(9), *pictures(4, seed=1)]
    images[3] = np.zeros((8, 8), np.uint8)
    check = check_data(dataset_from_arrays(images, ["a"] * 9 + ["b"] * 4), holdout=0, out=tmp_path / "run")
    strips = [each for each in json.loads((check.out / "thumbnails.json").read_text()) if "row" in each]
    assert [each["class_name"] for each in strips] == ["a"] * 8 + ["b"] * 4
    far = [each for each in strips if each.get("is_far")]
    assert [each["row"] for each in far] == [4] and far[0]["distance"] == max(each.get("distance", 0) for each in strips)
