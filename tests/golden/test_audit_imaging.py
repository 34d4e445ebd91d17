"""Imaging confounders against the arrays of ``audit.npz`` on noise and projections: sums over probabilities, loops over pixels.

The back projection there is a loop over pixels of a sinogram of 24 angles (Ram-Lak kernel in space, linear interpolation,
circle); it agrees with ``skimage.transform.iradon`` to 1e-15. ``test_audit`` has the other arrays, and counts them.
"""

from pathlib import Path

import numpy as np
import pytest
from skimage.transform import radon

from crossgraft.edit.confounders._projection import counted_integrals, filtered_back_projection, line_integrals
from crossgraft.edit.confounders.nlm_denoising import noise_sigma
from crossgraft.edit.confounders.poisson_image import PoissonImage, noise_in_grey_levels

MU_AIR = {"ref": 0.1662, "phys": 0.1662 * 1.205e-3}
"""Of the thesis, and by the density of real air."""
COUNTED = [4096, 100000, 2000000, 20000000]
PAINTED = [2000000, 10000000, 15000000, 20000000]


@pytest.fixture(scope="module")
def golden():
    with np.load(Path(__file__).parent / "audit.npz", allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.mark.parametrize("num_photons", PAINTED)
@pytest.mark.parametrize("air", ["ref", "phys"])
def test_noise_in_grey_levels(golden, air, num_photons):
    found = noise_in_grey_levels(num_photons, golden["grey_HU"], mu_air=MU_AIR[air])
    np.testing.assert_allclose(found, golden[f"grey_sd_{air}_N0_{num_photons}"], rtol=1e-12)


@pytest.mark.parametrize("air", ["ref", "phys"])
def test_a_painted_picture_has_that_noise(golden, air):
    for hu, sd in zip(golden["grey_HU"][1:3], golden[f"grey_sd_{air}_N0_20000000"][1:3], strict=True):
        flat = np.full((300, 300, 1), (hu + 1200) / 2000)
        painted = PoissonImage(mu_air=MU_AIR[air]).edit(flat, np.random.default_rng(0)).pixels
        assert 255 * (painted - flat).std() == pytest.approx(sd, rel=0.01)
        assert abs(255 * (painted - flat).mean()) < 4 * sd / 300


class EachCount(np.random.Generator):
    """Draws every count once that a Poisson number of this mean has with any probability worth naming."""

    def __init__(self, mean):
        super().__init__(np.random.PCG64(0))
        reach = 12 * np.sqrt(mean) + 40
        self.counts = np.arange(max(0, int(mean - reach)), int(mean + reach))
        self.mean = None

    def poisson(self, lam=1.0, size=None):
        self.mean = lam
        return self.counts

    @property
    def probabilities(self):
        """By the ratio of neighbours, λ / k: with factorials a mean of 2e7 would lose half of the digits."""
        logarithms = np.cumsum(np.log(self.mean[1:] / self.counts[1:]))
        weights = np.exp(np.r_[0, logarithms] - logarithms.max())
        return weights / weights.sum()


@pytest.mark.parametrize("num_photons", COUNTED)
def test_exact_mean_and_variance_of_counted_integrals(golden, num_photons):
    means, variances = [], []
    for p in golden["pois_p"]:
        rng = EachCount(num_photons * np.exp(-p))
        values = counted_integrals(np.full(len(rng.counts), p), num_photons, rng).values
        means.append(rng.probabilities @ values)
        variances.append(rng.probabilities @ (values - means[-1]) ** 2)
    # Numbers as small as 2.5e-8: the absolute tolerance of other arrays would let everything pass.
    np.testing.assert_allclose(means, golden[f"pois_mean_N0_{num_photons}"], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variances, golden[f"pois_var_N0_{num_photons}"], rtol=1e-9)


@pytest.mark.parametrize("num_photons", COUNTED)
def test_mean_and_variance_of_drawn_integrals(golden, num_photons):
    draws, p, variance = 100_000, golden["pois_p"], golden[f"pois_var_N0_{num_photons}"]
    found = counted_integrals(np.repeat(p[None], draws, axis=0), num_photons, np.random.default_rng(0)).values
    standard_error = np.sqrt(variance / draws)
    assert (np.abs(found.mean(axis=0) - golden[f"pois_mean_N0_{num_photons}"]) < 4 * standard_error).all()
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.025)


@pytest.mark.parametrize("num_photons", COUNTED)
def test_noise_in_grey_levels_has_the_variance_of_the_delta_method(golden, num_photons):
    # One unit of p is a grey level, and 1000 HU: p = h / 1000 + 1.
    hu = 1000 * (golden["pois_p"] - 1)
    found = noise_in_grey_levels(num_photons, hu, mu_water=1.0, mu_air=0.0, window_hu=255_000.0)
    np.testing.assert_allclose(found**2, golden[f"pois_var_delta_N0_{num_photons}"], rtol=1e-9)


def test_filtered_back_projection_is_the_loop_over_pixels(golden):
    sinogram, expected = golden["fbp_sino"], golden["fbp_ramlak"]
    y, x = np.mgrid[-16:17, -16:17]
    inside = x**2 + y**2 <= 16**2
    found = filtered_back_projection(sinogram, expected.shape)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0, atol=1e-13)
    in_float32 = filtered_back_projection(sinogram.astype(np.float32), expected.shape)
    assert in_float32.dtype == np.float32
    np.testing.assert_allclose(in_float32[inside], expected[inside], rtol=0, atol=1e-5)


def test_line_integrals_have_the_angles_of_the_back_projection(golden):
    image, degrees = golden["fbp_ramlak"], golden["fbp_theta_deg"]
    np.testing.assert_allclose(line_integrals(image, len(degrees)), radon(image, degrees, circle=False), atol=1e-12)


def test_line_integrals_of_a_disc(golden):
    s, chords = golden["disc_s"].astype(int), golden["disc_sino"]
    radius, attenuation = golden["disc_R_mu"]
    # Means of a hundred points in each pixel: a jagged disc would have other chords.
    fine = (np.arange(-165, 165) + 0.5) / 10
    disc = (fine[:, None] ** 2 + fine**2 <= radius**2).reshape(33, 10, 33, 10).mean(axis=(1, 3))
    found = line_integrals(attenuation * disc, 24)
    found = found[found.shape[0] // 2 + s]
    for away_from_the_rim in (np.abs(s) <= radius - 2, np.abs(s) >= radius + 2):
        expected = np.repeat(chords[away_from_the_rim, None], 24, axis=1)
        np.testing.assert_allclose(found[away_from_the_rim], expected, rtol=0.03, atol=1e-12)


def test_estimate_of_noise(golden):
    """Values of ``skimage.restoration.estimate_sigma`` 0.26 with PyWavelets 1.9; the second image has masked corners."""
    assert noise_sigma(golden["fbp_sino"]) == pytest.approx(0.8887662299649456, rel=1e-12)
    assert noise_sigma(golden["fbp_ramlak"]) == pytest.approx(0.07481568088607768, rel=1e-12)
