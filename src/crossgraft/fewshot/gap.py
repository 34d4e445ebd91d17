"""The gap between images and their prototypes: how far apart the two clouds of unit vectors lie."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import DataError, UsageError
from crossgraft.types import Features

Weighting = Literal["instance", "class"]


class Gap(NamedTuple):
    """‖Δ‖ by both weightings, between 0 and 2.

    Attributes:
        by_instance: Each image counts its prototype once, as in the figures of CoPA.
        by_class: Each prototype counts once, as in the formula of its slides.
    """

    by_instance: float
    by_class: float


class GapShift(NamedTuple):
    """The gap of the features as they come, and of what the head makes of them."""

    before: Gap
    after: Gap


def gap(instances: Features, prototypes: Features, labels: np.ndarray, *, weighting: Weighting = "instance") -> float:
    """‖Δ‖₂, Δ the mean unit vector of the images minus that of the prototypes.

    Args:
        instances: (n, d) what a head makes of images.
        prototypes: (C, d) what it makes of the prototypes.
        labels: (n,) the row of ``prototypes`` that belongs to each image.
        weighting: ``instance``: a prototype counts as often as it has images, as the code behind the figures of CoPA does;
            ``class``: once, as its formula says. Both are the same where all classes have equally many images.

    Raises:
        DataError: Shapes do not belong together, a value is not finite, or a label is no row of ``prototypes``.
        UsageError: The weighting is not known.

    Source: Tian et al., Mind the Gap Between Prototypes and Images in Cross-domain Finetuning, NeurIPS 2024.

    Example:
        >>> images, centre = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])
        >>> round(gap(images, centre, np.array([0, 0])), 4)
        0.2929
    """
    if weighting not in ("instance", "class"):
        raise UsageError(f"weighting must be instance or class, got {weighting!r}.")
    images, centres = _cloud(instances, "instances"), _cloud(prototypes, "prototypes")
    if images.shape[1] != centres.shape[1]:
        raise DataError(
            f"instances have the width {images.shape[1]}, and prototypes {centres.shape[1]}. Give both of one head."
        )
    both = gap_of(images, centres, _rows_of_prototypes(labels, num_images=len(images), num_classes=len(centres)))
    return both.by_instance if weighting == "instance" else both.by_class


def _cloud(values: Any, what: str) -> Float[Tensor, "rows width"]:
    """From any array or table: half precision is too coarse for means, and torch takes no reversed views."""
    try:
        found = np.require(values, np.float64, ["C", "W"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers of shape (rows, width): {error}") from error
    if found.ndim != 2 or not found.size:
        raise DataError(f"{what} must have the shape (rows, width) and at least one row, found {found.shape}.")
    bad = np.flatnonzero(~np.isfinite(found).all(axis=1))
    if len(bad):
        raise DataError(f"Row {bad[0]} of {what} holds NaN or infinite values, the first of {len(bad)}.")
    return torch.from_numpy(found)


def _rows_of_prototypes(labels: Any, *, num_images: int, num_classes: int) -> Tensor:
    found = np.asarray(labels)
    if found.shape != (num_images,) or found.dtype.kind not in "iu":
        raise DataError(
            f"labels must be {num_images} whole numbers, the row of prototypes of each image; found {found.dtype} of shape "
            f"{found.shape}."
        )
    wrong = np.flatnonzero((found < 0) | (found >= num_classes))
    if len(wrong):
        raise DataError(
            f"Label {found[wrong[0]]} of row {wrong[0]} is no row of prototypes; there are 0 to {num_classes - 1}."
        )
    return torch.from_numpy(found.astype(np.int64))


def gap_of(
    instances: Float[Tensor, "rows width"], prototypes: Float[Tensor, "num_classes width"], classes: Tensor
) -> Gap:
    """By both weightings."""
    images, centres = torch.nn.functional.normalize(instances), torch.nn.functional.normalize(prototypes)
    mean = images.mean(dim=0)
    return Gap(
        float(torch.linalg.vector_norm(mean - centres[classes].mean(dim=0))),
        float(torch.linalg.vector_norm(mean - centres.mean(dim=0))),
    )
