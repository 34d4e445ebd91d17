"""Shams: as strong as the artefact, at its place, and not the artefact."""

import numpy as np
import pytest

from crossgraft.audit.pull import Sham, refuse_misfits
from crossgraft.choice import spell
from crossgraft.edit.confounders import Collimation, Gamma, IntensityShift, PenMark, PoissonImage, Tag
from crossgraft.errors import DataError
from crossgraft.seeding import generator

TAG = Tag(size=0.4, xy=(0.1, 0.1))


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(60, 160, (40, 48, 3)).astype(np.uint8)


def rms(image, edited):
    return np.sqrt(np.mean((edited.astype(float) - image) ** 2))


def change(image, edited):
    return edited.astype(float) - image


@pytest.mark.parametrize("edit", [TAG, PenMark(width=0.05), Gamma(1.4)], ids=lambda edit: edit.name)
def test_a_sham_is_as_strong_as_the_artefact(image, edit):
    sham = Sham(edit, 0)
    found, edited = sham(image, "a"), edit(image, generator(0, spell(edit), "a"))[0]
    expected = rms(image, edited)
    assert rms(image, found) == pytest.approx(expected, rel=0.1) and not sham.misfits
    assert found.dtype == image.dtype and not np.array_equal(found, edited)


def test_pixels_of_a_local_change_stay_in_its_rectangle(image):
    tagged, sham = TAG(image)[0], Sham(TAG, 0)(image, "a")
    rows, columns = (np.flatnonzero((tagged != image).any(axis=axis)) for axis in ((1, 2), (0, 2)))
    outside = np.ones(image.shape[:2], bool)
    outside[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = False
    assert not (sham != image)[outside].any()
    assert (change(image, sham) > 0).any() and (change(image, sham) < 0).any()


def test_draws_and_images_differ_and_nothing_else(image):
    places = [(Sham(TAG, draw)(image, name) != image).any(axis=2).tobytes() for draw, name in ((0, "a"), (0, "b"), (1, "a"))]
    assert len(set(places)) == 3
    assert np.array_equal(Sham(TAG, 3)(image, "a"), Sham(TAG, 3)(image, "a"))


def test_on_black_a_sham_keeps_its_signs():
    """Nothing is darker: half of the change would be cut off."""
    black = np.zeros((40, 48, 3), np.uint8)
    sham = Sham(TAG, 0)
    found = sham(black, "a")
    assert np.array_equal(np.sort(found, axis=None), np.sort(TAG(black)[0], axis=None)) and not sham.misfits


def test_a_shift_of_all_is_not_its_own_sham():
    """Its change is nothing but a mean: a sham that kept it would be the artefact itself."""
    grey = np.full((32, 32, 1), 100, np.uint8)
    edit = IntensityShift(gain=1.0, offset=0.2)
    means = {float(change(grey, Sham(edit, draw)(grey, "a")).mean()) for draw in range(8)}
    shift = float(change(grey, edit(grey)[0]).mean())
    assert means == {shift, -shift}


def test_a_global_change_keeps_its_spectrum_and_the_size_of_its_mean():
    grey = np.random.default_rng(0).uniform(0.3, 0.6, (32, 32, 1)).astype(np.float32)
    edited, sham = Gamma(1.3)(grey)[0], Sham(Gamma(1.3), 0)(grey, "a")
    powers = [np.abs(np.fft.fft2(change(grey, each)[:, :, 0])) for each in (edited, sham)]
    assert powers[1] == pytest.approx(powers[0], rel=0.02, abs=0.02)
    assert abs(change(grey, sham).mean()) == pytest.approx(abs(change(grey, edited).mean()), rel=0.02)


def test_a_change_that_is_not_there_has_none(image):
    white = np.full_like(image, 255)
    assert Sham(TAG, 0)(white, "a") is white
    assert np.array_equal(Sham(TAG, 0, strength=0.0)(image, "a"), image)


def test_shams_that_do_not_fit_are_named():
    """Where all but the letter is white already, its pixels have nowhere to go."""
    coverage = TAG(np.zeros((200, 200, 1), np.uint8))[0] > 0
    full = np.where(coverage, 0, 255).astype(np.uint8)
    sham = Sham(TAG, 0)
    sham(full, "full")
    assert sham.misfits == {"full"}
    refuse_misfits(1, 10, "tag")
    with pytest.raises(DataError, match=r"Shams of tag do not fit 2 of 10 images: .* Lower --strength"):
        refuse_misfits(2, 10, "tag")


def test_who_has_no_sham_says_why():
    for edit in (PoissonImage(), Collimation()):
        with pytest.raises(DataError, match=f"{edit.name} has no sham: {edit.why_no_sham}"):
            Sham(edit, 0)
