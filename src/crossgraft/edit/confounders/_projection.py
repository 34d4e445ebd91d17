"""Parallel-beam tomography: line integrals of an image, counted photons, filtered back projection.

Every sinogram here has one column per angle, 180°·k/n for k = 0 … n − 1, and one row per detector as wide as a pixel. The ray of
detector s and angle θ passes the pixels of x·cos θ − y·sin θ = s, where x counts columns and y rows from the centre of rotation:
pixel (height // 2, width // 2) and detector ``detectors // 2``, as in scikit-image.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64
from scipy import fft
from scipy.sparse import csr_array

from crossgraft.errors import UsageError

SYMMETRIES = 4
"""Number of angles must be a multiple: rotated and mirrored rays share their geometry."""
_COARSE_SIDE_PIXELS = 128
_ANGLES_PER_COARSE_ANGLE = 8
_LEAST_COARSE_ANGLES = 64

Sinogram = Float[np.ndarray, "detectors angles"]
Plane = Float[np.ndarray, "height width"]


class CountedIntegrals(NamedTuple):
    """Line integrals as a detector of single photons sees them.

    Attributes:
        values: p' = −ln(max(K, least) / N₀), K a Poisson number of mean N₀·exp(−p).
        is_starved: Where fewer photons than the least came through, so that the value is that of the least.
    """

    values: Float64[np.ndarray, "*shape"]
    is_starved: Bool[np.ndarray, "*shape"]


def counted_integrals(
    p: Float[np.ndarray, "*shape"], num_photons: float, rng: np.random.Generator, *, least_count: float = 0.1
) -> CountedIntegrals:
    """What is measured of line integrals; its variance is about e^p / N₀, its bias about e^p / (2·N₀).

    Args:
        p: Line integrals of the attenuation, without a unit.
        num_photons: N₀, photons that a ray starts with.
        rng: Random numbers.
        least_count: Photons that stand for none, because of the logarithm; 0.1 is that of LoDoPaB-CT (Leuschner et al.
            2021, Scientific Data 8:109).
    """
    counts = rng.poisson(num_photons * np.exp(-np.asarray(p, dtype=np.float64)))
    return CountedIntegrals(-np.log(np.maximum(counts, least_count) / num_photons), counts < least_count)


def refuse_scale(name: str, window_low: float, window_high: float, mu_water: float, mu_air: float) -> None:
    """Refuse a window or a pair of attenuations whose order is wrong."""
    if window_low >= window_high:
        raise UsageError(f"window_low of {name} must be below window_high, {window_high:g}, got {window_low:g}.")
    if mu_air >= mu_water:
        raise UsageError(f"mu_air of {name} must be below mu_water, {mu_water:g}, got {mu_air:g}.")


def line_integrals(image: Plane, num_angles: int) -> Sinogram:
    """Radon transform of scikit-image, in pixels times the unit of the image; 0 outside the image.

    Returns:
        As many detectors as the diagonal of a square around the image has pixels.
    """
    return _projected(image, _degrees(num_angles))


def smooth_line_integrals(image: Plane, num_angles: int) -> Sinogram:
    """``line_integrals`` from at most 128² pixels and an eighth of the angles, at least 64, interpolated linearly.

    It is wrong by the edges of the image, which noise, whose variance follows p, hardly shows; it costs about a hundredth.
    """
    from scipy.ndimage import map_coordinates

    height, width = image.shape
    factor = -(-max(height, width) // _COARSE_SIDE_PIXELS)
    coarse = _block_means(image, factor)
    middle = coarse.shape[0] // 2
    # The last angle, 180°, is there to interpolate up to it.
    steps = max(num_angles // _ANGLES_PER_COARSE_ANGLE, min(num_angles, _LEAST_COARSE_ANGLES))
    known = factor * _projected(coarse, np.linspace(0, 180, steps + 1))
    radians = np.deg2rad(_degrees(num_angles))
    # The centre of rotation is a pixel of the image, and mostly no pixel of the coarse one.
    down, right = ((side // 2 + 0.5) / factor - 0.5 - middle for side in (height, width))
    detectors = _diagonal(max(height, width))
    along = (np.arange(detectors) - detectors // 2)[:, None] / factor + right * np.cos(radians) - down * np.sin(radians)
    columns = np.broadcast_to(np.arange(num_angles) * (steps / num_angles), along.shape)
    return map_coordinates(known, [along + known.shape[0] // 2, columns], order=1)


def filtered_back_projection(sinogram: Sinogram, shape: tuple[int, int]) -> Plane:
    """The image whose line integrals these are: Ram-Lak filter, linear interpolation, sum over the angles times π/n.

    The numbers of ``skimage.transform.iradon`` inside the circle that the detectors see, in the precision of ``sinogram``.
    Kak and Slaney 1988, Principles of Computerized Tomographic Imaging, section 3.3.

    Args:
        sinogram: A multiple of 4 angles.
        shape: Height and width of the image, in pixels as wide as a detector.
    """
    detectors, num_angles = sinogram.shape
    height, width = shape
    radius = max(height, width) // 2
    # An odd number of detectors that reaches one beyond the corners mirrors into itself and needs no check of its ends.
    reach = max(int(np.ceil(np.sqrt(2) * radius)) + 1, detectors // 2)
    projections = np.zeros((num_angles, 2 * reach + 1), dtype=sinogram.dtype)
    projections[:, reach - detectors // 2 :][:, :detectors] = sinogram.T
    length = fft.next_fast_len(2 * projections.shape[1], real=True)
    spectrum = np.asarray(fft.rfft(projections, length, axis=1)) * _ramp(length).astype(sinogram.dtype)
    filtered = np.asarray(fft.irfft(spectrum, length, axis=1))[:, : projections.shape[1]]
    summed = _back_projected(filtered, radius) * sinogram.dtype.type(np.pi / num_angles)
    return summed[radius - height // 2 :, radius - width // 2 :][:height, :width]


def _degrees(num_angles: int) -> Float64[np.ndarray, " angles"]:
    return np.arange(num_angles) * (180 / num_angles)


def _diagonal(side: int) -> int:
    """Detectors that ``skimage.transform.radon`` puts around a square."""
    return int(np.ceil(np.sqrt(2) * side))


def _projected(image: Plane, degrees: Float64[np.ndarray, " angles"]) -> Sinogram:
    from skimage.transform import radon

    # Without circle=False everything outside the inscribed circle would be lost.
    return radon(image, degrees, circle=False, preserve_range=True)


def _block_means(image: Plane, factor: int) -> Float[np.ndarray, "side side"]:
    """Means of blocks of ``factor``² pixels, on a square; what the image lacks of it is 0."""
    height, width = image.shape
    side = -(-max(height, width) // factor)
    square = np.zeros((side * factor, side * factor), dtype=image.dtype)
    square[:height, :width] = image
    return square.reshape(side, factor, side, factor).mean(axis=(1, 3))


@lru_cache(maxsize=8)
def _ramp(length: int) -> Float64[np.ndarray, " frequencies"]:
    """Transform of the ramp sampled in space (Kak and Slaney, chapter 3, equation 61); |ω| itself would lose the mean."""
    lags = np.minimum(np.arange(length), length - np.arange(length))
    kernel = np.zeros(length)
    kernel[0] = 0.25
    kernel[lags % 2 == 1] = -1 / (np.pi * lags[lags % 2 == 1]) ** 2
    response = np.real(np.asarray(fft.rfft(kernel))).copy()
    response.setflags(write=False)
    return response


def _back_projected(projections: Float[np.ndarray, "angles detectors"], radius: int) -> Plane:
    """Sum over the angles of the value at x·cos θ − y·sin θ, for x and y from −radius to radius.

    A turn by 90° and a mirror map that square on itself, so that four angles and both signs of (x, y) have the same positions
    on the detector: these are found once for eight values. The interpolation is a product with a sparse matrix.
    """
    num_angles, detectors = projections.shape
    side = 2 * radius + 1
    first_half = np.arange((side * side + 1) // 2)
    y, x = ((part - radius).astype(projections.dtype) for part in np.divmod(first_half, side))
    # Two neighbouring detectors in each row of the matrix, and their weights.
    rows = np.arange(0, 2 * y.size + 1, 2, dtype=np.int32)
    neighbours = np.empty((y.size, 2), dtype=np.int32)
    weights = np.empty((y.size, 2), dtype=projections.dtype)
    total = np.zeros((y.size, 2 * SYMMETRIES), dtype=projections.dtype)
    for k in range(num_angles // SYMMETRIES + 1):
        angle = np.pi * k / num_angles
        position = x * y.dtype.type(np.cos(angle)) - y * y.dtype.type(np.sin(angle)) + y.dtype.type(detectors // 2)
        neighbours[:, 0] = position
        np.add(neighbours[:, 0], 1, out=neighbours[:, 1])
        np.subtract(position, neighbours[:, 0], out=weights[:, 1])
        np.subtract(1, weights[:, 1], out=weights[:, 0])
        matrix = csr_array((weights.ravel(), neighbours.ravel(), rows), shape=(y.size, detectors))
        total += matrix @ _same_geometry(projections, k)
    return _unfolded(total, side)


def _same_geometry(projections: Float[np.ndarray, "angles detectors"], k: int) -> Float[np.ndarray, "detectors eight"]:
    """Projections at θ, 90° + θ, 90° − θ and 180° − θ for θ = 180°·k/n, and the same four for the ray at −s."""
    n = len(projections)
    four = projections[[k, n // 2 + k, n // 2 - k, (n - k) % n]]
    if k in (0, n // SYMMETRIES):
        four[2:] = 0  # the first two again
    return np.ascontiguousarray(np.concatenate([four, four[:, ::-1]]).T)


def _unfolded(total: Float[np.ndarray, "half eight"], side: int) -> Plane:
    """Each of the four sums on the whole square, turned or mirrored to where it belongs, and added."""
    ahead, behind = total[:, :SYMMETRIES], total[:, SYMMETRIES:]
    squares = np.concatenate([ahead, behind[:-1][::-1]]).reshape(side, side, SYMMETRIES)
    plain, turned, swapped, mirrored = np.moveaxis(squares, 2, 0)
    return plain + turned.T[::-1] + swapped.T[::-1, ::-1] + mirrored[:, ::-1]
