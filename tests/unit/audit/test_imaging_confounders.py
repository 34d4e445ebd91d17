"""Imaging confounders, each against its definition written out, its known effects and its ends."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from skimage.data import shepp_logan_phantom
from skimage.restoration import denoise_nl_means
from skimage.transform import resize

from crossgraft.edit.confounders.bias_field import BiasField
from crossgraft.edit.confounders.gamma import Gamma
from crossgraft.edit.confounders.gibbs import Gibbs
from crossgraft.edit.confounders.intensity_shift import IntensityShift
from crossgraft.edit.confounders.jpeg import Jpeg, jpeg_bytes
from crossgraft.edit.confounders.motion_blur import MotionBlur, line_spread
from crossgraft.edit.confounders.mr_motion import STILL, MrMotion, moved_lines, recorded
from crossgraft.edit.confounders.nlm_denoising import NlmDenoising, noise_sigma
from crossgraft.edit.confounders.poisson_image import PoissonImage
from crossgraft.edit.confounders.poisson_projection import PoissonProjection
from crossgraft.edit.confounders.resample import Resample
from crossgraft.errors import CrossgraftWarning, UsageError

EVERY = [
    PoissonImage(),
    PoissonProjection(num_angles=40),
    PoissonProjection(num_angles=40, method="full_projection"),
    PoissonProjection(num_angles=40, method="full_projection", mode="full"),
    NlmDenoising(),
    NlmDenoising(rician=True),
    MotionBlur(length=0.1),
    MrMotion(),
    IntensityShift(),
    Gamma(),
    Jpeg(),
    BiasField(),
    Gibbs(),
    Resample(),
]


def rng(seed=0):
    return np.random.default_rng(seed)


def picture(*shape, seed=0):
    return 0.2 + 0.5 * rng(seed).random(shape)


def phantom(side):
    """Shepp-Logan; 0.25 is near water where 0 to 1 is −1000 to 3071 HU."""
    return np.clip(resize(shepp_logan_phantom(), (side, side)), 0, 1)


def edited(confounder, plane, seed=0):
    """Of one channel, not clipped."""
    return confounder.edit(plane[:, :, None], rng(seed)).pixels[:, :, 0]


@pytest.mark.parametrize("confounder", EVERY, ids=repr)
@pytest.mark.parametrize("shape", [(8, 8), (33, 20), (20, 33)], ids=str)
def test_what_all_of_them_keep(confounder, shape):
    plane = picture(*shape)
    given = plane.copy()
    one = confounder.edit(plane[:, :, None], rng(1)).pixels
    assert one.shape == (*shape, 1) and one.dtype == np.float64 and np.isfinite(one).all()
    np.testing.assert_array_equal(plane, given)
    np.testing.assert_array_equal(confounder.edit(plane[:, :, None], rng(1)).pixels, one)
    other = confounder.edit(plane[:, :, None], rng(2)).pixels
    assert confounder.is_stochastic == bool((one != other).any())
    grey = confounder.edit(np.repeat(plane[:, :, None], 3, axis=2), rng(1)).pixels
    assert grey.shape == (*shape, 3)
    for channel in range(3):
        np.testing.assert_allclose(grey[:, :, channel], one[:, :, 0], atol=1e-9)
    assert confounder.leaf == "imaging" and confounder.scope == "global" and confounder.level == "environment"


@pytest.mark.parametrize("confounder", EVERY, ids=repr)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_strength_0_and_1(confounder, dtype):
    image = (255 * picture(24, 30, 3)).astype(dtype) if dtype == np.uint8 else picture(24, 30, 3).astype(dtype)
    same, info = confounder(image, rng(), strength=0.0)
    np.testing.assert_array_equal(same, image)
    changed, info = confounder(image, rng())
    assert changed.dtype == dtype and changed.shape == image.shape and info.mask is None
    assert dtype == np.uint8 or info.rms > 0


class TestNlmDenoising:
    @pytest.mark.parametrize("shape", [(120, 131), (65, 300)])
    def test_the_estimate_finds_white_noise(self, shape):
        for sigma in (0.01, 0.1):
            smooth = np.add.outer(np.linspace(0, 1, shape[0]), np.linspace(0, 1, shape[1]) ** 2)
            assert noise_sigma(smooth + sigma * rng().standard_normal(shape)) == pytest.approx(sigma, rel=0.06)

    def test_a_masked_background_does_not_count(self):
        noise = 0.05 * rng().standard_normal((64, 64))
        for background in (0.0, 0.3):
            image = np.full((200, 200), background)
            image[:64, :64] += noise
            assert noise_sigma(image) == pytest.approx(0.05, rel=0.1)

    def test_it_is_that_of_scikit_image_and_removes_noise(self):
        clean = np.zeros((64, 64))
        clean[16:48, 16:48] = 0.6
        noisy = np.clip(0.2 + clean + 0.05 * rng().standard_normal(clean.shape), 0, 1)
        sigma = noise_sigma(noisy)
        expected = denoise_nl_means(noisy, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=True)
        found = edited(NlmDenoising(), noisy)
        np.testing.assert_array_equal(found, expected)
        assert (found - 0.2 - clean).std() < 0.4 * 0.05

    def test_rician_noise_has_a_bias_that_it_removes(self):
        signal = np.full((96, 96), 0.3)
        signal[:, 48:] = 0.6
        noise = 0.1 * rng().standard_normal((2, 96, 96))
        magnitude = np.hypot(signal + noise[0], noise[1])
        plain, rician = (edited(NlmDenoising(h=2.0, rician=by), magnitude) for by in (False, True))
        bias = [(found[10:-10, 10:38] - 0.3).mean() for found in (plain, rician)]
        assert bias[0] > 0.01 and abs(bias[1]) < 0.4 * bias[0]
        assert (rician[:, :40] - 0.3).std() < 0.5 * (magnitude[:, :40] - 0.3).std()

    @pytest.mark.parametrize("flat", [0.0, 0.3, 1.0])
    def test_no_noise_is_left_alone_with_a_warning(self, flat):
        image = np.full((16, 16), flat)
        with pytest.warns(CrossgraftWarning, match="finds no noise"):
            found, info = NlmDenoising()(image)
        np.testing.assert_array_equal(found, image)
        assert info.share_changed == 0


class TestMotionBlur:
    @settings(max_examples=40, deadline=None)
    @given(st.floats(0, 12), st.floats(0, 180))
    def test_a_point_becomes_a_line(self, length, angle):
        weights = line_spread(length, angle)
        assert weights.sum() == pytest.approx(1) and (weights >= 0).all()
        np.testing.assert_allclose(weights, weights[::-1, ::-1], atol=1e-12)
        reach = len(weights) // 2
        y, x = reach - np.mgrid[: len(weights), : len(weights)]
        x = -x
        cosine, sine = np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))
        along, across = x * cosine + y * sine, y * cosine - x * sine
        # Second moment of a line, and of the spreading over neighbours, which is at most 1/4 in each direction.
        assert -0.01 <= (weights * along**2).sum() - length**2 / 12 <= 0.51
        assert (weights * across**2).sum() <= 0.51
        assert (weights > 0).sum() <= 4 * length + 12

    def test_whole_lengths_along_the_rows(self):
        found = line_spread(2.0, 0.0)
        np.testing.assert_allclose(found.sum(axis=1), [0, 0, 1, 0, 0], atol=1e-12)
        # A line of 2 px, each of its points shared between two pixels: 1/4, 1/2 and 1/4.
        np.testing.assert_allclose(found[2], [0, 0.25, 0.5, 0.25, 0], atol=1e-3)
        np.testing.assert_allclose(line_spread(2.0, 90.0), found.T, atol=1e-12)
        np.testing.assert_array_equal(line_spread(0.0, 30.0), np.pad([[1.0]], 1))

    def test_it_is_the_sum_written_out(self):
        plane = picture(12, 20)
        weights = line_spread(0.2 * 20, 30.0)
        reach = len(weights) // 2
        mirrored = np.pad(plane, reach, mode="symmetric")
        expected = np.zeros(plane.shape)
        for row in range(len(weights)):
            for column in range(len(weights)):
                expected += weights[row, column] * mirrored[row : row + 12, column : column + 20]
        np.testing.assert_allclose(edited(MotionBlur(length=0.2, angle=30.0), plane), expected, atol=1e-12)

    def test_direction_and_what_it_keeps(self):
        point = np.zeros((41, 41))
        point[20, 20] = 1
        found = edited(MotionBlur(length=0.4, angle=45.0), point)
        assert found.sum() == pytest.approx(1)
        assert found[15, 25] > 0.01 and found[25, 15] > 0.01 and found[15, 15] == found[25, 25] == 0
        np.testing.assert_allclose(edited(MotionBlur(length=0.3), np.full((20, 20), 0.7)), 0.7, atol=1e-12)
        noise = picture(64, 64)
        assert edited(MotionBlur(), noise).mean() == pytest.approx(noise.mean(), abs=0.005)
        assert edited(MotionBlur(length=0.1), noise).std() < 0.6 * noise.std()

    def test_a_given_angle_draws_nothing(self):
        plane, generator = picture(16, 16), rng()
        MotionBlur(length=0.2, angle=10.0).edit(plane[:, :, None], generator)
        assert generator.random() == rng().random()
        np.testing.assert_allclose(edited(MotionBlur(length=0.0), plane), plane)


class TestIntensity:
    def test_gain_and_offset(self):
        plane = picture(9, 9)
        np.testing.assert_allclose(edited(IntensityShift(), plane), plane * 1.1 + 0.05)
        np.testing.assert_array_equal(edited(IntensityShift(gain=1.0, offset=0.0), plane), plane)
        found, _ = IntensityShift(gain=1.0, offset=0.1)(np.full((8, 8), 200, np.uint8))
        assert (found == 226).all()  # 200 + 25.5, rounded to even
        with pytest.raises(UsageError, match="offset of intensity_shift must be in"):
            IntensityShift(offset=20.0)

    def test_gamma(self):
        levels = np.linspace(0, 1, 64).reshape(8, 8)
        found = edited(Gamma(gamma=2.0), levels)
        np.testing.assert_allclose(found, levels * levels)
        assert (np.diff(edited(Gamma(), levels).ravel()) > 0).all()
        for end in (0.0, 1.0):
            assert (edited(Gamma(), np.full((8, 8), end)) == end).all()
        np.testing.assert_array_equal(edited(Gamma(gamma=1.0), levels), levels)
        np.testing.assert_allclose(edited(Gamma(gamma=1 / 3), edited(Gamma(gamma=3.0), levels)), levels, atol=1e-12)
        for wrong in (0.0, -1.0):
            with pytest.raises(UsageError, match="gamma of gamma must be in"):
                Gamma(gamma=wrong)


class TestJpeg:
    def test_lower_quality_is_smaller_and_farther(self):
        grey = np.rint(255 * phantom(96)).astype(np.uint8)
        sizes = [len(jpeg_bytes(grey, quality)) for quality in (5, 20, 40, 80, 95)]
        assert sizes == sorted(sizes) and sizes[-1] > 3 * sizes[0]
        errors = [Jpeg(quality=quality)(grey)[1].rms for quality in (5, 20, 40, 80, 95)]
        assert errors == sorted(errors, reverse=True) and errors[0] > 5 * errors[-1]

    @pytest.mark.parametrize("shape", [(24, 31), (24, 31, 3)], ids=str)
    def test_it_is_what_a_file_gives_back(self, shape):
        image = (255 * picture(*shape)).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(image).save(stream, "jpeg", quality=30)
        found, _ = Jpeg(quality=30)(image)
        np.testing.assert_array_equal(found, np.asarray(Image.open(stream)))

    def test_grey_stays_grey_and_8_bits_are_left(self):
        grey = picture(20, 30)
        found = Jpeg(quality=10).edit(np.repeat(grey[:, :, None], 3, axis=2), rng()).pixels
        assert (found == found[:, :, :1]).all()
        np.testing.assert_allclose(found * 255, np.rint(found * 255), atol=1e-9)

    @pytest.mark.parametrize("quality", [0, 96])
    def test_what_it_refuses(self, quality):
        with pytest.raises(UsageError, match="quality of jpeg must be in"):
            Jpeg(quality=quality)


class TestBiasField:
    def test_it_is_the_polynomial_written_out(self):
        plane = picture(10, 14)
        drawn = rng(5).uniform(-0.3, 0.3, (4, 4))
        expected = np.empty(plane.shape)
        for row in range(10):
            for column in range(14):
                v, u = -1 + 2 * row / 9, -1 + 2 * column / 13
                exponent = sum(drawn[i, j] * v**i * u**j for i in range(4) for j in range(4) if i + j <= 3)
                expected[row, column] = plane[row, column] * np.exp(exponent)
        np.testing.assert_allclose(edited(BiasField(), plane, seed=5), expected)

    def test_its_ends(self):
        plane = picture(10, 14)
        np.testing.assert_array_equal(edited(BiasField(largest=0.0), plane), plane)
        ratio = edited(BiasField(order=0), plane) / plane
        assert ratio.std() < 1e-12 and np.exp(-0.3) <= ratio[0, 0] <= np.exp(0.3)
        drawn = [np.log(edited(BiasField(), np.ones((9, 9)), seed)[4, 4]) for seed in range(400)]
        # In the middle the constant alone is left.
        assert np.std(drawn) == pytest.approx(0.3 / np.sqrt(3), rel=0.1) and max(np.abs(drawn)) <= 0.3


class TestGibbs:
    @pytest.mark.parametrize("shape", [(9, 12), (16, 16), (11, 8)], ids=str)
    @pytest.mark.parametrize("keep", [0.0, 0.5, 0.7, 1.0])
    def test_it_is_the_transform_written_out(self, shape, keep):
        plane = picture(*shape)
        rows, columns = (np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n) for n in shape)
        spectrum = rows @ plane @ columns
        for u in range(shape[0]):
            for v in range(shape[1]):
                ky, kx = min(u, shape[0] - u), min(v, shape[1] - v)
                if 20 * ky > round(10 * keep) * shape[0] or 20 * kx > round(10 * keep) * shape[1]:
                    spectrum[u, v] = 0
        expected = (rows.conj() @ spectrum @ columns.conj()).real / plane.size
        np.testing.assert_allclose(edited(Gibbs(keep=keep), plane), expected, atol=1e-12)

    def test_an_edge_overshoots_by_nine_percent(self):
        edge = np.zeros((8, 1024))
        edge[:, 256:768] = 0.5
        found = edited(Gibbs(keep=0.1), edge)
        assert found.max() == pytest.approx(0.5 * 1.0895, abs=0.003)
        assert found.mean() == pytest.approx(edge.mean()) and (found**2).sum() < (edge**2).sum()


class TestResample:
    def test_its_ends(self):
        plane = picture(20, 31)
        np.testing.assert_allclose(edited(Resample(scale=1.0), plane), plane, atol=1e-12)
        np.testing.assert_allclose(edited(Resample(), np.full((20, 31), 0.4)), 0.4, atol=1e-12)
        blocks = edited(Resample(order=0), picture(20, 32)).reshape(10, 2, 16, 2)
        assert (blocks == blocks[:, :1, :, :1]).all()

    def test_slopes_stay_and_details_go(self):
        ramp = np.add.outer(np.linspace(0, 0.5, 40), np.linspace(0, 0.5, 40))
        np.testing.assert_allclose(edited(Resample(), ramp)[8:-8, 8:-8], ramp[8:-8, 8:-8], atol=1e-6)
        stripes = np.tile([0.3, 0.7], (40, 20))
        assert edited(Resample(), stripes)[8:-8, 8:-8].std() < 0.3 * stripes.std()
        noise = picture(64, 64)
        sds = [edited(Resample(scale=scale), noise).std() for scale in (0.25, 0.5, 0.9)]
        assert sds == sorted(sds) and sds[2] < noise.std()


class TestMrMotion:
    def test_a_line_is_that_of_the_patient_who_lay_elsewhere(self):
        """By whole pixels, the discrete transform as a sum over pixels."""
        plane, height, width = picture(12, 9), 12, 9
        moved = np.array([STILL, 0, 0, STILL, 1, 1, STILL, STILL, 1, STILL, 0, STILL])
        ways = np.array([[2.0, -1.0], [-3.0, 4.0]])
        lay = {STILL: plane, 0: np.roll(plane, (2, -1), (0, 1)), 1: np.roll(plane, (-3, 4), (0, 1))}
        rows, columns = np.arange(height)[:, None], np.arange(width)
        k_space = np.array(
            [
                [
                    (lay[moved[ky]] * np.exp(-2j * np.pi * (ky * rows / height + kx * columns / width))).sum()
                    for kx in range(width)
                ]
                for ky in range(height)
            ]
        )
        expected = np.abs(np.fft.ifft2(k_space))
        np.testing.assert_allclose(recorded(plane[:, :, None], moved, ways)[:, :, 0], expected, atol=1e-12)
        everywhere = recorded(plane[:, :, None], np.zeros(height, int), ways)[:, :, 0]
        np.testing.assert_allclose(everywhere, lay[0], atol=1e-12)

    @pytest.mark.parametrize("still", [{"displacement": 0.0}, {"lines": 0.0}])
    def test_nobody_moves(self, still):
        plane = picture(31, 24)
        np.testing.assert_array_equal(edited(MrMotion(**still), plane), plane)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(8, 65), st.floats(0, 1), st.integers(1, 9), st.integers(0, 99))
    def test_the_share_of_lines_is_that_of_the_option(self, height, share, movements, seed):
        moved = moved_lines(height, share, movements, rng(seed))
        assert moved[0] == STILL and (moved != STILL).sum() == min(round(share * height), height - 1)
        in_time = np.delete(np.fft.fftshift(moved), height // 2)  # without the middle line, which nobody moves for
        runs = [np.flatnonzero(in_time == place) for place in range(movements)]
        assert all((np.diff(run) == 1).all() for run in runs)
        lengths = [len(run) for run in runs]
        assert max(lengths) - min(lengths) <= 1

    def test_no_energy_is_lost_and_ghosts_lie_along_the_columns(self):
        """A column of light beside darkness: sideways movements aside, all that is misplaced stays in its column."""
        plane = np.zeros((64, 64))
        plane[20:40, 30] = 1.0
        moved = moved_lines(64, 0.4, 3, rng())
        found = recorded(plane[:, :, None], moved, np.array([[5.0, 0.0], [-7.0, 0.0], [3.0, 0.0]]))[:, :, 0]
        assert np.square(found).sum() == pytest.approx(np.square(plane).sum(), rel=1e-12)
        assert found[:, 30][plane[:, 30] == 0].max() > 0.1 and np.delete(found, 30, axis=1).max() < 1e-12
        noise = picture(48, 48)
        assert np.square(edited(MrMotion(), noise)).sum() == pytest.approx(np.square(noise).sum(), rel=1e-12)

    def test_millimetres_are_pixels_of_a_size(self):
        plane = picture(32, 32)
        np.testing.assert_array_equal(
            edited(MrMotion(displacement=3.0, pixel_size=0.5), plane), edited(MrMotion(displacement=6.0), plane)
        )
        rms = [np.std(edited(MrMotion(displacement=way), plane) - plane) for way in (0.01, 0.1, 1.0)]
        assert rms[0] < 0.2 * rms[1] < 0.2 * rms[2]


class TestPoissonImageOfTheReleasedCode:
    def test_it_rounds_down_and_half_a_level_is_lost(self):
        image = rng().integers(20, 200, (64, 64), dtype=np.uint8)
        quiet = {"num_photons": 1e12}  # less noise than rounding
        same, _ = PoissonImage(**quiet)(image, rng())
        np.testing.assert_array_equal(same, image)
        both, _ = PoissonImage(**quiet, dequantize=True, floor=True)(image, rng())
        assert (both == image).mean() > 0.95
        raised, _ = PoissonImage(**quiet, dequantize=True)(image, rng())
        assert (raised - image.astype(float)).mean() == pytest.approx(0.5, abs=0.03)
        lowered, _ = PoissonImage(floor=True)(image, rng())
        nearest, _ = PoissonImage()(image, rng())
        darker = nearest.astype(float) - lowered
        assert set(np.unique(darker)) == {0, 1} and darker.mean() == pytest.approx(0.5, abs=0.03)

    def test_floats_come_out_as_levels_of_8_bits(self):
        found = edited(PoissonImage(floor=True), picture(20, 20))
        np.testing.assert_allclose(found * 255, np.rint(found * 255), atol=1e-9)
        first, second = (PoissonImage(dequantize=True)(picture(20, 20), rng(seed))[0] for seed in (1, 1))
        np.testing.assert_array_equal(first, second)
