"""Projection-weighted canonical correlation of two sets of features of the same images."""

from __future__ import annotations

from crossgraft.similarity._features import Features, Similarity, canonical, centred_rows
from crossgraft.similarity.cca import warn_of_few


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
