"""F1: harmonic mean of precision and recall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from crossgraft.metrics._intervals import CONFIDENCE, MetricValue, Part, Units, mean_of_parts, share_part
from crossgraft.metrics.balanced_accuracy import checked_decisions
from crossgraft.metrics.rows import Classes, Marks
from crossgraft.types import Groups


def f1(
    decisions: Classes | Marks,
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    class_names: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
) -> MetricValue:
    """Mean over classes (or labels) of F1 = 2 TP / (2 TP + FP + FN).

    Classes without an image are left out and named, even where some image was given to them. F1 of one positive class is
    that of one label: pass columns of shape (n, 1). F1 = 2 J / (1 + J) with J = TP / (TP + FP + FN), a share of the images
    that are of the class or called so: the interval is that of this share, turned into F1.

    Args:
        decisions: (n,) class of each image, or (n, L) with 0/1 for every label.
        targets: Targets of the same shape.
        groups: Patient of each image; None takes the images as independent.
        class_names: Names of the classes or labels, for messages; they also say how many classes there are.
        confidence: Confidence of the interval.

    Raises:
        DataError: Shapes that do not match, or no image.
        NotApplicable: No label has images with and without it.
        UsageError: The confidence is not between 0 and 1.

    Reference:
        Hand, Christen and Kirielle, Machine Learning 110 (2021) 451: J is their F*.

    >>> round(f1(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])).value, 4)
    0.7333
    """
    columns, chosen = checked_decisions(decisions, targets, class_names, metric="F1")
    units = Units(groups, len(targets), confidence)
    parts = (_f1_part(chosen[:, column], columns.truth[:, column], units, columns.names[column]) for column in columns.counted)
    return mean_of_parts(parts, units, columns.left_out)


def _f1_part(decided: Bool[np.ndarray, " n"], truth: Bool[np.ndarray, " n"], units: Units, name: str) -> Part:
    part = share_part(decided & truth, decided | truth, units, name)
    value, low, high = (2 * share / (1 + share) for share in (part.value, part.low, part.high))
    return part._replace(value=value, low=low, high=high, influence=part.influence * 2 / (1 + part.value) ** 2)
