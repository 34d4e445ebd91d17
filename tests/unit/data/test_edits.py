"""Edited images: other pixels and digests under the same labels, groups, splits and names."""

import pickle

import numpy as np
import pytest

from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.data.inspection import edited_images
from crossgraft.errors import DataError, UsageError
from crossgraft.features import extract_features
from crossgraft.models import ModelSpec, load_backbone


@pytest.fixture
def data():
    pixels = np.random.default_rng(0).integers(0, 256, (6, 12, 10, 3), dtype=np.uint8)
    return dataset_from_arrays(pixels, [0, 1, 0, 1, 0, 1], groups=list("aabbcc"), name="some")


def inverted(pixels, _):
    return 255 - pixels


def test_only_these_rows_change_and_all_else_stays(data):
    found = data.edited(inverted, [1, -1])
    for row in range(6):
        expected = 255 - data.read(row) if row in (1, 5) else data.read(row)
        np.testing.assert_array_equal(found.read(row), expected)
        assert not found.read(row).flags.writeable
        assert (found.image_digests[row] == data.image_digests[row]) == (row not in (1, 5))
        assert found.image_name(row) == data.image_name(row)
    for name in ("labels", "targets", "groups"):
        np.testing.assert_array_equal(getattr(found, name), getattr(data, name))
    assert found.fingerprint != data.fingerprint and found.listing_fingerprint == data.listing_fingerprint
    assert found.edited(inverted, [1, 5]).fingerprint == data.fingerprint
    assert data.edited(inverted, np.array([False, True, False, False, False, True])).fingerprint == found.fingerprint
    assert data.edited(inverted).fingerprint not in (found.fingerprint, data.fingerprint)
    assert found.take([5, 0]).image_digests == [found.image_digests[5], found.image_digests[0]]
    assert data.take([3, 1]).edited(inverted, [1]).image_digests[1] == found.image_digests[1]


def test_another_process_has_the_same_pixels(data):
    sent = pickle.loads(pickle.dumps(data.edited(inverted, [2])))
    np.testing.assert_array_equal(sent.read(2), 255 - data.read(2))
    again = pickle.loads(pickle.dumps(data)).edited(inverted, [2])
    assert again.image_digests == sent.image_digests and again.fingerprint != pickle.loads(pickle.dumps(data)).fingerprint
    assert again.listing_fingerprint == data.listing_fingerprint == sent.listing_fingerprint


def test_random_numbers_follow_the_image_not_its_place(data):
    def noisy(pixels, identity):
        noise = np.random.default_rng(int(identity[:16], 16)).integers(0, 9, pixels.shape, dtype=np.uint8)
        return pixels // 2 + noise

    whole, turned = data.edited(noisy), data.take([5, 4, 3, 2, 1, 0]).edited(noisy)
    assert whole.image_digests == turned.image_digests[::-1]


def test_what_does_not_fit_in_memory_is_edited_again(data):
    calls = []

    def counted(pixels, _):
        calls.append(1)
        return 255 - pixels

    images = edited_images(data._images, range(6), counted, {0, 1}, kept_bytes=data.read(0).nbytes)
    assert len(images.kept) == 1 and len(calls) == 2
    np.testing.assert_array_equal(images.read(1), 255 - data.read(1))
    assert len(calls) == 3


def test_the_cache_does_not_answer_with_clean_features(data, tmp_path):
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    clean = extract_features(data, backbone, cache_dir=tmp_path).features
    edited = extract_features(data.edited(inverted, [3]), backbone, cache_dir=tmp_path).features
    changed = (np.abs(np.asarray(clean) - edited) > 1e-6).any(axis=1)
    assert changed.tolist() == [False, False, False, True, False, False]


def test_bad_edits(data):
    for edit, said in (
        (lambda pixels, _: pixels[:5], "keeps shape and type"),
        (lambda pixels, _: pixels.astype(np.float32), "keeps shape and type"),
    ):
        with pytest.raises(DataError, match=said):
            data.edited(edit)
    floats = dataset_from_arrays([np.full((4, 4), 0.5, np.float32)] * 2, [0, 1])
    with pytest.raises(DataError, match="outside"):
        floats.edited(lambda pixels, _: pixels * 3)
    for rows in ([6], []):
        with pytest.raises(UsageError):
            data.edited(inverted, rows)
