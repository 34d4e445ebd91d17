"""Mean of the recalls of all classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics._columns import Classes, Columns, Marks, as_columns, counted_columns
from crossgraft.metrics._intervals import MetricValue, Part, Units, mean_of_parts, share_part
from crossgraft.tasks import task_of
from crossgraft.types import Groups


def balanced_accuracy(
    decisions: Classes | Marks,
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    class_names: Sequence[str] | None = None,
) -> MetricValue:
    """Mean over classes of the share of their images that are right (macro recall).

    With 0/1 for every label: the mean over labels of (sensitivity + specificity) / 2. Classes without an image are left
    out and named. Every recall has the interval of ``accuracy``; that of the mean combines them with the correlation that
    patients with images of several classes bring.

    Args:
        decisions: (n,) class of each image, or (n, L) with 0/1 for every label.
        targets: Targets of the same shape.
        groups: Patient of each image; None takes the images as independent.
        class_names: Names of the classes or labels, for messages; they also say how many classes there are.

    Raises:
        DataError: Shapes that do not match, or no image.
        NotApplicable: All images are of one class, or no label has images on both sides.

    >>> balanced_accuracy(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])).value.__round__(4)
    0.8333
    """
    columns, chosen = checked_decisions(decisions, targets, class_names, metric="Balanced accuracy")
    units = Units(groups, len(targets))
    is_partition = task_of(decisions).partitions
    if is_partition and len(columns.counted) < 2:
        only = columns.names[columns.counted[0]]
        raise NotApplicable(
            f"Balanced accuracy needs images of at least two classes; all {len(targets)} are of {only}."
        )
    return mean_of_parts(_recalls(columns, chosen, units, both=not is_partition), units, columns.left_out)


def checked_decisions(
    decisions: Classes | Marks, targets: Classes | Marks, class_names: Sequence[str] | None, *, metric: str
) -> tuple[Columns, np.ndarray]:
    """Decisions and targets as columns, one per class or label.

    Raises:
        DataError: Shapes that do not match, no image, or class numbers outside 0 … C−1.
        NotApplicable: No class has images (no label has images with and without it).
    """
    if decisions.shape != targets.shape or len(targets) == 0:
        raise DataError(
            f"The decisions have shape {decisions.shape} and the targets {targets.shape}; give the same, not empty."
        )
    if not task_of(decisions).partitions:
        columns = counted_columns(targets.astype(bool), class_names, metric=metric, needs_both=True)
        return columns, decisions.astype(bool)
    largest = int(max(decisions.max(), targets.max()))
    num_classes = largest + 1 if class_names is None else len(class_names)
    if largest >= num_classes or min(decisions.min(), targets.min()) < 0:
        raise DataError(f"Classes must be numbers from 0 to {num_classes - 1}; some are not.")
    truth = as_columns(targets, num_classes)
    return counted_columns(truth, class_names, metric=metric, needs_both=False), as_columns(decisions, num_classes)


def _recalls(columns: Columns, chosen: np.ndarray, units: Units, *, both: bool) -> Iterator[Part]:
    for column in columns.counted:
        truth, decided = columns.truth[:, column], chosen[:, column]
        yield share_part(decided, truth, units, columns.names[column])
        if both:
            yield share_part(~decided, ~truth, units, columns.names[column])
