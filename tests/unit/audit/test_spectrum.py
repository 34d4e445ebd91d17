"""Radial spectra against sums written out, and what they must not depend on."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.audit import mean_psd, normalized_psd, radial_psd, spectral_overlap, whiten_spectrum
from crossgraft.edit.source_editing import merge_labels
from crossgraft.errors import DataError, UsageError


@settings(max_examples=25, deadline=None)
@given(st.integers(4, 13), st.integers(4, 13), st.integers(0, 99))
def test_every_ring_is_the_mean_of_its_frequencies(height, width, seed):
    image = np.random.default_rng(seed).random((height, width))
    magnitude, number = np.abs(np.fft.fft2(image)), min(height, width)
    rings = [[] for _ in range(number // 2)]
    for u in range(height):
        for v in range(width):
            ky, kx = (k if k < (n + 1) // 2 else k - n for k, n in ((u, height), (v, width)))
            ring = int(np.floor(number * np.sqrt((ky / height) ** 2 + (kx / width) ** 2) + 0.5))
            if ring < number // 2:
                rings[ring].append(magnitude[u, v])
    np.testing.assert_allclose(radial_psd(image), [2 * np.pi * np.mean(each) for each in rings])
    np.testing.assert_allclose(radial_psd(image, reduce="sum"), [np.sum(each) for each in rings])
    np.testing.assert_allclose(radial_psd(image.T), radial_psd(image))
    np.testing.assert_allclose(radial_psd(np.roll(image, 2, axis=1)), radial_psd(image))


def test_channels_do_not_cancel():
    image = np.random.default_rng(0).random((16, 16))
    both = np.stack([image, 1 - image], axis=2)
    np.testing.assert_allclose(radial_psd(both)[1:], radial_psd(image)[1:])


def test_a_window_damps_the_cross_of_the_borders():
    ramp = np.tile(np.linspace(0, 1, 64), (64, 1))
    plain, damped = (normalized_psd(radial_psd(ramp, window=window)) for window in ("none", "hann"))
    assert damped[16:].sum() < 0.1 * plain[16:].sum()


def test_normalisation():
    psd = np.array([9.0, 1.0, 3.0])
    assert normalized_psd(psd).tolist() == [0, 0.25, 0.75]
    assert normalized_psd(psd, by="max").tolist() == [0, 1 / 3, 1]
    assert normalized_psd(psd, by="none").tolist() == psd.tolist() == [9, 1, 3]
    assert normalized_psd(np.zeros(4)).tolist() == [0] * 4


def test_a_mean_over_images_needs_one_size():
    images = [np.random.default_rng(seed).random((12, 12)) for seed in range(3)]
    np.testing.assert_allclose(mean_psd(images), np.mean([radial_psd(each) for each in images], axis=0))
    for wrong, said in (([], "no image"), ([images[0], np.zeros((20, 20))], "differ in size")):
        with pytest.raises(DataError, match=said):
            mean_psd(wrong)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.integers(3, 20))
def test_overlap_is_between_0_and_1_and_symmetric(seed, rings):
    a, g = np.random.default_rng(seed).random((2, rings)) + 0.01
    found, other = spectral_overlap(a, g), spectral_overlap(g, a)
    assert 0 <= found.overlap <= 1 + 1e-12 and found[:4] == pytest.approx(other[:4])
    same = spectral_overlap(a, 5 * a)
    assert (same.overlap, same.cosine, same.spearman, same.distance) == pytest.approx((1, 1, 1, 0))
    flat = np.ones(rings)
    assert found.flat == pytest.approx(spectral_overlap(a, flat).overlap)
    shares = [each[1:] / each[1:].sum() for each in (a, g)]
    assert found.overlap == pytest.approx(sum(map(min, *shares)))


@settings(max_examples=25, deadline=None)
@given(st.integers(5, 14), st.integers(5, 14), st.sampled_from([None, 1, 3]), st.integers(0, 99))
def test_whitening_keeps_mean_deviation_and_phase(height, width, channels, seed):
    shape = (height, width) if channels is None else (height, width, channels)
    image = 100 * np.random.default_rng(seed).random(shape)
    found = whiten_spectrum(image)
    np.testing.assert_allclose(found.mean(axis=(0, 1)), image.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.std(axis=(0, 1)), image.std(axis=(0, 1)))
    before, after = (np.fft.fft2(each, axes=(0, 1)) for each in (image, found))
    there = np.abs(before) > 1e-6
    there[0, 0] = False
    np.testing.assert_allclose((after / np.abs(after))[there], (before / np.abs(before))[there], atol=1e-6)


def test_a_constant_channel_stays():
    image = np.random.default_rng(0).random((8, 8, 3))
    image[:, :, 1] = 0.3
    np.testing.assert_array_equal(whiten_spectrum(image)[:, :, 1], image[:, :, 1])
    assert not np.allclose(whiten_spectrum(image)[:, :, 0], image[:, :, 0])


def test_labels_are_merged_or_refused():
    assert merge_labels(["cat", "car"], {"cat": "living", "car": "artifact"}).tolist() == ["living", "artifact"]
    with pytest.raises(DataError, match="2 classes have no coarser one: dog, fox"):
        merge_labels(["cat", "dog", "fox"], {"cat": "living"})


def test_bad_input(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for call, error, said in (
        (lambda: radial_psd(np.zeros(4)), DataError, "an image"),
        (lambda: radial_psd(np.full((4, 4), np.inf)), DataError, "NaN or infinite"),
        (lambda: radial_psd(np.zeros((4, 4)), quantity="phase"), UsageError, "magnitude or power"),
        (lambda: radial_psd(np.zeros((4, 4)), reduce="median"), UsageError, "mean2pi or sum"),
        (lambda: normalized_psd(np.ones(3), by="area"), UsageError, "sum, max or none"),
        (lambda: spectral_overlap(np.ones(4), np.ones(5)), DataError, "same length"),
        (lambda: spectral_overlap(np.zeros(4), np.ones(4)), DataError, "zero everywhere"),
        (lambda: whiten_spectrum(np.full((4, 4), np.nan)), DataError, "NaN or infinite"),
    ):
        with pytest.raises(error, match=said):
            call()
