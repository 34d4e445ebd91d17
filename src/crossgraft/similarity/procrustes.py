"""Procrustes distance of two sets of features: what is left after the best rotation."""

from __future__ import annotations

import numpy as np

from crossgraft.errors import UsageError
from crossgraft.similarity._features import Features, Matrix, Similarity, centred_rows

_KINDS = ("shape", "size and shape", "angular")


def procrustes(x: Features, y: Features, *, kind: str = "shape") -> Similarity:
    """Distance √(2 − 2 ‖XᵀY‖_*) of centred features of unit Frobenius norm: 0 where one is a rotation of the other.

    ‖·‖_* is the sum of singular values. Widths may differ: the narrower side is filled with zeros, which changes nothing here.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        kind: ``shape``: the above, in [0, √2]. ``angular``: arccos ‖XᵀY‖_*, in [0, π/2]. ``size and shape``: without the norms
            set to 1, √(‖X‖² + ‖Y‖² − 2 ‖XᵀY‖_*), in units of the features.

    Returns:
        The distance, with ``parts`` alignment = ‖XᵀY‖_* of unit norms, in [0, 1]. anatome reports 1 − alignment, which is d² / 2.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than two images, or all images have the same features; the message says on which side.
        UsageError: There is no such kind.

    Cost: n d_x d_y operations and the singular values of d_x × d_y, or of n × n where there are fewer images than features.

    Reference:
        Schönemann, Psychometrika 31 (1966) 1; for networks Ding, Denain and Steinhardt, Grounding Representation Similarity
        with Statistical Testing, NeurIPS 2021; the angular form Williams et al., NeurIPS 2021.
    """
    if kind not in _KINDS:
        raise UsageError(f"The kind of a Procrustes distance is one of {', '.join(_KINDS)}; got {kind!r}.")
    (rows_x, exponent_x), (rows_y, exponent_y) = centred_rows(x, y, "Procrustes distance")
    norms = float(np.linalg.norm(rows_x)), float(np.linalg.norm(rows_y))
    alignment = min(_nuclear(rows_x, rows_y) / norms[0] / norms[1], 1.0)
    if kind == "shape":
        value = np.sqrt(2 - 2 * alignment)
    elif kind == "angular":
        value = np.arccos(alignment)
    else:
        norm_x, norm_y = np.ldexp(norms[0], exponent_x), np.ldexp(norms[1], exponent_y)
        value = np.sqrt(max((norm_x - norm_y) ** 2 + 2 * norm_x * norm_y * (1 - alignment), 0.0))
    return Similarity(float(value), estimator=f"procrustes, {kind}", n=len(rows_x), parts={"alignment": alignment})


def _nuclear(x: Matrix, y: Matrix) -> float:
    """‖XᵀY‖_*; of wide sides from their triangular factors, Xᵀ = Q R, which have the same singular values."""
    is_wide = len(x) < min(x.shape[1], y.shape[1])
    between = np.linalg.qr(x.T).R @ np.linalg.qr(y.T).R.T if is_wide else x.T @ y
    return float(np.linalg.svd(between, compute_uv=False).sum())
