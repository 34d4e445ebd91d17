"""Images are resized once for all networks that take them alike, and come back bit for bit."""

import errno
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.data.resizing import resize_images
from crossgraft.data.transforms import normalise_images, prepare_batch, prepare_resized
from crossgraft.features import extract_features
from crossgraft.features import passes as images_module
from crossgraft.features.passes import ResizedOnce, resized
from crossgraft.progress import Reporter
from crossgraft.types import Preprocessing

from .conftest import Images, Net, make_backbone

SMALL = Preprocessing(height_pixels=6, width_pixels=5)


class Mixed(Images):
    """Images of the depths and channels that are named, all of other sizes."""

    def __init__(self, kinds, seed=0):
        rng = np.random.default_rng(seed)
        whites = {"uint8": 255, "uint16": 65535, "float32": 1}
        self.pixels = [
            (rng.random((7 + row % 3, 6 + row % 2, channels)) * whites[dtype]).astype(dtype)
            for row, (dtype, channels) in enumerate(kinds)
        ]
        self.fingerprint, self.reads = f"mixed {kinds} {seed}", []


def literal(images, preprocessing):
    """The whole batch at once, as it was before images were resized one by one."""
    in_8_bits = all(image.dtype == np.uint8 for image in images)
    grey = preprocessing.channels == 1 or all(image.shape[-1] == 1 for image in images)
    batch = resize_images(images, preprocessing, grey=grey, in_8_bits=in_8_bits)
    channels_first = torch.from_numpy(batch).permute(0, 3, 1, 2)
    return normalise_images(channels_first, preprocessing, full_range=255 if in_8_bits else 1)


@settings(max_examples=60, deadline=None)
@given(
    kinds=st.lists(st.tuples(st.sampled_from(["uint8", "uint16", "float32"]), st.sampled_from([1, 3])), min_size=1, max_size=6),
    channels=st.sampled_from([1, 3]),
    policy=st.sampled_from(["crop", "squash", "pad"]),
    interpolation=st.sampled_from(["nearest", "bilinear", "bicubic"]),
    seed=st.integers(0, 5),
)
def test_a_batch_of_any_depths_has_the_bits_of_one_made_at_once(tmp_path_factory, kinds, channels, policy, interpolation, seed):
    preprocessing = Preprocessing(
        height_pixels=5, width_pixels=7, channels=channels, mean=(0.4,) * channels, std=(0.3,) * channels,
        interpolation=interpolation, resize_policy=policy, crop_fraction=0.9,
    )  # fmt: skip
    source = Mixed(kinds, seed)
    expected = literal(source.pixels, preprocessing)
    assert torch.equal(prepare_batch(source.pixels, preprocessing), expected)
    with ResizedOnce(source, tmp_path_factory.getbasetemp() / "scratch", Reporter(quiet=True)) as once:
        for _ in range(3):
            seen = [resized(once, row, preprocessing) for row in range(len(kinds))]
            assert torch.equal(prepare_resized(seen, preprocessing), expected)
    assert source.reads == [*range(len(kinds))]


def networks(number):
    """As many networks of one size, with other weights and other means."""
    for index in range(number):
        net = Net()
        net.body.bias.data += index
        backbone = make_backbone(net, name=f"net {index}")
        backbone.preprocessing = replace(backbone.preprocessing, mean=(0.1 * index,) * 3)
        yield backbone


def looked_at(images, backbones, cache):
    return [extract_features(images, one, cache_dir=cache, batch_size=4, num_threads=1, is_announced=True) for one in backbones]


def test_networks_of_one_size_read_each_image_once_and_see_the_same(tmp_path):
    source, plain = Images(), Images()
    with ResizedOnce(source, tmp_path / "scratch", Reporter(quiet=True)) as once:
        found = looked_at(once, networks(5), tmp_path / "a")
    assert sorted(source.reads) == [*range(20)]
    expected = looked_at(plain, networks(5), tmp_path / "b")
    assert len(plain.reads) == 5 * 20
    for one, other in zip(found, expected, strict=True):
        assert one.features.tobytes() == other.features.tobytes()
    assert not list((tmp_path / "scratch").iterdir())


def test_another_size_or_interpolation_is_another_look(tmp_path):
    source = Images()
    with ResizedOnce(source, tmp_path, Reporter(quiet=True)) as once:
        for changes in ({}, {"mean": (0.0,) * 3}, {"std": (2.0,) * 3}):
            once.resized(0, replace(SMALL, **changes))
        assert source.reads == [0]
        for changes in ({"width_pixels": 6}, {"interpolation": "bicubic"}, {"resize_policy": "pad"}, {"crop_fraction": 0.5}):
            once.resized(0, replace(SMALL, **changes))
        assert source.reads == [0] * 5


def test_images_beyond_the_bound_are_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(images_module, "LARGEST_SCRATCH_BYTES", 2 * 6 * 5 * 3 + 1)
    source = Images()
    with ResizedOnce(source, tmp_path, Reporter(quiet=True)) as once:
        for _ in range(2):
            for row in range(4):
                once.resized(row, SMALL)
    assert source.reads == [0, 1, 2, 3, 2, 3]


class _Small:
    """A file on a disk with place for two images and a half."""

    def __init__(self, file):
        self.file = file

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, content):
        if self.file.tell() + len(content) > 2.5 * 6 * 5 * 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(content)


@pytest.mark.parametrize("harm", ["full", "no folder"])
def test_a_disk_without_place_is_said_once_and_changes_nothing(tmp_path, monkeypatch, harm, capsys):
    source, folder = Images(), tmp_path / "scratch"
    made = []
    if harm == "full":
        file = images_module.tempfile.TemporaryFile
        monkeypatch.setattr(images_module.tempfile, "TemporaryFile", lambda **how: made.append(_Small(file(**how))) or made[0])
    else:
        folder.write_text("a file")
    with ResizedOnce(source, folder, Reporter()) as once:
        found = [once.resized(row, SMALL) for row in [*range(4), *range(4)]]
    for row, image in enumerate(found):
        np.testing.assert_array_equal(image, resize_images([source.pixels[row % 4]], SMALL, grey=False, in_8_bits=True)[0])
    assert source.reads == [0, 1, 2, 3, 0, 1, 2, 3]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("Warning: Each model resizes the images again, because ") and "scratch" in line
    assert all(file.closed for file in made)  # features may need the place


def test_threads_share_it(tmp_path):
    source = Images(40)
    with ResizedOnce(source, tmp_path, Reporter(quiet=True)) as once, ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            for row, image in enumerate(pool.map(lambda row: once.resized(row, SMALL), range(40))):
                np.testing.assert_array_equal(image, resize_images([source.pixels[row]], SMALL, grey=False, in_8_bits=True)[0])
    assert sorted(source.reads) == [*range(40)]
