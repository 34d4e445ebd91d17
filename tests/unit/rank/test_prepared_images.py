import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.data.transforms import prepare_batch
from crossgraft.rank import zoo
from crossgraft.rank.zoo import PreparedImages
from crossgraft.scores import ScoreInputs
from crossgraft.types import Preprocessing

PREPROCESSING = Preprocessing(
    height_pixels=8,
    width_pixels=8,
    channels=3,
    mean=(0.5,) * 3,
    std=(0.5,) * 3,
    interpolation="bilinear",
    resize_policy="squash",
    crop_fraction=1.0,
)


@pytest.fixture
def dataset():
    images = [np.full((5, 6, 1), 20 * i, np.uint8) for i in range(6)]
    return dataset_from_arrays(images, [0, 1, 0, 1, 0, 1], name="d")


def test_images_are_what_extraction_sees_and_are_made_one_by_one(dataset, monkeypatch):
    read = []
    original = type(dataset).read
    monkeypatch.setattr(type(dataset), "read", lambda self, row: (read.append(row), original(self, row))[1])
    images = PreparedImages(dataset, PREPROCESSING)
    inputs = ScoreInputs(labels=dataset.targets, images=images, model=object())
    smaller = inputs.without([0, 2])
    assert read == [] and len(smaller.images) == 4
    np.testing.assert_array_equal(smaller.images[1], prepare_batch([original(dataset, 3)], PREPROCESSING)[0])
    assert smaller.images[1].shape == (3, 8, 8)
    assert read == [3]  # and kept
    again = smaller.without([0])
    np.testing.assert_array_equal(again.images[0], smaller.images[1])


def test_only_as_many_images_are_kept_as_fit(dataset, monkeypatch):
    monkeypatch.setattr(zoo, "KEPT_BYTES", 2 * 4 * 3 * 8 * 8)
    images = PreparedImages(dataset, PREPROCESSING)
    for row in range(6):
        images[row]
    assert sorted(images._kept) == [0, 1]
