"""Tags and annotations: the letters that Pillow writes, where the options put them, inside the frame or not at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw, ImageFont
from scipy.ndimage import label

from crossgraft.edit.confounders._drawing import text_coverage
from crossgraft.edit.confounders.tag import Tag
from crossgraft.edit.confounders.text_annotation import TextAnnotation
from crossgraft.errors import DataError, UsageError


def flat(*shape, value=0.25):
    return np.full(shape, value)


def box(mask):
    """First row, row after the last, first column, column after the last."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return rows[0], rows[-1] + 1, columns[0], columns[-1] + 1


def test_letters_are_drawn_once_for_images_of_a_size_and_nobody_changes_them():
    drawn = [text_coverage((size, 32), "R", size=0.4, xy=(0.1, 0.1), name="tag") for size in (32, 40, 32)]
    assert drawn[0] is drawn[2] is not drawn[1] and drawn[1].shape == (40, 32)
    with pytest.raises(ValueError, match="read-only"):
        drawn[0][:] = 0
    first, _ = Tag()(flat(64, 64))
    assert (Tag()(flat(64, 64))[0] == first).all() and (Tag(xy=(0.5, 0.5))(flat(64, 64))[0] != first).any()


def test_the_tag_of_the_thesis():
    """64 pixels at (200, 200) of 1024: what Pillow writes there."""
    canvas = Image.new("L", (1024, 1024))
    ImageDraw.Draw(canvas).text((200, 200), "R", fill=255, font=ImageFont.load_default(64))
    expected = np.asarray(canvas) / 255
    found, info = Tag()(flat(1024, 1024, value=0.0))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(info.mask, expected > 0)
    assert found.max() == 1


@settings(max_examples=40, deadline=None)
@given(st.integers(8, 300), st.integers(8, 300), st.floats(0.02, 0.3), st.tuples(st.floats(0, 0.6), st.floats(0, 0.6)))
def test_the_tag_is_where_it_should_be(height, width, size, xy):
    _, info = Tag(size=size, xy=xy)(flat(height, width))
    first, last, left, right = box(info.mask)
    letter = max(size * min(height, width), 1)
    assert round(xy[1] * height) <= first < last <= round(xy[1] * height) + letter + 2
    assert round(xy[0] * width) <= left < right <= round(xy[0] * width) + letter + 2
    if letter >= 6:  # a capital letter has 0.7 of the height of the font, and is narrower than high
        assert 0.5 * letter < last - first < 0.9 * letter + 2
        assert 0.3 * letter < right - left <= last - first


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_value_is_a_share_of_the_range(dtype):
    top = np.iinfo(dtype).max if dtype != np.float32 else 1
    edited, _ = Tag(size=0.4)(np.zeros((64, 64), dtype))
    assert edited.max() == top
    gray, _ = Tag(size=0.4, value=0.5)(np.zeros((64, 64), dtype))
    assert gray.max() == pytest.approx(top / 2, abs=0.5 if dtype != np.float32 else 0)
    ct, _ = Tag(size=0.4)(np.full((64, 64), -500, np.int16), value_range=(-1024, 3071))
    assert ct.max() == 3071 and ct.min() == -500


def test_a_tag_on_colour_is_white():
    edited, info = Tag(size=0.4)(flat(64, 64, 3))
    strongest = np.abs(info.residual).sum(axis=2) == np.abs(info.residual).sum(axis=2).max()
    np.testing.assert_array_equal(edited[strongest], 1.0)


@pytest.mark.parametrize(
    ("confounder", "shape"),
    [
        (Tag(xy=(0.99, 0.2)), (64, 64)),
        (Tag(xy=(0.2, 1.0)), (64, 64)),
        (Tag(size=1.0), (64, 64)),
        (TextAnnotation(text="PORTABLE " * 20), (200, 200)),
        (TextAnnotation(size=0.3), (100, 100)),
    ],
)
def test_text_has_to_lie_in_the_frame(confounder, shape):
    with pytest.raises(DataError, match=rf"{confounder.name}: .* {shape[0]} × {shape[1]}\. Lower size, move xy, or shorten"):
        confounder(flat(*shape))


def test_a_text_fits_exactly_or_not_at_all():
    """The least frame that is not refused holds every touched pixel, and one pixel less is refused."""
    width = next(n for n in range(200, 400) if _fits(n))
    assert not any(_fits(n) for n in range(200, width)) and _fits(width + 1)
    _, info = TextAnnotation(size=0.2, xy=(0.0, 0.0))(flat(200, width))
    assert box(info.mask)[3] >= width - 2


def _fits(width):
    try:
        TextAnnotation(size=0.2, xy=(0.0, 0.0))(flat(200, width))
    except DataError:
        return False
    return True


def test_the_annotation_is_longer_than_high():
    _, info = TextAnnotation()(flat(512, 512))
    first, last, left, right = box(info.mask)
    assert right - left > 4 * (last - first) and (left, first) >= (26, 26) and right < 256
    _, count = label(info.mask, np.ones((3, 3)))
    assert 6 <= count <= 8, "eight letters, of which neighbours may touch"


@pytest.mark.parametrize("kind", [Tag, TextAnnotation])
@pytest.mark.parametrize("text", ["", " \t"])
def test_a_text_without_letters_is_refused(kind, text):
    with pytest.raises(UsageError, match=f"text of {kind.name}"):
        kind(text=text)


def test_strokes_left_of_the_anchor_are_not_cut():
    canvas = Image.new("L", (128, 128))
    ImageDraw.Draw(canvas).text((32, 32), "/", fill=255, font=ImageFont.load_default(64))
    found, info = Tag(text="/", size=0.5, xy=(0.25, 0.25))(flat(128, 128, value=0.0))
    assert info.mask[:, :32].any()
    np.testing.assert_allclose(found, np.asarray(canvas) / 255, atol=1e-12)
    with pytest.raises(DataError, match="columns -1 to"):
        Tag(text="/", size=0.5, xy=(0.0, 0.25))(flat(128, 128))
