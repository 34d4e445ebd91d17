"""Features as they are given, as checked arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from crossgraft.errors import DataError, NotApplicable

Features = np.ndarray | Tensor
"""As they are given; ``as_rows`` says what is wrong with them."""
Rows = Float[np.ndarray, "num_samples num_features"]
RowsX = Float[np.ndarray, "num_samples num_features_x"]
RowsY = Float[np.ndarray, "num_samples num_features_y"]

_FEWEST, _FEWEST_DEBIASED = 2, 4
_USUAL = 100
"""Features below two to this power, and above its inverse, are not scaled."""
_NOTHING = 1e-15
"""A mean that is at most this times the largest feature is 0."""


class Centred(NamedTuple):
    """Features with the mean of each column taken away, divided by two to the power of ``exponent``."""

    rows: Float64[np.ndarray, "num_samples _"]
    exponent: int


def as_rows(x: Features, y: Features, measure: str = "CKA") -> tuple[RowsX, RowsY]:
    """Both on the CPU, as float32 or float64: what is shorter becomes float32, whole numbers float64.

    Args:
        x: Features.
        y: Features of the same images.
        measure: Name of the measure in messages.

    Raises:
        DataError: Not one row per image, or not the same number of rows.
    """
    rows_x, rows_y = as_array(x), as_array(y)
    if rows_x.ndim != 2 or rows_y.ndim != 2 or len(rows_x) != len(rows_y) or 0 in (rows_x.shape[1], rows_y.shape[1]):
        raise DataError(
            f"{measure} compares features of the same images, one row per image (n, d); found the shapes "
            f"{rows_x.shape} and {rows_y.shape}. Pool or flatten maps first."
        )
    return rows_x, rows_y


def as_array(features: Features) -> Float[np.ndarray, "..."]:
    """On the CPU, as float32 or float64: what is shorter becomes float32, whole numbers float64."""
    if isinstance(features, Tensor):
        found = features.detach().cpu()
        features = (found.float() if found.is_floating_point() and found.element_size() < 4 else found).numpy()
    rows = np.asarray(features)
    if rows.dtype == np.float32 or rows.dtype == np.float64:
        return rows
    return rows.astype(np.float32 if rows.dtype == np.float16 else np.float64)


def refuse_few(num_images: int, *, debiased: bool) -> None:
    """Two images have a similarity, four an unbiased estimate of it.

    Raises:
        NotApplicable: There are fewer.
    """
    fewest = _FEWEST_DEBIASED if debiased else _FEWEST
    if num_images < fewest:
        kind = "Debiased CKA" if debiased else "CKA"
        raise NotApplicable(f"{kind} needs at least {fewest} images, found {num_images}.")


def not_finite(side: str, measure: str = "CKA") -> DataError:
    """What is said of NaN and infinite values in ``x`` or ``y``."""
    return DataError(
        f"{measure} needs finite features; some of {side} are NaN or infinite. Look at the network they come from."
    )


def centred_rows(x: Features, y: Features, measure: str, *, fewest: int = 2) -> tuple[Centred, Centred]:
    """Both as float64 with the mean of each column taken away; a constant column vanishes exactly.

    Raises:
        DataError: Not one row per image, not the same number of rows, or a number is not finite.
        NotApplicable: Fewer than ``fewest`` images, or all images have the same features; the message says on which side.

    Cost: two copies of the features.
    """
    rows = as_rows(x, y, measure)
    if len(rows[0]) < fewest:
        raise NotApplicable(f"{measure} needs at least {fewest} images, found {len(rows[0])}.")
    return _centred(rows[0], "x", measure), _centred(rows[1], "y", measure)


def _centred(rows: Rows, side: str, measure: str) -> Centred:
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise not_finite(side, measure)
    if (low == high).all():
        raise same_everywhere(side, measure)
    mean = np.where(low == high, low, rows.mean(axis=0, dtype=np.float64))
    centred = np.subtract(rows, mean, dtype=np.float64)
    reach = max(float((high - mean).max()), float((mean - low).max()))
    exponent = int(np.frexp(reach)[1])
    exponent = exponent if abs(exponent) > _USUAL else 0
    if exponent:
        np.ldexp(centred, -exponent, out=centred)  # so that squares neither overflow nor vanish
    left = centred.mean(axis=0)  # by rounding of a large mean
    if np.abs(left).max() > _NOTHING * np.ldexp(reach, -exponent):
        centred -= left
    return Centred(centred, exponent)


def same_everywhere(side: str, measure: str) -> NotApplicable:
    """What is said where nothing varies in ``x`` or ``y``."""
    return NotApplicable(f"All images have the same features in {side}, so {measure} has nothing to compare.")


def ratio(hsic: float, of_x: float, of_y: float) -> float:
    """HSIC(K, L) / √(HSIC(K, K) · HSIC(L, L)), at most 1 also after rounding.

    Raises:
        NotApplicable: A side does not vary, or too little for an unbiased estimate; the message says which.
    """
    for side, own in (("x", of_x), ("y", of_y)):
        if not own > 0:
            raise NotApplicable(
                f"All images have the same features in {side} (or the estimate of their spread is not positive), so there is "
                "nothing to align."
            )
    return min(hsic / float(np.sqrt(of_x) * np.sqrt(of_y)), 1.0)
