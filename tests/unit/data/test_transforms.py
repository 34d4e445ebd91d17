"""Inputs are what timm's evaluation transform would make of them, and 16 bits stay 16 bits."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image
from timm.data import create_transform

from crossgraft.data import prepare_batch
from crossgraft.errors import UsageError
from crossgraft.types import Preprocessing

PLAIN = {"mean": (0.0, 0.0, 0.0), "std": (1.0, 1.0, 1.0)}


def smooth(height, width, channels=3, seed=0):
    """Blobs rather than noise, so that resampling has something to keep."""
    small = np.random.default_rng(seed).integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height)))[..., :channels]


@settings(max_examples=60, deadline=None)
@given(
    height=st.integers(1, 200),
    width=st.integers(1, 200),
    size=st.one_of(st.integers(16, 64).map(lambda side: (side, side)), st.tuples(st.integers(16, 64), st.integers(16, 64))),
    crop_fraction=st.one_of(st.sampled_from([0.875, 0.95, 1.0]), st.floats(0.5, 1.0)),
    interpolation=st.sampled_from(["bilinear", "bicubic"]),
)
def test_crop_equals_the_transform_of_timm(height, width, size, crop_fraction, interpolation):
    assume(max(height, width) <= 20 * min(height, width))
    preprocessing = Preprocessing(*size, interpolation=interpolation, crop_fraction=crop_fraction)
    image = smooth(height, width)
    reference = create_transform(
        (3, *size), interpolation=interpolation, crop_pct=crop_fraction, mean=preprocessing.mean, std=preprocessing.std
    )
    ours = prepare_batch([image], preprocessing)[0]
    std = torch.tensor(preprocessing.std).view(3, 1, 1)
    # The same Pillow calls: only the order of float operations differs.
    assert ((ours - reference(Image.fromarray(image))) * std).abs().max() <= 1e-6


def test_batches_are_float32_channels_first(pixels):
    batch = prepare_batch([pixels(0), pixels(1, channels=3)], Preprocessing(10, 12))
    assert batch.shape == (2, 3, 10, 12)
    assert batch.dtype == torch.float32
    assert batch.is_contiguous()


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("policy", ["crop", "squash", "pad"])
def test_black_and_white_become_0_and_1_in_every_type(dtype, policy):
    white = np.full((6, 6, 1), 1 if dtype == np.float32 else np.iinfo(dtype).max, dtype=dtype)
    batch = prepare_batch([white, np.zeros_like(white)], Preprocessing(8, 8, resize_policy=policy, **PLAIN))
    torch.testing.assert_close(batch[0], torch.ones(3, 8, 8))
    torch.testing.assert_close(batch[1], torch.zeros(3, 8, 8))


def test_16_bit_levels_below_one_8_bit_step_stay_apart():
    levels = np.array([30000, 30001, 30100], dtype=np.uint16)
    batch = prepare_batch([np.full((4, 4, 1), level) for level in levels], Preprocessing(4, 4, **PLAIN))
    torch.testing.assert_close(batch[:, 0, 0, 0], torch.tensor(levels / 65535, dtype=torch.float32))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
def test_the_float_path_agrees_with_the_8_bit_path(interpolation):
    image = smooth(60, 44)
    preprocessing = Preprocessing(32, 32, interpolation=interpolation, crop_fraction=0.9, **PLAIN)
    wide = prepare_batch([image.astype(np.uint16) * 257], preprocessing)
    # Pillow rounds to 8 bits after each of its two passes.
    assert (wide - prepare_batch([image], preprocessing)).abs().max() <= 1.5 / 255


def test_bicubic_overshoot_is_cut_off_in_float():
    edge = np.zeros((16, 16, 1), dtype=np.float32)
    edge[:, 8:] = 1
    batch = prepare_batch([edge], Preprocessing(40, 40, interpolation="bicubic", **PLAIN))
    assert batch.min() == 0 and batch.max() == 1


def test_shrinking_is_antialiased():
    stripes = np.zeros((64, 64, 1), dtype=np.uint8)
    stripes[:, ::2] = 255
    batch = prepare_batch([stripes], Preprocessing(8, 8, **PLAIN))
    assert (batch - 0.5).abs().max() < 0.05


def test_squash_shows_everything_and_crop_the_centre():
    image = np.zeros((10, 30, 1), dtype=np.uint8)
    image[:, 10:20] = 255
    crop = prepare_batch([image], Preprocessing(10, 10, resize_policy="crop", **PLAIN))
    squash = prepare_batch([image], Preprocessing(10, 10, resize_policy="squash", **PLAIN))
    assert crop.mean() == 1
    assert squash.mean() == pytest.approx(1 / 3, abs=0.02)


def test_pad_keeps_the_aspect_between_black_borders():
    batch = prepare_batch([np.full((10, 30, 1), 255, np.uint8)], Preprocessing(12, 12, resize_policy="pad", **PLAIN))
    assert batch[0, 0].sum(dim=1).tolist() == [0] * 4 + [12] * 4 + [0] * 4


def test_black_borders_are_normalised_too():
    batch = prepare_batch([np.full((10, 30, 3), 255, np.uint8)], Preprocessing(12, 12, resize_policy="pad"))
    preprocessing = Preprocessing(12, 12)
    assert batch[0, :, 0, 0].tolist() == pytest.approx(
        [-m / s for m, s in zip(preprocessing.mean, preprocessing.std, strict=True)]
    )


def test_grey_is_repeated_and_colour_becomes_luminance():
    grey = np.full((4, 4, 1), 51, np.uint8)
    red = np.zeros((4, 4, 3), np.uint8)
    red[..., 0] = 255
    torch.testing.assert_close(prepare_batch([grey], Preprocessing(4, 4, **PLAIN)), torch.full((1, 3, 4, 4), 0.2))
    one_channel = Preprocessing(4, 4, channels=1, mean=(0.0,), std=(1.0,))
    for image in (red, red.astype(np.uint16) * 257):
        assert prepare_batch([image], one_channel)[0, 0, 0, 0].item() == pytest.approx(0.299, abs=0.002)


@pytest.mark.parametrize("policy", ["crop", "squash", "pad"])
def test_an_image_is_prepared_the_same_in_any_company(pixels, policy):
    images = [
        pixels(0, height=9, width=31),
        pixels(1, channels=3),
        pixels(2, dtype=np.uint16),
        pixels(3, channels=3, dtype=np.float32),
    ]
    preprocessing = Preprocessing(16, 16, resize_policy=policy)
    together = prepare_batch(images, preprocessing)
    for image, row in zip(images, together, strict=True):
        torch.testing.assert_close(prepare_batch([image], preprocessing)[0], row, rtol=0, atol=1e-5)


def test_read_only_images_are_welcome(pixels):
    image = pixels(0)
    image.setflags(write=False)
    prepare_batch([image], Preprocessing(6, 6, resize_policy="pad")).mul_(2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"height_pixels": 0}, "height_pixels must be from 1"),
        ({"crop_fraction": 0.0}, r"crop_fraction must be in \[0\.01, 1\]"),
        ({"crop_fraction": 1.5}, "found 1.5"),
        ({"channels": 4}, "channels must be 1 or 3; found 4"),
        ({"mean": (0.5,)}, "mean must be 3 number"),
    ],
)
def test_preprocessing_without_a_meaning(changes, message):
    settings = {"height_pixels": 8, "width_pixels": 8} | changes
    with pytest.raises(UsageError, match=message):
        Preprocessing(**settings)


def test_an_empty_batch_is_refused():
    with pytest.raises(UsageError, match="empty"):
        prepare_batch([], Preprocessing(8, 8))
