"""Shares of positive and of negative images that are decided rightly."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics._intervals import CONFIDENCE, MetricValue, share_of_images
from crossgraft.types import Groups

Binary = Int[np.ndarray, " num_samples"] | Bool[np.ndarray, " num_samples"]


def sensitivity(
    decisions: Binary, targets: Binary, groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> MetricValue:
    """Share of the positive images that are called positive (recall), with the interval of ``accuracy``.

    Args:
        decisions: 1 where an image is called positive.
        targets: 1 where it is.
        groups: Patient of each image; None takes the images as independent.
        confidence: Confidence of the interval.

    Returns:
        ``num_images`` and ``num_groups`` count the positive images only.

    Raises:
        DataError: The lengths differ.
        NotApplicable: No image is positive.
    """
    return _share_right(decisions, targets, groups, positive=True, confidence=confidence)


def specificity(
    decisions: Binary, targets: Binary, groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> MetricValue:
    """Share of the negative images that are called negative; arguments and errors as for ``sensitivity``."""
    return _share_right(decisions, targets, groups, positive=False, confidence=confidence)


def _share_right(decisions: Binary, targets: Binary, groups: Groups | None, *, positive: bool, confidence: float) -> MetricValue:
    if len(decisions) != len(targets):
        raise DataError(f"There are {len(decisions)} decisions and {len(targets)} targets; they must match.")
    rows = targets.astype(bool) == positive
    if not rows.any():
        name, kind = ("Sensitivity", "positive") if positive else ("Specificity", "negative")
        raise NotApplicable(f"{name} needs {kind} images; none of {len(targets)} is.")
    correct = decisions[rows].astype(bool) == positive
    return share_of_images(correct, None if groups is None else groups[rows], confidence=confidence)
