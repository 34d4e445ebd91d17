"""CCA of feature maps as chapter 3 of the thesis computes it: some images and channels are drawn, several times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.seeding import generator
from crossgraft.similarity._features import Features, Similarity, as_array, canonical, centred_rows

Maps = Float[np.ndarray, "num_images _ _ _"]
Indices = Int[np.ndarray, " _"]
POSITIONS: dict[str, int] = {"thesis": 20_000, "released": 10_000}
"""Positions that are asked for: what the thesis says, and what its released code does."""
CHANNELS = 64
REPEATS = 5


@dataclass(frozen=True, eq=False)
class Draw:
    """One of the repeats.

    Attributes:
        images: Rows of the images, ascending.
        channels: Channels, the same in both networks.
    """

    images: Indices
    channels: Indices


def draws_of(
    num_images: int, shape: tuple[int, int, int], other: tuple[int, int, int], *, preset: str, seed: int, layer: str = ""
) -> list[Draw]:
    """What is drawn of maps of two networks.

    Args:
        num_images: Images there are.
        shape: Channels, height and width of the maps of the first network.
        other: The same of the second.
        preset: ``thesis`` or ``released``.
        seed: Random seed.
        layer: Name of the layer, which has draws of its own.

    Raises:
        NotApplicable: The maps have other heights or widths, so that positions do not correspond.
        UsageError: There is no such preset.
    """
    if preset not in POSITIONS:
        raise UsageError(f"The preset of CCA is 'thesis' or 'released', got {preset!r}.")
    if shape[1:] != other[1:]:
        raise NotApplicable(
            f"The thesis' CCA compares position by position, and the maps are {shape[1]} × {shape[2]} and {other[1]} × "
            f"{other[2]}. Use CCA of features that are averaged over positions."
        )
    wanted = max(1, round(POSITIONS[preset] / (shape[1] * shape[2])))
    num_channels = min(CHANNELS, shape[0], other[0])
    draws: list[Draw] = []
    for repeat in range(REPEATS):
        random = generator(seed, "thesis cca", layer, repeat)
        images = np.sort(random.choice(num_images, min(wanted, num_images), replace=False))
        draws.append(Draw(images, random.choice(min(shape[0], other[0]), num_channels, replace=False)))
    return draws


def thesis_cca(x: Features, y: Features, *, preset: str = "thesis", seed: int = 0) -> Similarity:
    """Mean canonical correlation of drawn channels over drawn positions, averaged over five draws (eq. 3.1).

    P = 20 000 positions are asked for (``released``: 10 000, as the released code has), which are all positions of round(P / hw)
    images drawn without replacement; and 64 channels, the same in both networks. Where there are fewer images or channels, all
    are taken; the warnings say how many positions were reached.

    Raises and arguments: as ``cca`` with a preset.
    """
    x, y = as_array(x), as_array(y)
    if x.ndim != 4 or y.ndim != 4 or len(x) != len(y):
        raise DataError(
            "The thesis' CCA compares feature maps (n, channels, height, width) of the same images; found the shapes "
            f"{x.shape} and {y.shape}."
        )
    draws = draws_of(len(x), x.shape[1:], y.shape[1:], preset=preset, seed=seed)
    pairs = [tuple(positions_of(side, draw) for side in (x, y)) for draw in draws]
    return thesis_mean(pairs, preset=preset, seed=seed)


def positions_of(maps: Maps, draw: Draw) -> Float[np.ndarray, "num_positions _"]:
    """(n, c, h, w) → (n h w, drawn channels) of the drawn images."""
    return channels_last(maps[np.ix_(draw.images, draw.channels)])


def channels_last(maps: Maps) -> Float[np.ndarray, "num_positions _"]:
    """(n, c, h, w) → (n h w, c)."""
    return np.moveaxis(maps, 1, 3).reshape(-1, maps.shape[1])


def thesis_mean(pairs: Sequence[tuple[Float[np.ndarray, "num_positions _"], ...]], *, preset: str, seed: int) -> Similarity:
    """The value from the rows of each draw.

    Raises:
        DataError: A number is not finite.
        NotApplicable: Fewer than four positions, or drawn channels that are constant; the message says on which side.
    """
    values: list[float] = []
    for x, y in pairs:
        (rows_x, _), (rows_y, _) = centred_rows(x, y, "the thesis' CCA", fewest=4)
        values.append(float(canonical(rows_x, rows_y).coefficients.mean()))
    reached, width = pairs[0][0].shape
    origin = (
        f"{reached} of {POSITIONS[preset]} positions and {width} of {CHANNELS} channels in each of {len(pairs)} draws."
        if reached < POSITIONS[preset] * 0.9 or width < CHANNELS
        else ""
    )
    near_one = (
        "Canonical correlations tend to 1 with so few positions, whatever the features are." if reached <= 2 * width else ""
    )
    return Similarity(
        float(np.mean(values)),
        estimator=f"cca, {preset} preset",
        n=reached,
        seed=seed,
        parts={
            "positions": reached,
            "positions_asked_for": POSITIONS[preset],
            "channels": width,
            "spread_of_draws": np.std(values, ddof=1) if len(values) > 1 else 0.0,
        },
        warnings=[warning for warning in (origin, near_one) if warning],
    )
