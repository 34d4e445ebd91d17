"""Photons that are counted, on the picture and on projections, against the definitions written out and exact variances."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from skimage.data import shepp_logan_phantom
from skimage.transform import iradon, radon, resize

from crossgraft.edit.confounders._projection import (
    counted_integrals,
    filtered_back_projection,
    line_integrals,
    smooth_line_integrals,
)
from crossgraft.edit.confounders.poisson_image import PoissonImage, noise_in_grey_levels
from crossgraft.edit.confounders.poisson_projection import PIXEL_SIZE_M, PoissonProjection
from crossgraft.errors import CrossgraftWarning, UsageError


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(*shape):
    return 0.2 + 0.5 * rng().random(shape)


def phantom(side):
    """Shepp-Logan; 0.25 is near water where 0 to 1 is −1000 to 3071 HU."""
    return np.clip(resize(shepp_logan_phantom(), (side, side)), 0, 1)


def edited(confounder, plane):
    """Of one channel, not clipped."""
    return confounder.edit(plane[:, :, None], rng()).pixels[:, :, 0]


class TestCountedIntegrals:
    @pytest.mark.parametrize("least", [0.1, 0.5])
    def test_mean_and_variance_are_those_of_the_poisson_distribution(self, least):
        p, photons, draws = np.array([0.0, 1.0, 3.0]), 60, 200_000
        found = counted_integrals(np.repeat(p[None], draws, axis=0), photons, rng(), least_count=least)
        counts = np.arange(200)
        value = -np.log(np.maximum(counts, least) / photons)
        for column, each in enumerate(p):
            probability = stats.poisson.pmf(counts, photons * np.exp(-each))
            mean = probability @ value
            variance = probability @ (value - mean) ** 2
            assert found.values[:, column].mean() == pytest.approx(mean, abs=4 * np.sqrt(variance / draws))
            assert found.values[:, column].var() == pytest.approx(variance, rel=0.03)
            assert found.is_starved[:, column].mean() == pytest.approx(probability[0], abs=2e-3)

    def test_a_count_of_1_is_not_starved(self):
        found = counted_integrals(np.full(10_000, np.log(50.0)), 50, rng())
        np.testing.assert_array_equal(found.is_starved, found.values > np.log(50) + 1)


class TestPoissonImage:
    def test_it_is_the_equation_written_out(self):
        plane = picture(9, 11)
        options = PoissonImage(num_photons=500, window_low=-500, window_high=1500, mu_water=0.2, mu_air=0.01, path_cm=3.0)
        found = edited(options, plane)
        hu = plane * 2000 - 500
        p = 3 * (hu * (0.2 - 0.01) / 1000 + 0.2)
        count = rng().poisson(500 * np.exp(-p))
        noisy = -np.log(np.maximum(count / 500, 1e-8)) / 3
        expected = ((noisy - 0.2) * 1000 / (0.2 - 0.01) + 500) / 2000
        np.testing.assert_allclose(found, expected, atol=1e-12)

    def test_more_photons_and_longer_paths(self):
        flat = np.full((300, 300), 0.6)
        for options in ({"num_photons": 1e6}, {"num_photons": 4e6}, {"num_photons": 1e7, "path_cm": 5.0}):
            sd = noise_in_grey_levels(options["num_photons"], 0.0, path_cm=options.get("path_cm", 1.0))
            assert 255 * edited(PoissonImage(**options), flat).std() == pytest.approx(float(sd), rel=0.01)

    def test_colours_get_one_noise(self):
        image = picture(20, 20, 3)
        change = PoissonImage(num_photons=1e4).edit(image, rng()).pixels - image
        np.testing.assert_allclose(change[:, :, 0], change[:, :, 1], atol=1e-12)
        np.testing.assert_allclose(change[:, :, 0], change[:, :, 2], atol=1e-12)

    def test_what_it_refuses(self):
        with pytest.raises(UsageError, match="mu_air of poisson_image must be below mu_water"):
            PoissonImage(mu_air=0.2)
        with pytest.raises(UsageError, match="window_low of poisson_image must be below"):
            PoissonImage(window_low=800.0)
        with pytest.raises(UsageError, match="num_photons of poisson_image must be in"):
            PoissonImage(num_photons=0.0)


class TestFilteredBackProjection:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(8, 15), st.integers(8, 15), st.integers(1, 5), st.integers(5, 40), st.integers(0, 99))
    def test_it_is_the_sum_written_out(self, height, width, quarter, detectors, seed):
        sinogram = rng(seed).standard_normal((detectors, 4 * quarter))
        y, x = np.arange(height)[:, None] - height // 2, np.arange(width) - width // 2
        seen = np.arange(-60, 61)
        expected = np.zeros((height, width))
        for k in range(4 * quarter):
            filtered = np.zeros(seen.size)
            for row, s in enumerate(np.arange(detectors) - detectors // 2):
                lags = seen - s
                safe = np.where(lags == 0, 1, lags)
                kernel = np.where(lags % 2 == 1, -1 / (np.pi * safe) ** 2, 0) + 0.25 * (lags == 0)
                filtered += kernel * sinogram[row, k]
            angle = np.pi * k / (4 * quarter)
            expected += np.interp(x * np.cos(angle) - y * np.sin(angle), seen, filtered)
        found = filtered_back_projection(sinogram, (height, width))
        np.testing.assert_allclose(found, expected * np.pi / (4 * quarter), atol=1e-12)

    @pytest.mark.parametrize("side", [33, 40])
    def test_it_is_that_of_scikit_image(self, side):
        sinogram = radon(picture(side, side), np.arange(0, 180, 9), circle=False)
        y, x = np.mgrid[:side, :side] - side // 2
        inside = np.hypot(x, y) <= side / 2
        found = filtered_back_projection(sinogram, (side, side))
        np.testing.assert_allclose(found[inside], iradon(sinogram, circle=False, output_size=side)[inside], rtol=0, atol=1e-12)

    def test_it_undoes_line_integrals(self):
        y, x = np.mgrid[:48, :60]
        blob = np.exp(-((x - 40) ** 2 + (y - 18) ** 2) / 50)
        found = filtered_back_projection(line_integrals(blob, 120), (48, 60))
        np.testing.assert_allclose(found, blob, atol=0.02)


class TestSmoothLineIntegrals:
    @pytest.mark.parametrize("shape", [(48, 60), (150, 97), (300, 200), (257, 257)])
    def test_smooth_images_have_the_same_integrals(self, shape):
        y, x = np.mgrid[: shape[0], : shape[1]] / max(shape)
        blob = np.exp(-((x - 0.4) ** 2 + (y - 0.3) ** 2) / 0.02)
        exact = line_integrals(blob, 64)[:, ::7]
        found = smooth_line_integrals(blob, 64)[:, ::7]
        assert found.shape == exact.shape
        np.testing.assert_allclose(found, exact, atol=0.04 * exact.max())

    def test_its_centre_is_that_of_the_image(self):
        """A shift by one pixel of a fine image would be three times the error that is left."""
        y, x = np.mgrid[:300, :300] / 300
        blob = np.exp(-((x - 0.6) ** 2 + (y - 0.3) ** 2) / 0.01)
        exact, found = line_integrals(blob, 800)[:, ::100], smooth_line_integrals(blob, 800)[:, ::100]
        shifts = [np.abs(np.roll(found, by, axis=0) - exact).mean() for by in (-1, 0, 1)]
        assert shifts[1] < 0.34 * min(shifts[0], shifts[2])


class TestPoissonProjection:
    def test_full_projection_is_the_chain_written_out(self):
        plane, options = phantom(24), PoissonProjection(num_photons=5000, method="full_projection", num_angles=36)
        theta = np.arange(0, 180, 5.0)
        attenuation = 0.02 + plane * 4071 * (20 - 0.02) / 1000
        p = radon(attenuation, theta, circle=False) * PIXEL_SIZE_M
        noisy = -np.log(np.maximum(rng().poisson(5000 * np.exp(-p)), 0.1) / 5000)
        per_range = PIXEL_SIZE_M * 4071 * (20 - 0.02) / 1000
        y, x = np.mgrid[:24, :24] - 12
        inside = np.hypot(x, y) <= 12

        def reconstructed(sinogram):
            return iradon(sinogram, theta, circle=False, output_size=24) / per_range

        added = edited(options, plane)
        np.testing.assert_allclose(added[inside], (plane + reconstructed(noisy - p))[inside], atol=1e-5)
        full = edited(PoissonProjection(5000, "full_projection", "full", num_angles=36), plane)
        black = 0.02 / (4071 * (20 - 0.02) / 1000)
        np.testing.assert_allclose(full[inside], (reconstructed(noisy) - black)[inside], atol=1e-9)

    def test_variance_in_the_middle_of_an_empty_image(self):
        """Sum of the squared ramp is 1/12; n angles of variance 1/N₀ give π² / (12·n·N₀), here for air."""
        options = PoissonProjection(num_photons=1e6, num_angles=16, window_low=-1001.0, method="full_projection")
        empty, generator = np.zeros((9, 9)), rng()
        draws = [options.noise(empty, generator).change[4, 4] for _ in range(1500)]
        per_range = PIXEL_SIZE_M * (4072 * (20 - 0.02) / 1000)
        assert np.std(draws) == pytest.approx(np.pi / np.sqrt(12 * 16 * 1e6) / per_range, rel=0.06)
        assert abs(np.mean(draws)) < 4 * np.std(draws) / np.sqrt(1500)

    @pytest.mark.parametrize("num_photons", [2e7, 4096])
    def test_a_variance_map_gives_the_noise_of_all_projections(self, num_photons):
        plane = phantom(160)
        sds = [
            PoissonProjection(num_photons, method, num_angles=200).noise(plane, rng()).change.std()
            for method in ("variance_map", "full_projection")
        ]
        assert sds[0] == pytest.approx(sds[1], rel=0.02)

    def test_noise_falls_with_the_root_of_photons_and_grows_with_the_body(self):
        plane = phantom(64)
        few, many, large = (
            PoissonProjection(num_angles=200, **options).noise(plane, rng()).change.std()
            for options in ({"num_photons": 1e6}, {"num_photons": 4e6}, {"num_photons": 1e6, "pixel_size_m": 4e-3})
        )
        assert few == pytest.approx(2 * many, rel=0.02)
        # e^(p/2) more noise in p, and pixels 5.6 times as large, over which it is divided.
        assert large > 3 * few * PIXEL_SIZE_M / 4e-3

    def test_a_full_reconstruction_blurs_more_than_it_adds_noise(self):
        plane = phantom(128)
        options = {"method": "full_projection", "num_angles": 200}
        residual = edited(PoissonProjection(**options), plane) - plane
        full = edited(PoissonProjection(mode="full", **options), plane) - plane
        sham = edited(PoissonProjection(mode="full", num_photons=1e15, **options), plane) - plane
        assert full.std() == pytest.approx(0.032, abs=0.001) and sham.std() == pytest.approx(full.std(), rel=0.01)
        assert residual.std() < 0.02 * full.std()
        np.testing.assert_allclose(full - sham, residual, atol=1e-4 * np.abs(full).max())

    def test_rays_without_photons(self):
        plane = np.full((40, 40), 0.9)
        starving = PoissonProjection(num_photons=100, pixel_size_m=5e-3, num_angles=40)
        assert starving.noise(plane, rng()).starved_share > 0.3
        assert PoissonProjection(num_angles=40).noise(plane, rng()).starved_share == 0
        with pytest.warns(CrossgraftWarning, match="no photon comes through on"):
            starving(plane, rng())

    def test_what_it_refuses(self, monkeypatch):
        monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        for options, said in (
            ({"mode": "full"}, "Add method=full_projection"),
            ({"mode": "both"}, "must be residual or full"),
            ({"method": "fast"}, "must be variance_map or full_projection"),
            ({"num_angles": 30}, "a multiple of 4, got 30"),
            ({"mu_air": 21.0}, "must be below mu_water"),
            ({"window_low": 4000.0}, "must be below window_high"),
        ):
            with pytest.raises(UsageError, match=said):
                PoissonProjection(**options)
