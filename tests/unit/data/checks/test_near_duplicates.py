"""Copies that people make of a picture are found; other pictures of the same kind are not."""

import io
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance

from crossgraft.data.checks import near_duplicates
from crossgraft.data.checks.near_duplicates import VIEWS, find_near_duplicates
from crossgraft.data.inspection import look_at

RNG = np.random.default_rng(7)
BACKGROUND = RNG.normal(size=(12, 12))


@cache
def scan(seed, size=128):
    """A smooth picture; all have most of their content in common, like radiographs of one organ."""
    own = np.random.default_rng(seed).normal(size=(12, 12))
    values = 40 * (2 * BACKGROUND + own) / 2.2 + 128
    return Image.fromarray(values.clip(0, 255).astype(np.uint8)).resize((size, size), Image.Resampling.BICUBIC)


def compressed(image):
    file = io.BytesIO()
    image.save(file, format="JPEG", quality=60)
    return Image.open(file)


COPIES = {
    "compressed": (compressed, 0),
    "resized": (lambda image: image.resize((90, 84)), 0),
    "brighter": (lambda image: ImageEnhance.Brightness(image).enhance(1.1), 0),
    "less contrast": (lambda image: ImageEnhance.Contrast(image).enhance(0.6), 0),
    "in colour": (lambda image: image.convert("RGB"), 0),
    "16 bits": (lambda image: Image.fromarray(np.asarray(image).astype(np.uint16) * 200), 0),
    "10 of 16 bits": (lambda image: Image.fromarray(np.asarray(image).astype(np.uint16) * 4), 0),
    "floats": (lambda image: Image.fromarray(np.asarray(image).astype(np.float32) / 300), 0),
    "mirrored": (lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT), 1),
    "upside down": (lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM), 2),
    "turned by 180°": (lambda image: image.transpose(Image.Transpose.ROTATE_180), 3),
    "turned left": (lambda image: image.transpose(Image.Transpose.ROTATE_90), 4),
    "turned right": (lambda image: image.transpose(Image.Transpose.ROTATE_270), 5),
    "transposed": (lambda image: image.transpose(Image.Transpose.TRANSPOSE), 6),
    "the other diagonal": (lambda image: image.transpose(Image.Transpose.TRANSVERSE), 7),
    "mirrored and compressed": (lambda image: compressed(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)), 1),
}


def search(images):
    arrays = [np.asarray(image) for image in images]
    shaped = [array[..., np.newaxis] if array.ndim == 2 else array for array in arrays]
    return find_near_duplicates(np.stack([look_at(array, with_thumbnail=True).thumbnail for array in shaped]))


@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("number", [60, 300], ids=["all with all", "in buckets"])
def test_a_copy_is_found_among_pictures_of_one_kind(kind, number):
    make, view = COPIES[kind]
    near = search([*(scan(seed) for seed in range(number)), make(scan(17))])
    assert near.pairs.tolist() == [[17, number]]
    assert near.views.tolist() == [view]


def test_pictures_of_one_kind_are_not_near_each_other():
    images = [scan(seed) for seed in range(150)]
    thumbnails = np.stack([np.asarray(image.resize((32, 32))).ravel() for image in images]).astype(float)
    assert np.corrcoef(thumbnails)[np.triu_indices(150, 1)].mean() > 0.7  # they do have most in common
    assert len(search(images).pairs) == 0


def test_what_all_pictures_have_in_common_makes_no_pair():
    rng = np.random.default_rng(3)
    common, own = rng.normal(size=(32, 32, 1)), rng.normal(size=(40, 32, 32, 1))
    images = (128 + 30 * common + 4 * own).clip(0, 255).astype(np.uint8)
    assert np.corrcoef(images.reshape(40, -1))[np.triu_indices(40, 1)].min() > 0.95
    assert len(search(images).pairs) == 0


def test_a_symmetric_picture_is_no_pair_with_itself():
    symmetric = [np.concatenate([half, half[:, ::-1]], axis=1) for half in (np.asarray(scan(seed)) for seed in range(150))]
    assert len(search(symmetric).pairs) == 0


@pytest.mark.parametrize("number", [2, 3])
def test_a_copy_is_found_among_few(number):
    images = [scan(1), *(scan(seed) for seed in range(2, number)), compressed(scan(1))]
    assert search(images).pairs.tolist() == [[0, number - 1]]


def test_pictures_without_contrast_are_left_out():
    flat = [Image.fromarray(np.full((40, 40), value, np.uint8)) for value in (0, 90, 91)]
    assert len(search(flat).pairs) == 0
    assert len(search(flat[:1]).pairs) == 0


def test_more_copies_of_one_picture_than_are_compared_are_counted(monkeypatch):
    copies = np.repeat(np.asarray(scan(0, 32)).astype(int)[np.newaxis], 40, axis=0)
    copies[np.arange(40), np.arange(40) // 32, np.arange(40) % 32] += 1
    images = np.concatenate([*(np.asarray(scan(seed, 32))[np.newaxis] for seed in range(1, 400)), copies])
    near = find_near_duplicates(images.astype(np.uint8))
    assert near.num_capped == 0
    assert len(near.pairs) == 40 * 39 / 2
    monkeypatch.setattr("crossgraft.data.checks.near_duplicates.BUCKET_CAP", 4)
    assert find_near_duplicates(images.astype(np.uint8)).num_capped >= 40


@given(seed=st.integers(0, 2**32 - 1), number=st.integers(2, 12), noise=st.floats(0, 90))
def test_few_are_compared_all_with_all_whatever_is_left_out_early(seed, number, noise):
    rng = np.random.default_rng(seed)
    side = near_duplicates.THUMBNAIL_SIDE
    kinds = rng.integers(0, 256, (3, side, side))
    drawn = zip(rng.integers(3, size=number), rng.integers(8, size=number), strict=True)
    turned = [VIEWS[view].of(kinds[[kind]])[0] for kind, view in drawn]
    thumbnails = np.clip(np.stack(turned) + rng.normal(0, noise, (number, side, side)), 0, 255).astype(np.uint8)
    rows = near_duplicates.normalise(thumbnails)
    pairs = np.stack(np.triu_indices(number, 1), axis=1)
    of_views = [near_duplicates._are_alike(rows, pairs, np.full(len(pairs), view)) for view in range(len(VIEWS))]
    alike = np.stack(of_views, axis=1)
    found = alike.any(axis=1)
    near = find_near_duplicates(thumbnails)
    assert near.pairs.tolist() == pairs[found].tolist()
    assert near.views.tolist() == alike[found].argmax(axis=1).tolist()
