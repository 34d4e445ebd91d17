"""Imaging confounders against numbers of direct computations: sums over Poisson probabilities, loops over pixels.

``audit_imaging.npz`` has a sinogram of 24 angles and the loop over its pixels (Ram-Lak kernel in space, linear interpolation,
circle); that agrees with ``skimage.transform.iradon`` to 1e-15. The numbers below were summed over Poisson probabilities.
"""

from pathlib import Path

import numpy as np
import pytest

from crossgraft.audit.confounders._projection import counted_integrals, filtered_back_projection, line_integrals
from crossgraft.audit.confounders.nlm_denoising import noise_sigma
from crossgraft.audit.confounders.poisson_image import PoissonImage, noise_in_grey_levels

HERE = Path(__file__).parent
HU = np.array([-1200.0, -1000.0, 0.0, 800.0])
AIR_BY_DENSITY = 0.1662 * 1.205e-3
GREY_SD = {
    2e6: [5.5883936996125785, 5.5981819508086526, 5.647380974708168, 5.687051325772716],
    1e7: [2.499205639473053, 2.5035830784841067, 2.5255855508572966, 2.543326671191619],
    1.5e7: [2.040592859665039, 2.044167023650784, 2.0621319671154508, 2.0766175312102524],
    2e7: [1.7672052552510582, 1.7703005720600042, 1.7858586694779566, 1.7984035359722024],
}
GREY_SD_REAL_AIR = {
    2e6: [0.4824296105403545, 0.491363902128251, 0.5385793624653965, 0.5795979967898378],
    1e7: [0.21574908070539633, 0.21974461736966458, 0.24086001315022504, 0.25920410408895644],
    1.5e7: [0.1761583867342561, 0.1794207287596025, 0.1966613772193659, 0.21163926475106729],
    2e7: [0.15255763800154945, 0.155382909071333, 0.17031374861520515, 0.1832849797126848],
}
P = np.array([0, 0.1, 0.5, 1, 2, 4, 6])
MEAN = {
    4096: [1.2209515869e-4, 0.100134938908, 0.500201327479, 1.00033200524, 2.00090334477, 4.00674069202, 6.05437262428],
    1e5: [5.0000416714e-6, 0.100005525906, 0.500008243720, 1.00001359172, 2.00003694756, 4.00027311508, 6.00202397522],
}
VARIANCE = {
    4096: [2.4423008e-4, 2.6992639e-4, 4.0276311e-4, 6.6430471e-4, 1.80887139e-3, 1.360502790e-2, 0.1188514529],
    1e5: [
        1.000001500e-5,
        1.105189240e-5,
        1.648762047e-5,
        2.718392672e-5,
        7.389875216e-5,
        5.464292282e-4,
        4.058939624e-3,
    ],
}
DISC_RADIUS, DISC_ATTENUATION = 10, 0.02


@pytest.mark.parametrize("num_photons", GREY_SD)
def test_noise_in_grey_levels(num_photons):
    np.testing.assert_allclose(noise_in_grey_levels(num_photons, HU), GREY_SD[num_photons], rtol=1e-12)
    real = noise_in_grey_levels(num_photons, HU, mu_air=AIR_BY_DENSITY)
    np.testing.assert_allclose(real, GREY_SD_REAL_AIR[num_photons], rtol=1e-12)


@pytest.mark.parametrize(("mu_air", "expected"), [(0.1662, GREY_SD), (AIR_BY_DENSITY, GREY_SD_REAL_AIR)])
def test_a_painted_picture_has_that_noise(mu_air, expected):
    for hu, sd in zip(HU[1:3], expected[2e7][1:3], strict=True):
        flat = np.full((300, 300, 1), (hu + 1200) / 2000)
        painted = PoissonImage(mu_air=mu_air).edit(flat, np.random.default_rng(0)).pixels
        assert 255 * (painted - flat).std() == pytest.approx(sd, rel=0.01)
        assert abs(255 * (painted - flat).mean()) < 4 * sd / 300


@pytest.mark.parametrize("num_photons", MEAN)
def test_mean_and_variance_of_counted_integrals(num_photons):
    draws = 100_000
    found = counted_integrals(np.repeat(P[None], draws, axis=0), num_photons, np.random.default_rng(0)).values
    standard_error = np.sqrt(np.array(VARIANCE[num_photons]) / draws)
    assert (np.abs(found.mean(axis=0) - MEAN[num_photons]) < 4 * standard_error).all()
    np.testing.assert_allclose(found.var(axis=0), VARIANCE[num_photons], rtol=0.025)


def test_filtered_back_projection_is_the_loop_over_pixels():
    with np.load(HERE / "audit_imaging.npz", allow_pickle=False) as golden:
        sinogram, expected = golden["fbp_sino"], golden["fbp_ramlak"]
    y, x = np.mgrid[-16:17, -16:17]
    inside = x**2 + y**2 <= 16**2
    found = filtered_back_projection(sinogram, expected.shape)
    np.testing.assert_allclose(found[inside], expected[inside], rtol=0, atol=1e-13)
    in_float32 = filtered_back_projection(sinogram.astype(np.float32), expected.shape)
    assert in_float32.dtype == np.float32
    np.testing.assert_allclose(in_float32[inside], expected[inside], rtol=0, atol=1e-5)


def test_line_integrals_of_a_disc():
    s = np.arange(-8, 9)
    chords = 2 * DISC_ATTENUATION * np.sqrt(DISC_RADIUS**2 - s**2)
    # Means of a hundred points in each pixel: a jagged disc would have other chords.
    fine = (np.arange(-165, 165) + 0.5) / 10
    disc = (fine[:, None] ** 2 + fine**2 <= DISC_RADIUS**2).reshape(33, 10, 33, 10).mean(axis=(1, 3))
    found = line_integrals(DISC_ATTENUATION * disc, 24)
    middle = found.shape[0] // 2
    np.testing.assert_allclose(found[middle + s], np.repeat(chords[:, None], 24, axis=1), rtol=0.03)


def test_estimate_of_noise():
    """Values of ``skimage.restoration.estimate_sigma`` 0.26 with PyWavelets 1.9; the second image has masked corners."""
    with np.load(HERE / "audit_imaging.npz", allow_pickle=False) as golden:
        assert noise_sigma(golden["fbp_sino"]) == pytest.approx(0.8887662299649456, rel=1e-12)
        assert noise_sigma(golden["fbp_ramlak"]) == pytest.approx(0.07481568088607768, rel=1e-12)
