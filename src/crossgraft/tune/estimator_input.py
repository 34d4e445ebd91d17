"""What scikit-learn hands to an estimator, as images: rows of numbers get their shape back, and values come into [0, 1]."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, cast

import numpy as np
from PIL.Image import Image as Picture

from crossgraft.errors import DataError, UsageError

ValueRange = tuple[float, float] | Literal["fit"] | None


def holds_images(X: Any) -> bool:
    """Whether ``X`` is images; otherwise it is what scikit-learn calls samples and features, or nothing of use."""
    if isinstance(X, np.ndarray):
        return X.ndim > 2
    if hasattr(X, "shape") or not isinstance(X, Sequence) or not len(X):  # a DataFrame, a sparse matrix, text, a number
        return False
    return isinstance(X[0], Picture) or np.ndim(X[0]) > 1


def shape_of_rows(num_features: int, image_shape: Sequence[int] | None) -> tuple[int, ...]:
    """Shape of the image that a row of so many numbers holds, (height, width) or (height, width, channels).

    Args:
        num_features: Numbers of a row.
        image_shape: As ``FineTunedClassifier`` takes it; None: a square, grey or of three channels.

    Raises:
        DataError: No such image has so many numbers.
        UsageError: ``image_shape`` is none.
    """
    if image_shape is None:
        return _square(num_features)
    shape = tuple(image_shape)
    open_sides, known = shape.count(-1), math.prod(side for side in shape if side != -1)
    if len(shape) not in (2, 3) or open_sides > 1 or known < 1 or any(side < 1 and side != -1 for side in shape):
        raise UsageError(
            f"image_shape is (height, width) or (height, width, channels), one of them perhaps -1; found {image_shape}."
        )
    if num_features % known or (not open_sides and num_features != known):
        raise DataError(f"Rows of {num_features} feature(s) are no images of the shape {shape}. Change image_shape.")
    return tuple(num_features // known if side == -1 else side for side in shape)


def _square(num_features: int) -> tuple[int, ...]:
    for channels in (1, 3):
        side = math.isqrt(num_features // channels)
        if side * side * channels == num_features:
            return (side, side) if channels == 1 else (side, side, channels)
    raise DataError(
        f"Rows of {num_features} feature(s) are no square images, grey or of three channels. Say their shape with "
        "image_shape=(height, width) or (height, width, channels)."
    )


def fitted_range(images: Any, value_range: object) -> tuple[float, float] | None:
    """Values of black and white; ``fit``: the smallest and largest of these images.

    Raises:
        UsageError: They are not two numbers in order.
    """
    if value_range is None:
        return None
    if isinstance(value_range, str):
        if value_range != "fit":
            raise UsageError(f"value_range is two numbers or the word fit, found {value_range!r}.")
        low = min(float(np.min(image)) for image in images)
        high = max(float(np.max(image)) for image in images)
        return low, high if high > low else low + 1
    try:
        low, high = map(float, cast("Sequence[float]", value_range))
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise UsageError(f"value_range is the values of black and white, the smaller one first; found {value_range!r}.")
    return low, high


def in_unit_range(images: Any, value_range: tuple[float, float] | None) -> Any:
    """``images`` with black at 0 and white at 1, what lies beyond cut off; None: as they are."""
    if value_range is None:
        return images
    low, high = value_range
    if isinstance(images, np.ndarray):
        return np.clip((images.astype(np.float64) - low) / (high - low), 0, 1).astype(np.float32)
    return [in_unit_range(np.asarray(image), value_range) for image in images]
