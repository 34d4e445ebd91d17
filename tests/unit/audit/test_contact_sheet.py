"""What stands on a contact sheet: the edit of ``edit_data``, its facts at full size, and pictures that lose no change."""

import math
import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from crossgraft.edit._image_edit import Confounder, Painted
from crossgraft.edit.confounders import Gamma, IntensityShift, Jpeg, LowPass, NlmDenoising, PoissonImage, Tag
from crossgraft.edit.contact_sheet import Example, contact_sheet, shrink_change, shrink_picture, smaller
from crossgraft.edit.edits import Editing
from crossgraft.errors import MissingExtraError

RANDOM = np.random.default_rng(0)


def example(shape=(40, 60, 1), dtype=np.uint8, most=255):
    pixels = RANDOM.integers(0, most, shape)
    return Example((pixels / most).astype(np.float32) if dtype is float else pixels.astype(dtype), f"{most:064d}")


@dataclass(frozen=True)
class OnePixel(Confounder):
    """One pixel, one channel, 77 grey levels."""

    name: ClassVar[str] = "one_pixel"
    title: ClassVar[str] = "One pixel"
    leaf: ClassVar = "external"
    scope: ClassVar = "local"
    reference: ClassVar[str] = "none"

    def edit(self, pixels, rng):
        edited, mask = pixels.copy(), np.zeros(pixels.shape[:2], dtype=bool)
        edited[30, 41, -1] -= 77 / 255
        mask[30, 41] = True
        return Painted(edited, mask)


@dataclass(frozen=True)
class Elsewhere(OnePixel):
    """Needs what is not installed."""

    name: ClassVar[str] = "elsewhere"

    def edit(self, pixels, rng):
        raise MissingExtraError("Install the extra.")


@pytest.mark.parametrize("edit", [PoissonImage(), Tag(size=0.3), LowPass(cutoff=0.1)])
def test_it_is_the_edit_that_edit_data_makes(edit):
    given = example()
    sheet = contact_sheet(edit, [given], seed=5)
    edited = Editing([edit], seed=5)(given.pixels, given.identity)
    np.testing.assert_array_equal(sheet.images[0].without, given.pixels)
    np.testing.assert_array_equal(sheet.images[0].edited, edited)
    np.testing.assert_array_equal(sheet.images[0].change, edited[:, :, 0].astype(float) - given.pixels[:, :, 0])


def test_facts_are_those_of_all_samples_at_full_size():
    given = [example((40, 60, 3)), example((300, 20, 3), most=128)]
    edit = Gamma(gamma=1.5)
    sheet = contact_sheet(edit, given, side=16)
    editing = Editing([edit])
    for each in given:
        editing(each.pixels, each.identity)
    (facts,) = editing.facts()
    assert sheet.rms == pytest.approx(facts.rms, rel=1e-12)
    assert sheet.share_changed == pytest.approx(facts.share_changed, rel=1e-12)
    assert sheet.psnr == pytest.approx(facts.psnr, rel=1e-12)
    assert sheet.num_edited == 2 and sheet.share_touched is None
    assert all(max(image.without.shape) == 16 == max(image.edited.shape) for image in sheet.images)


def test_a_change_of_one_pixel_and_its_mask_are_still_there_on_a_small_picture():
    given = Example(np.full((64, 96, 3), 200, np.uint8), "0" * 64)
    (image,) = contact_sheet(OnePixel(), [given], side=12).images
    assert image.change.shape == (8, 12)
    assert image.change.min() == -77 and np.argwhere(image.change).tolist() == [[3, 5]]
    assert np.argwhere(image.mask).tolist() == [[3, 5]]
    assert image.share_touched == pytest.approx(1 / (64 * 96))
    again = shrink_change(image.change, 6)
    assert again.shape == (4, 6) and again.min() == -77 and np.count_nonzero(again) == 1


