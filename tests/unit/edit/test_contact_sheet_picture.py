"""A contact sheet as a picture: pixels of images as they are, changes in colours that mean something, fixed bytes."""

import io

import numpy as np
import pytest
from PIL import Image

from crossgraft.edit.contact_sheet import CELL_PIXELS, Example, coloured_change, contact_sheet, enlarged, sheet_png
from crossgraft.edit.edits import choose_edits, edits_by_place

PLACED = {placed.name: placed for placed in edits_by_place()}
HEADINGS = [("benign", "image 3"), ("malignant", "image 14")]


def examples(shape=(32, 48, 1), number=2):
    random = np.random.default_rng(0)
    return [Example(random.integers(0, 200, shape, dtype=np.uint8), f"{k:064d}") for k in range(number)]


def drawn(name, given, headings=HEADINGS):
    sheet = contact_sheet(choose_edits(name)[0], given)
    picture = sheet_png(PLACED[name], sheet, headings)
    return sheet, np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")), picture


def stands_in(picture, page):
    """Whether these pixels stand anywhere on the page."""
    picture = np.broadcast_to(picture, (*picture.shape[:2], 3))
    height, width = picture.shape[:2]
    corners = np.argwhere((page == picture[0, 0]).all(axis=2))
    return any(np.array_equal(page[y : y + height, x : x + width], picture) for y, x in corners)


def test_colours_say_darker_brighter_and_how_much():
    change = np.array([[-10.0, -5.0, 0.0, 5.0, 10.0, 99.0]], dtype=np.float32)
    (row,) = coloured_change(change, None, 10.0).astype(int)
    blue, half_blue, nothing, half_orange, orange, beyond = row
    assert blue.tolist() == [0x00, 0x72, 0xB2] and orange.tolist() == [0xD5, 0x5E, 0x00]
    np.testing.assert_array_equal(beyond, orange)
    assert np.abs(half_blue - (blue + nothing) / 2).max() <= 1
    assert np.abs(half_orange - (orange + nothing) / 2).max() <= 1
    assert (coloured_change(np.zeros((2, 2), np.float32), None, 0.0) == nothing).all()


def test_the_outline_hides_nothing_inside():
    mask = np.zeros((5, 6), dtype=bool)
    mask[2, 2:4] = mask[0, 0] = True
    shown = coloured_change(np.full((5, 6), 4.0, np.float32), mask, 4.0)
    is_dark = (shown == 40).all(axis=2)
    near = {(1, 2), (1, 3), (3, 2), (3, 3), (2, 1), (2, 4), (0, 1), (1, 0)}
    assert set(map(tuple, np.argwhere(is_dark).tolist())) == near


@pytest.mark.parametrize(("shape", "factor"), [((28, 28, 1), 9), ((256, 100, 3), 1), ((100, 129, 1), 1), ((1, 2, 3), 128)])
def test_small_images_are_enlarged_by_whole_numbers(shape, factor):
    picture = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    big = enlarged(picture)
    assert big.shape == (shape[0] * factor, shape[1] * factor, shape[2]) and max(big.shape[:2]) <= CELL_PIXELS
    np.testing.assert_array_equal(big[::factor, ::factor], picture)
    np.testing.assert_array_equal(big[factor - 1 :: factor, factor - 1 :: factor], picture)


def test_all_three_rows_stand_on_the_sheet_and_the_bytes_are_fixed():
    sheet, page, picture = drawn("chest_tube", examples())
    for image in sheet.images:
        factor = CELL_PIXELS // 48
        assert stands_in(enlarged(image.without), page) and stands_in(enlarged(image.edited), page)
        change = image.change.repeat(factor, axis=0).repeat(factor, axis=1)
        mask = image.mask.repeat(factor, axis=0).repeat(factor, axis=1)
        assert mask.any() and stands_in(coloured_change(change, mask, sheet.limit), page)
    assert drawn("chest_tube", examples())[2] == picture
    assert drawn("chest_tube", examples(), [("benign", "image 3"), ("malignant", "image 15")])[2] != picture


def test_settings_of_the_user_change_nothing():
    from matplotlib import rc_context

    _, _, before = drawn("gamma", examples((20, 20, 3)))
    with rc_context({"font.size": 40, "text.color": "red", "savefig.dpi": 300, "figure.facecolor": "black"}):
        assert drawn("gamma", examples((20, 20, 3)))[2] == before


@pytest.mark.parametrize("shape", [(6, 6, 1), (300, 40, 3), (9, 300, 1)])
def test_every_shape_has_a_sheet(shape):
    sheet, page, _ = drawn("tag", examples(shape, number=1), HEADINGS[:1])
    assert stands_in(enlarged(sheet.images[0].without), page)
    assert page.shape[1] >= 900 and (page[0, 0] == 255).all()


def test_names_in_other_scripts_and_long_ones():
    drawn("gamma", examples(), [("良性 $x$", "image 1"), ("a very long name of a class " * 9, "image 2")])
