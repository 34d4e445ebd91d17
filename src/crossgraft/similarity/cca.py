"""Canonical correlations, and the means of them: CCA, SVCCA, PWCCA, and that of the thesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.seeding import generator
from crossgraft.similarity._features import Coefficients, Features, Matrix, Similarity, as_array, canonical, centred_rows, svd

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


MEASURE = "CCA"


def cca(x: Features, y: Features, *, mean: str = "all", preset: str | None = None, seed: int = 0) -> Similarity:
    """Mean of the canonical correlations ρ₁ ≥ ρ₂ ≥ … of X and Y: how much of one is a linear map of the other.

    ρ are the singular values of Q_xᵀ Q_y, with Q orthonormal bases of the centred columns; there are min(rank X, rank Y) of them.
    Columns that are constant, or a combination of others, add no coefficient. Any invertible linear map of the features changes
    nothing. Computed in float64.

    Args:
        x: (n, d_x), one row per image (or position); an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        mean: ``all``: the plain mean. ``98 % of the sum``: without the smallest coefficients beyond 98 % of the sum, as
            google/svcca reports as mean; larger.
        preset: ``thesis``: x and y are feature maps (n, channels, h, w), of which about 20 000 positions and min(64, channels)
            channels, the same in both, are drawn five times, and the five values averaged (eq. 3.1 of the thesis). ``released``:
            10 000 positions, as its released code has. The warnings say how many were reached.
        seed: Random seed of a preset.

    Returns:
        In [0, 1], with ``parts`` sum, coefficients, rank_x and rank_y. With n ≤ d_x + d_y it tends to 1 whatever the features
        are; that is warned of.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than four images, or all images have the same features; the message says on which side.
        UsageError: There is no such mean or preset.

    Cost: n (d_x² + d_y² + 2 d_x d_y) operations and a singular value decomposition of d_x × d_y; about three times that where
    columns are nearly dependent.

    Reference:
        Hotelling, Biometrika 28 (1936) 321; as a measure of networks Raghu, Gilmer, Yosinski and Sohl-Dickstein, NeurIPS 2017.
    """
    if mean not in ("all", "98 % of the sum"):
        raise UsageError(f"The mean of CCA is 'all' or '98 % of the sum', got {mean!r}.")
    if preset is not None:
        return thesis_cca(x, y, preset=preset, seed=seed)
    (rows_x, _), (rows_y, _) = centred_rows(x, y, MEASURE, fewest=4)
    shared = canonical(rows_x, rows_y)
    kept = shared.coefficients if mean == "all" else _most(shared.coefficients)
    return Similarity(
        float(kept.mean()),
        estimator="cca" if mean == "all" else f"cca, {mean}",
        n=len(rows_x),
        parts={"sum": shared.coefficients.sum(), "coefficients": len(kept), "rank_x": shared.ranks[0], "rank_y": shared.ranks[1]},
        warnings=warn_of_few(len(rows_x), shared.ranks),
    )


def warn_of_few(num_rows: int, ranks: tuple[int, int], *, instead: str = ", or SVCCA") -> list[str]:
    """That correlations tend to 1 where there are hardly more rows than features, and what to do, or to use ``instead``."""
    if num_rows > sum(ranks):
        return []
    return [
        f"{num_rows} rows for {ranks[0]} + {ranks[1]} independent features: canonical correlations tend to 1 whatever the "
        f"features are. Use more than {sum(ranks)} rows{instead}."
    ]


def _most(coefficients: Coefficients) -> Coefficients:
    """Those up to 98 % of their sum."""
    if not coefficients.any():
        return coefficients
    shares = np.cumsum(coefficients) / coefficients.sum()
    return coefficients[: int(np.argmax(shares >= 0.98)) + 1]


def svcca(x: Features, y: Features, *, variance: float = 0.99) -> Similarity:
    """Mean canonical correlation of the principal components that hold 99 % of the variance of each side.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        variance: Share of Σ σ² that is kept, in (0, 1]. Of the released programs anatome takes this share of Σ σ.

    Returns:
        In [0, 1], with ``parts`` components_x and components_y; warned as ``cca`` where there are hardly more images than
        components.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than four images, or all images have the same features; the message says on which side.
        UsageError: ``variance`` is not in (0, 1].

    Cost: that of ``cca``, and a singular value decomposition of each side.

    Reference:
        Raghu, Gilmer, Yosinski and Sohl-Dickstein, SVCCA: Singular Vector Canonical Correlation Analysis, NeurIPS 2017.
    """
    if not 0 < variance <= 1:
        raise UsageError(f"variance is a share in (0, 1], got {variance!r}.")
    sides = [_leading(side.rows, variance) for side in centred_rows(x, y, "SVCCA", fewest=4)]
    shared = canonical(*sides)
    return Similarity(
        float(shared.coefficients.mean()),
        estimator=f"svcca, {variance:.0%} of the variance",
        n=len(sides[0]),
        parts={"components_x": shared.ranks[0], "components_y": shared.ranks[1]},
        warnings=warn_of_few(len(sides[0]), shared.ranks, instead=""),
    )


def _leading(side: Matrix, variance: float) -> Matrix:
    """Principal components of the rows, in whitened form: the fewest that hold the share of the variance."""
    left, singular_values, _ = svd(side)
    shares = np.cumsum(singular_values**2)
    kept = int(np.argmax(shares >= variance * shares[-1] * (1 - 1e-15))) + 1
    kept = min(kept, int((singular_values > 1e-12 * singular_values[0]).sum()))
    return left[:, :kept]


def pwcca(x: Features, y: Features) -> Similarity:
    """Σ_i α_i ρ_i / Σ_i α_i with α_i = Σ_j |⟨h_i, x_j⟩|: canonical correlations, weighted by how much of X they account for.

    h_i are the canonical variates of the first set and x_j its columns, so the order of the two matters. Released programs give
    other numbers: google/svcca takes weights from directions that are not whitened, anatome from coordinates of them.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device. Its variates give the weights.
        y: (n, d_y), the same images, in the same order.

    Returns:
        In [0, 1], with ``parts`` rank_x and rank_y; warned as ``cca`` where n ≤ d_x + d_y.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than four images, or all images have the same features; the message says on which side.

    Cost: that of ``cca``.

    Reference:
        Morcos, Raghu and Bengio, Insights on Representational Similarity in Neural Networks with Canonical Correlation,
        NeurIPS 2018, eq. 5.
    """
    (rows_x, _), (rows_y, _) = centred_rows(x, y, "PWCCA", fewest=4)
    shared = canonical(rows_x, rows_y, with_weights=True)
    weights = shared.weights
    return Similarity(
        float(weights @ shared.coefficients / weights.sum()),
        estimator="pwcca",
        n=len(rows_x),
        parts={"rank_x": shared.ranks[0], "rank_y": shared.ranks[1]},
        warnings=warn_of_few(len(rows_x), shared.ranks),
    )