def strongest_slowly(change, side):
    """The largest magnitude of each block, with its sign; blocks begin at ⌊k · n / m⌋."""
    height, width = smaller(change.shape, side)
    found = np.zeros((height, width))
    for row in range(height):
        for column in range(width):
            rows = range(row * change.shape[0] // height, (row + 1) * change.shape[0] // height)
            columns = range(column * change.shape[1] // width, (column + 1) * change.shape[1] // width)
            block = [change[y, x] for y in rows for x in columns]
            found[row, column] = max(block, key=lambda value: (abs(value), value))
    return found


@pytest.mark.parametrize("shape", [(37, 50), (50, 37), (5, 5), (1, 400)])
def test_changes_shrink_to_the_strongest_of_each_block(shape):
    change = RANDOM.normal(size=shape).astype(np.float32)
    np.testing.assert_array_equal(shrink_change(change, 13), strongest_slowly(change, 13).astype(np.float32))


def test_pictures_shrink_to_means():
    picture = RANDOM.integers(0, 255, (20, 30, 3), dtype=np.uint8)
    means = picture.reshape(10, 2, 15, 2, 3).mean(axis=(1, 3))
    # Pillow rounds twice, after rows and after columns.
    assert np.abs(shrink_picture(picture, 15) - means).max() <= 1
    np.testing.assert_array_equal(shrink_picture(picture, 30), picture)


@pytest.mark.parametrize("dtype", [np.uint16, float])
def test_more_than_8_bits_are_stretched_alike_with_and_without(dtype):
    given = example(dtype=dtype, most=4000)
    low, high = float(given.pixels.min()), float(given.pixels.max())
    (image,) = contact_sheet(IntensityShift(gain=1.0, offset=0.01), [given]).images
    assert image.without.min() == 0 and image.without.max() == 255
    white = 65535 if dtype is np.uint16 else 1.0
    shifted = np.clip(given.pixels.astype(float) + 0.01 * white, 0, min(high, white))
    expected = np.minimum(np.rint((shifted - low) / (high - low) * 255), 255)
    assert np.abs(image.edited.astype(float) - expected).max() <= 1
    assert image.rms == pytest.approx(0.01 * 255, rel=0.02)


def test_an_image_that_cannot_be_edited_says_why_and_spoils_nothing():
    small, good = example((6, 6, 1)), example()
    mixed = contact_sheet(Tag(size=0.3), [small, good])
    alone = contact_sheet(Tag(size=0.3), [good])
    assert mixed.images[0].edited is None and mixed.num_edited == 1
    assert mixed.problems == ["An image of (6, 6, 1) is too small to be edited: its sides need 8 pixels."]
    assert (mixed.rms, mixed.limit, mixed.psnr) == (alone.rms, alone.limit, alone.psnr)
    none = contact_sheet(Tag(), [small, small])
    assert (none.rms, none.share_changed, none.psnr, none.limit, len(none.problems)) == (None, None, None, 0.0, 1)


def test_every_refusal_is_a_reason_and_every_warning_a_note():
    deep = contact_sheet(Elsewhere(), [example(dtype=np.uint16, most=900)])
    assert deep.problems == ["Install the extra."] and deep.num_edited == 0
    flat = Example(np.full((32, 32, 1), 90, np.uint8), "0" * 64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sheet = contact_sheet(NlmDenoising(), [flat, flat])
    assert sheet.num_edited == 2 and sheet.rms == 0 and math.isinf(sheet.psnr) and sheet.limit == 0
    assert sheet.problems == ["nlm_denoising finds no noise in an image and leaves it as it is."]


def test_the_limit_leaves_out_few_changes():
    given = example((64, 64, 1))
    sheet = contact_sheet(Jpeg(quality=10), [given])
    sizes = np.abs(sheet.images[0].change)
    assert 0.98 < np.mean(sizes[sizes > 0] <= sheet.limit) < 1
    assert float(f"{sheet.limit:.2g}") == sheet.limit
