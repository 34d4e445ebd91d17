"""Mean canonical correlation of two sets of features of the same images."""

from __future__ import annotations

import numpy as np

from crossgraft.errors import UsageError
from crossgraft.similarity._features import Coefficients, Features, Similarity, canonical, centred_rows
from crossgraft.similarity.thesis_cca import thesis_cca

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
