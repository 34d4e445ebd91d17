"""What training sees without augmentation is bit for bit what extraction sees, whether kept in memory or not."""

import dataclasses
import threading
from collections import Counter

import numpy as np
import pytest
import torch

from crossgraft.data import prepare_batch
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.errors import UnreadableImageError, UsageError
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.types import Preprocessing

IN_COLOUR = Preprocessing(12, 10, crop_fraction=0.9, interpolation="bicubic")
IN_GREY = Preprocessing(12, 10, channels=1, mean=(0.3,), std=(0.2,))
ROWS = torch.tensor([4, 1, 1, 6, 0])


def make_arrays(dtype, channels, num_images=7):
    rng = np.random.default_rng(0)
    shapes = [(int(rng.integers(9, 20)), int(rng.integers(9, 20)), channels) for _ in range(num_images)]
    if np.dtype(dtype).kind == "f":
        return [rng.random(shape).astype(dtype) for shape in shapes]
    return [rng.integers(0, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype) for shape in shapes]


def as_dataset(arrays):
    return dataset_from_arrays(arrays, np.arange(len(arrays)) % 2)


def reading(dataset, read):
    """The same data set with another way to decode."""
    return dataclasses.replace(dataset, _images=dataclasses.replace(dataset._images, kept={}, decode=read))


@pytest.mark.parametrize("memory_limit_bytes", [2**30, 0], ids=["kept", "decoded again"])
@pytest.mark.parametrize("preprocessing", [IN_COLOUR, IN_GREY], ids=["colour", "grey"])
@pytest.mark.parametrize(
    "arrays",
    [
        make_arrays(np.uint8, 3),
        make_arrays(np.uint8, 1),
        make_arrays(np.uint8, 1)[:4] + make_arrays(np.uint8, 3)[4:],
        make_arrays(np.uint16, 1),
        make_arrays(np.float32, 3),
        make_arrays(np.uint8, 3)[:4] + make_arrays(np.uint16, 1)[4:],
    ],
    ids=["8 bits", "8 bits grey", "8 bits, some grey", "16 bits", "floats", "8 and 16 bits"],
)
def test_every_bit_is_that_of_prepare_batch(arrays, preprocessing, memory_limit_bytes):
    expected = prepare_batch([arrays[row] for row in ROWS], preprocessing)
    for num_threads in (1, 3):
        images = TrainingImages(as_dataset(arrays), preprocessing, memory_limit_bytes=memory_limit_bytes, num_threads=num_threads)
        for _ in range(2):
            unit = images.read(ROWS)
            assert unit.dtype == torch.float32
            assert unit.min() >= 0 and unit.max() <= 1
            assert torch.equal(images.normalise(unit), expected)


def test_levels_of_8_bits_survive_the_way_through_the_unit_interval():
    every_level = np.arange(256, dtype=np.uint8).reshape(1, 16, 16, 1)
    images = TrainingImages(dataset_from_arrays(every_level, [0]), Preprocessing(16, 16))
    unit = images.read(torch.tensor([0]))
    assert torch.equal(unit.flatten(), torch.arange(256) / 255)
    assert torch.equal(images.normalise(unit), prepare_batch(list(every_level), Preprocessing(16, 16)))


def test_a_grey_set_stays_grey_until_it_is_normalised():
    grey = TrainingImages(as_dataset(make_arrays(np.uint8, 1)), IN_COLOUR)
    assert grey.read(ROWS).shape == (5, 1, 12, 10)
    assert grey.normalise(grey.read(ROWS)).shape == (5, 3, 12, 10)
    assert grey.total_bytes == 7 * 12 * 10
    assert TrainingImages(as_dataset(make_arrays(np.uint8, 3)), IN_COLOUR).total_bytes == 3 * 7 * 12 * 10
    assert TrainingImages(as_dataset(make_arrays(np.uint16, 1)), IN_COLOUR).total_bytes == 4 * 7 * 12 * 10


def test_below_the_limit_an_image_is_decoded_once_and_above_it_every_time():
    arrays = make_arrays(np.uint8, 1)
    for limit, decoded in ((7 * 120, 1), (7 * 120 - 1, 3)):
        counts = Counter()

        def read(row, counts=counts):
            counts[row] += 1
            return arrays[row]

        images = TrainingImages(reading(as_dataset(arrays), read), IN_COLOUR, memory_limit_bytes=limit)
        for _ in range(3):
            images.read(ROWS)
        assert counts == {0: decoded, 1: decoded, 4: decoded, 6: decoded}


def test_what_was_read_may_be_changed():
    for dtype in (np.uint8, np.float32):
        images = TrainingImages(as_dataset(make_arrays(dtype, 1)), IN_COLOUR)
        first = images.read(ROWS)
        kept = first.clone()
        first.zero_()
        images.normalise(kept)
        assert torch.equal(images.read(ROWS), kept)


@pytest.mark.parametrize("memory_limit_bytes", [2**30, 0])
@pytest.mark.parametrize("num_threads", [1, 2])
def test_an_image_that_is_gone_is_named_and_can_be_read_when_it_is_back(num_threads, memory_limit_bytes):
    arrays, gone = make_arrays(np.uint8, 1), {4}

    def read(row):
        if row in gone:
            raise UnreadableImageError(f"image {row}", "no such file")
        return arrays[row]

    dataset = reading(as_dataset(arrays), read)
    images = TrainingImages(dataset, IN_COLOUR, num_threads=num_threads, memory_limit_bytes=memory_limit_bytes)
    with pytest.raises(UnreadableImageError, match="image 4"):
        images.read(ROWS)
    gone.clear()
    expected = prepare_batch([arrays[row] for row in ROWS], IN_COLOUR)
    assert torch.equal(images.normalise(images.read(ROWS)), expected)


def test_an_interrupt_leaves_no_thread():
    arrays = make_arrays(np.uint8, 1)

    def read(row):
        if row == 1:
            raise KeyboardInterrupt
        return arrays[row]

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        TrainingImages(reading(as_dataset(arrays), read), IN_COLOUR, num_threads=2).read(ROWS)
    assert threading.active_count() == before


@pytest.mark.parametrize("options", [{"memory_limit_bytes": -1}, {"num_threads": 0}])
def test_settings_without_a_meaning(options):
    with pytest.raises(UsageError, match="at least one thread"):
        TrainingImages(as_dataset(make_arrays(np.uint8, 1)), IN_COLOUR, **options)
