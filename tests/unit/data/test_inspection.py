"""One look at each image: what is damaged, meaningless or dark is known before anything long begins."""

import threading

import numpy as np
import pytest

from crossgraft.data.inspection import inspect_images, summarise_kinds
from crossgraft.errors import DataError, UnreadableImageError


def source(images):
    """Names and a decoder of images in memory; a text in place of an image is the reason why it cannot be decoded."""
    names = [f"{number}.png" for number in range(len(images))]
    calls = []
    lock = threading.Lock()

    def decode(row):
        with lock:
            calls.append(row)
        if isinstance(images[row], str):
            raise UnreadableImageError(names[row], images[row])
        return images[row]

    return names, decode, calls


def test_every_image_is_decoded_exactly_once(pixels):
    names, decode, calls = source([pixels(seed) for seed in range(300)])
    inspected = inspect_images(names, decode, num_threads=4)
    assert sorted(calls) == list(range(300))
    np.testing.assert_array_equal(inspected.read(299), pixels(299))
    assert len(calls) == 300  # it was kept


def test_what_does_not_fit_in_memory_is_decoded_again(pixels):
    names, decode, calls = source([pixels(seed) for seed in range(4)])
    inspected = inspect_images(names, decode, kept_bytes=2 * pixels(0).nbytes)
    for row in range(4):
        np.testing.assert_array_equal(inspected.read(row), pixels(row))
    assert sorted(calls) == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize("kept_bytes", [0, 10**6])
def test_nobody_can_change_a_shared_image(pixels, kept_bytes):
    names, decode, _ = source([pixels(0)])
    image = inspect_images(names, decode, kept_bytes=kept_bytes).read(0)
    with pytest.raises(ValueError, match="read-only"):
        image[0] = 0


def test_unreadable_images_are_all_counted_and_the_first_is_named(pixels):
    images = [pixels(0), "bent", pixels(1), *["torn"] * 7]
    with pytest.raises(UnreadableImageError) as caught:
        inspect_images(*source(images)[:2])
    assert caught.value.where == "1.png"
    assert "bent (7 more cannot be read: 3.png, 4.png, 5.png, 6.png, 7.png …)" in str(caught.value)


def test_unreadable_images_can_be_skipped(pixels):
    inspected = inspect_images(*source([pixels(0), "bent", pixels(1)])[:2], skip_unreadable=True)
    assert inspected.unreadable == {1: "bent"}


@pytest.mark.parametrize(
    ("sample", "message"),
    [(np.nan, "1 of 48 samples that are NaN"), (np.inf, "infinite"), (1.5, "to 1.5"), (-0.25, "from -0.25")],
)
def test_float_samples_without_a_meaning_are_refused_or_left_out(pixels, sample, message):
    image = pixels(0, dtype=np.float32)
    image[2, 3] = sample
    with pytest.raises(DataError, match=rf"1\.png.*{message}"):
        inspect_images(*source([pixels(1), image])[:2])
    inspected = inspect_images(*source([pixels(1), image])[:2], skip_unreadable=True)
    assert list(inspected.unreadable) == [1] and message in inspected.unreadable[1]


def test_an_image_without_pixels_is_refused():
    with pytest.raises(DataError, match="no pixels"):
        inspect_images(*source([np.zeros((0, 4, 1), np.uint8)])[:2])


@pytest.mark.parametrize(("peak", "warned"), [(4095, True), (60000, False)])
def test_a_12_bit_range_in_16_bit_files_is_pointed_out(reporter, peak, warned):
    images = [np.full((2, 2, 1), value, np.uint16) for value in (3, peak)]
    inspect_images(*source(images)[:2], reporter=reporter)
    assert ("almost black" in reporter.stream.getvalue()) == warned


def test_the_stage_is_reported(pixels, reporter):
    inspect_images(*source([pixels(0)])[:2], reporter=reporter)
    assert "Looking at the images" in reporter.stream.getvalue()


def test_kinds_name_size_channels_and_depth(pixels):
    images = [pixels(0), pixels(0, channels=3), pixels(0, dtype=np.uint16), pixels(0, channels=3, dtype=np.float32)]
    kinds = [facts.kind for facts in inspect_images(*source(images)[:2]).facts]
    assert kinds == ["8×6 grey 8-bit", "8×6 RGB 8-bit", "8×6 grey 16-bit", "8×6 RGB float"]


def test_few_kinds_are_listed_by_frequency():
    assert list(summarise_kinds(["a", "b", "b"]).items()) == [("b", 2), ("a", 1)]


def test_many_sizes_become_one_range():
    kinds = [f"{size}×{size + 5} grey 8-bit" for size in range(20, 32)] + ["7×7 RGB 8-bit"] * 3
    assert summarise_kinds(kinds) == {"20–31×25–36 grey 8-bit": 12, "7×7 RGB 8-bit": 3}
