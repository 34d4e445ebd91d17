"""Filters of the first convolution, and how much they look like Gabor filters (Figure 3.4 of the thesis)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float64
from scipy import optimize
from torch import nn

from crossgraft.errors import DataError, UsageError
from crossgraft.geometry._inputs import Network, module_of
from crossgraft.geometry.record import FilterRow, drawn_cells
from crossgraft.seeding import generator

LEAST_SIDE_PIXELS = 7
"""A smaller filter has so few numbers that a Gabor function with its seven parameters fits anything."""
NUM_RANDOM_FILTERS = 32
_FREQUENCIES = (0.08, 0.16, 0.25, 0.36)  # cycles per pixel
_NUM_ANGLES = 8
_WIDTHS = (0.16, 0.3)  # of the envelope, in shares of the side
_BEST_STARTS = 2
_SMALLEST_VARIANCE = 1e-24
_MOST_DRAWN, _FEWEST_DRAWN, _MOST_CELLS = 24, 6, 1500

Filter = Float64[np.ndarray, "height width"]


@dataclass(frozen=True)
class FirstLayerFilters:
    """The filters of the first convolution.

    Attributes:
        layer: Its name in the network.
        filters: (filters, input channels, height, width).
        r2: R² of the best Gabor fit of each filter, in [0, 1]; NaN of a filter that is flat; None where not assessable.
        gabor_likeness: Mean of it over the filters that are not flat.
        random_likeness: The same of random filters of this size: what anything reaches.
        num_flat: Filters without any pattern.
        reason: Reason why there are no fits.
    """

    layer: str
    filters: Float64[np.ndarray, "filters channels height width"]
    r2: Float64[np.ndarray, " filters"] | None
    gabor_likeness: float | None
    random_likeness: float | None
    num_flat: int = 0
    reason: str | None = None


def first_layer_filters(network: Network, *, layer: str | None = None, seed: int = 0) -> FirstLayerFilters:
    """Filters of the first convolution with their likeness to Gabor filters.

    The pattern of a filter is the first principal component of its input channels. It is fitted by

        a · exp(−(u² + γ² v²) / 2σ²) · cos(2π f u + φ) + b,  (u, v) = pixels from (x₀, y₀), turned by θ

    with a, φ and b solved for exactly (a cosine and a sine). R² = 1 − residual / variance. ``NUM_RANDOM_FILTERS`` filters of
    Gaussian noise of the same size are fitted in the same way.

    Args:
        network: Any network that has a two-dimensional convolution.
        layer: Name of another layer.
        seed: Random seed of the random filters.

    Raises:
        UsageError: There is no such convolution.
        DataError: A weight is NaN or infinite.

    Cost: about 0.1 s per filter.

    Source: thesis, section 3.4, which compares by eye; the number is this project's.
    """
    name, convolution = _first_convolution(module_of(network), layer)
    filters = convolution.weight.detach().double().cpu().numpy()
    if not np.isfinite(filters).all():
        raise DataError(f"{name} holds NaN or infinite weights. Train again, or restore the file.")
    height, width = filters.shape[2:]
    if min(height, width) < LEAST_SIDE_PIXELS:
        reason = (
            f"the filters of {name} have {height}×{width} pixels; below {LEAST_SIDE_PIXELS}×{LEAST_SIDE_PIXELS} a Gabor "
            "function fits anything"
        )
        num_flat = sum(_is_flat(pattern_of(filter_)) for filter_ in filters)
        return FirstLayerFilters(name, filters, None, None, None, num_flat, reason)
    r2 = np.array([gabor_r2(pattern_of(filter_)) for filter_ in filters])
    known = r2[np.isfinite(r2)]
    return FirstLayerFilters(
        name,
        filters,
        r2,
        float(known.mean()) if known.size else None,
        _of_random_filters(height, width, seed),
        int(len(r2) - known.size),
        None if known.size else f"all filters of {name} are flat",
    )


def filter_row(name: str, found: FirstLayerFilters) -> FilterRow:
    """What is drawn and written of the network called ``name``: its first filters as grey patterns, the likeness of all."""
    height, width = found.filters.shape[2:]
    most = max(_FEWEST_DRAWN, min(_MOST_DRAWN, _MOST_CELLS // (height * width)))
    patterns = [pattern_of(filter_) for filter_ in found.filters[:most]]
    return FilterRow(
        network=name,
        layer=found.layer,
        num_filters=len(found.filters),
        height_pixels=height,
        width_pixels=width,
        patterns=[drawn_cells(pattern / (np.abs(pattern).max() or 1.0)) for pattern in patterns],
        r2=[] if found.r2 is None else [float(value) if math.isfinite(value) else None for value in found.r2[:most]],
        gabor_likeness=found.gabor_likeness,
        random_likeness=found.random_likeness,
        num_flat=found.num_flat,
        reason=found.reason,
    )


def pattern_of(filter_: Float64[np.ndarray, "channels height width"]) -> Filter:
    """What channels have in common: their combination of largest variance, as a grey picture."""
    rows = filter_.reshape(len(filter_), -1)
    centred = rows - rows.mean(axis=1, keepdims=True)
    weights = np.linalg.svd(centred, full_matrices=False)[0][:, 0]
    return (weights @ centred).reshape(filter_.shape[1:])


def gabor_r2(filter_: Filter) -> float:
    """R² of the best Gabor function; NaN of a flat filter.

    Cost: a grid of starts, of which the best are refined by least squares.
    """
    wanted = (filter_ - filter_.mean()).ravel()
    if _is_flat(filter_):
        return math.nan
    scale = float(np.abs(wanted).max())
    wanted = wanted / scale
    starts, bases = _starts(*filter_.shape)
    explained = np.square(bases @ wanted).sum(axis=1)  # orthonormal bases: the linear part solved exactly
    best = 0.0
    low, high = _bounds(*filter_.shape)
    for index in np.argsort(explained)[::-1][:_BEST_STARTS]:
        fitted = optimize.least_squares(
            lambda at: _residual(at, wanted, filter_.shape), starts[index], bounds=(low, high), max_nfev=40
        )
        best = max(best, 1 - 2 * float(fitted.cost) / float(wanted @ wanted))
    return min(max(best, float(explained.max()) / float(wanted @ wanted)), 1.0)


def _is_flat(filter_: Filter) -> bool:
    return float(np.square(filter_ - filter_.mean()).max()) <= _SMALLEST_VARIANCE


def _columns(at: np.ndarray, shape: tuple[int, int]) -> Float64[np.ndarray, "pixels 3"]:
    """Cosine, sine and constant under the envelope, for x₀, y₀, θ, f, σ and γ."""
    x0, y0, angle, frequency, sigma, gamma = at
    ys, xs = np.mgrid[: shape[0], : shape[1]]
    x, y = xs.ravel() - x0, ys.ravel() - y0
    u, v = x * math.cos(angle) + y * math.sin(angle), y * math.cos(angle) - x * math.sin(angle)
    envelope = np.exp(-(u**2 + gamma**2 * v**2) / (2 * sigma**2))
    phase = 2 * math.pi * frequency * u
    return np.stack([envelope * np.cos(phase), envelope * np.sin(phase), np.ones(len(u))], axis=1)


def _residual(at: np.ndarray, wanted: np.ndarray, shape: tuple[int, int]) -> Float64[np.ndarray, " pixels"]:
    """What the best amplitudes at this place leave (variable projection)."""
    basis, _ = np.linalg.qr(_columns(at, shape))
    return wanted - basis @ (basis.T @ wanted)


@cache
def _starts(height: int, width: int) -> tuple[Float64[np.ndarray, "starts 6"], Float64[np.ndarray, "starts 3 pixels"]]:
    side = min(height, width)
    centres = [(height - 1) / 2 + share * height / 4 for share in (-1, 0, 1)]
    others = [(width - 1) / 2 + share * width / 4 for share in (-1, 0, 1)]
    angles = [math.pi * k / _NUM_ANGLES for k in range(_NUM_ANGLES)]
    starts = np.array(
        [
            (x, y, angle, frequency, share * side, 1.0)
            for x in others
            for y in centres
            for angle in angles
            for frequency in _FREQUENCIES
            for share in _WIDTHS
        ]
    )
    return starts, np.stack([np.linalg.qr(_columns(start, (height, width)))[0].T for start in starts])


def _bounds(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres stay inside, envelopes are between a pixel and twice the side, and frequencies below that of Nyquist."""
    side = min(height, width)
    low = np.array([-0.5, -0.5, -math.pi, 0.01, 0.8, 0.3])
    return low, np.array([width - 0.5, height - 0.5, 2 * math.pi, 0.5, 2.0 * side, 3.0])


@cache
def _of_random_filters(height: int, width: int, seed: int) -> float:
    draws = generator(seed, "random filters", height, width)
    return float(np.mean([gabor_r2(draws.standard_normal((height, width))) for _ in range(NUM_RANDOM_FILTERS)]))


def _first_convolution(module: nn.Module, layer: str | None) -> tuple[str, nn.Conv2d]:
    convolutions = {name: child for name, child in module.named_modules() if isinstance(child, nn.Conv2d)}
    if layer is not None and layer not in convolutions:
        raise UsageError(f"{layer} is no two-dimensional convolution of the network. Known: {', '.join(convolutions) or 'none'}.")
    if not convolutions:
        raise UsageError(f"A {type(module).__name__} has no two-dimensional convolution, and so no filters to look at.")
    name = next(iter(convolutions)) if layer is None else layer
    return name, convolutions[name]
