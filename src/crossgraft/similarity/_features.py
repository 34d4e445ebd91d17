"""Features as they are given, as checked arrays."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import DataError, NotApplicable

Features = np.ndarray | Tensor
"""As they are given; ``as_rows`` says what is wrong with them."""
Rows = Float[np.ndarray, "num_samples num_features"]
RowsX = Float[np.ndarray, "num_samples num_features_x"]
RowsY = Float[np.ndarray, "num_samples num_features_y"]

_FEWEST, _FEWEST_DEBIASED = 2, 4


def as_rows(x: Features, y: Features) -> tuple[RowsX, RowsY]:
    """Both on the CPU, as float32 or float64: what is shorter becomes float32, whole numbers float64.

    Raises:
        DataError: Not one row per image, or not the same number of rows.
    """
    rows_x, rows_y = _array(x), _array(y)
    if rows_x.ndim != 2 or rows_y.ndim != 2 or len(rows_x) != len(rows_y) or 0 in (rows_x.shape[1], rows_y.shape[1]):
        raise DataError(
            "CKA compares features of the same images, one row per image (n, d); found the shapes "
            f"{rows_x.shape} and {rows_y.shape}. Pool or flatten maps first."
        )
    return rows_x, rows_y


def _array(features: Features) -> Float[np.ndarray, "..."]:
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


def not_finite(side: str) -> DataError:
    """What is said of NaN and infinite values in ``x`` or ``y``."""
    return DataError(
        f"CKA needs finite features; some of {side} are NaN or infinite. Look at the network they come from."
    )


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
