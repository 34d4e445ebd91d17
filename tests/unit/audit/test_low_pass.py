"""Low-pass denoising: a circle of whole frequencies, on any shape."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.audit import low_pass
from crossgraft.edit.confounders.low_pass import LowPass
from crossgraft.errors import DataError, UsageError


@settings(max_examples=30, deadline=None)
@given(st.integers(8, 13), st.integers(8, 13), st.integers(0, 9), st.booleans(), st.integers(0, 99))
def test_it_is_the_equation_written_out(height, width, cutoff, in_cycles, seed):
    """Explicit matrices of the transform, and distances of whole numbers as fractions."""
    image = np.random.default_rng(seed).random((height, width))
    rows, columns = (np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) for n in (height, width))
    spectrum = rows @ image @ columns
    for u in range(height):
        for v in range(width):
            ky, kx = (k if k < (n + 1) // 2 else k - n for k, n in ((u, height), (v, width)))
            far = (ky / height) ** 2 + (kx / width) ** 2 > (cutoff / 20) ** 2 + 1e-9 if in_cycles else ky**2 + kx**2 > cutoff**2
            spectrum[u, v] = 0 if far else spectrum[u, v]
    expected = (rows.conj() @ spectrum @ columns.conj() / (height * width)).real
    found = low_pass(image, cutoff / 20 if in_cycles else cutoff, unit="cycles" if in_cycles else "px")
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_channels_are_filtered_one_by_one():
    image = np.random.default_rng(0).random((9, 12, 3))
    found = low_pass(image, 0.2)
    for channel in range(3):
        np.testing.assert_array_equal(found[:, :, channel], low_pass(image[:, :, channel], 0.2))


def test_its_ends():
    image = np.random.default_rng(0).random((32, 32))
    np.testing.assert_allclose(low_pass(image, 0, unit="px"), np.full((32, 32), image.mean()))
    np.testing.assert_allclose(low_pass(image, 32, unit="px"), image, atol=1e-12)
    edited, info = LowPass(cutoff=0.1)(np.rint(image * 255).astype(np.uint8))
    assert edited.dtype == np.uint8 and info.mask is None and info.rms > 1
    assert LowPass().cutoff == 500 / 1024


def test_what_it_refuses(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(UsageError, match="add unit=px"):
        LowPass(cutoff=6)
    with pytest.raises(UsageError, match="cycles or px"):
        LowPass(unit="pixels")
    with pytest.raises(UsageError, match="cutoff of low_pass must be in"):
        LowPass(cutoff=-1)
    with pytest.raises(DataError, match="needs square images, got 10 × 12"):
        LowPass(cutoff=3, unit="px")(np.zeros((10, 12)))
