"""Mean canonical correlation of the leading principal components of two sets of features."""

from __future__ import annotations

import numpy as np

from crossgraft.errors import UsageError
from crossgraft.similarity._features import Features, Matrix, Similarity, canonical, centred_rows, svd
from crossgraft.similarity.cca import warn_of_few


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
