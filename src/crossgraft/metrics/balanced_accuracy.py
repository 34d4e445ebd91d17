"""Mean of the recalls of all classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics._intervals import CONFIDENCE, MetricValue, Rows, Sum, Units, mean_of_parts, no_interval, share_part
from crossgraft.metrics.rows import Classes, Columns, Marks, all_are, as_columns, counted_columns
from crossgraft.tasks import task_of
from crossgraft.types import Groups


def balanced_accuracy(
    decisions: Classes | Marks,
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    class_names: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
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
        confidence: Confidence of the interval.

    Raises:
        DataError: Shapes that do not match, or no image.
        UsageError: The confidence is not between 0 and 1.
        NotApplicable: All images are of one class, or no label has images on both sides.

    >>> balanced_accuracy(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])).value.__round__(4)
    0.8333
    """
    columns, _ = checked_decisions(decisions, targets, class_names, metric="Balanced accuracy")
    units = Units(groups, len(targets), confidence)
    if task_of(decisions).partitions and len(columns.counted) < 2:
        only = columns.names[columns.counted[0]]
        raise NotApplicable(f"Balanced accuracy needs images of at least two classes; {all_are(len(targets))} of {only}.")
    parts = (share_part(right, rows, units, name) for name, rows, right in _sides(decisions, targets, class_names))
    return mean_of_parts(parts, units, columns.left_out)


def balanced_accuracy_combination(
    terms: Sequence[tuple[float, Classes | Marks]],
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    among: Sequence[Rows] | None = None,
    class_names: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
) -> MetricValue:
    """Σ c balanced accuracy(decisions) over several decisions about the same images, for example of two models.

    Of each class the images in favour and those against are shares with the interval of ``accuracy``; they are squared and added
    with their correlation, as in ``accuracy_difference``.

    Args:
        terms: Pairs of a coefficient c and decisions as ``balanced_accuracy`` takes them.
        targets: Targets of the same shape.
        groups: Patient of each image; None takes the images as independent.
        among: (n,) per term, the images that it is of; None: all of them. Each such set has the mean over its own classes.
        class_names: As of ``balanced_accuracy``.
        confidence: Confidence of the interval.

    Raises:
        DataError: There is no term, a coefficient is not finite, shapes do not match, or there is no image.
        NotApplicable: As ``balanced_accuracy``.
        UsageError: The confidence is not between 0 and 1.
    """
    coefficients = np.array([coefficient for coefficient, _ in terms], dtype=np.float64)
    if not terms or not np.isfinite(coefficients).all():
        raise DataError("A combination of balanced accuracies needs at least one term, and finite coefficients.")
    units, total = Units(groups, len(targets), confidence), Sum(Units(groups, len(targets), confidence))
    masks = (
        [np.ones(len(targets), dtype=bool)] * len(terms) if among is None else [np.asarray(mask, dtype=bool) for mask in among]
    )
    value = 0.0
    of_images: dict[bytes, list[int]] = {}
    for place, ((c, decisions), mask) in enumerate(zip(terms, masks, strict=True)):
        value += c * balanced_accuracy(decisions[mask], targets[mask], class_names=class_names).value
        of_images.setdefault(mask.tobytes(), []).append(place)
    for places in of_images.values():
        mask, here = masks[places[0]], coefficients[places]
        bound = max(float(here[here > 0].sum()), -float(here[here < 0].sum())) or 1.0
        sides = [_sides(terms[place][1][mask], targets[mask], class_names) for place in places]
        for column, (name, rows, _) in enumerate(sides[0]):
            right = np.zeros(len(targets))
            right[mask] = sum(c * of_term[column][2] / bound for c, of_term in zip(here, sides, strict=True))
            counted = np.zeros(len(targets), dtype=bool)
            counted[mask] = rows
            for sign in (1.0, -1.0):
                if (sign * here > 0).any():
                    total.add(share_part(np.maximum(sign * right, 0.0), counted, units, name), sign * bound / len(sides[0]))
    if len(total.unknown) == total.number:
        return no_interval(value, units, "images of every class belong to one group")
    below, above = total.reach
    return MetricValue(value, value - below, value + above, units.num_images, units.num_groups)


def _sides(
    decisions: Classes | Marks, targets: Classes | Marks, class_names: Sequence[str] | None
) -> list[tuple[str, Rows, Rows]]:
    """What a balanced accuracy is the mean over: the name of a class or label, its images, and which are right."""
    columns, chosen = checked_decisions(decisions, targets, class_names, metric="Balanced accuracy")
    sides: list[tuple[str, Rows, Rows]] = []
    for column in columns.counted:
        truth, decided = columns.truth[:, column], chosen[:, column]
        sides.append((columns.names[column], truth, decided))
        if not task_of(decisions).partitions:
            sides.append((columns.names[column], ~truth, ~decided))
    return sides


def checked_decisions(
    decisions: Classes | Marks, targets: Classes | Marks, class_names: Sequence[str] | None, *, metric: str
) -> tuple[Columns, np.ndarray]:
    """Decisions and targets as columns, one per class or label.

    Raises:
        DataError: Shapes that do not match, no image, or class numbers outside 0 … C−1.
        NotApplicable: No class has images (no label has images with and without it).
    """
    if decisions.shape != targets.shape or len(targets) == 0:
        raise DataError(f"The decisions have shape {decisions.shape} and the targets {targets.shape}; give the same, not empty.")
    if not task_of(decisions).partitions:
        columns = counted_columns(targets.astype(bool), class_names, metric=metric, needs_both=True)
        return columns, decisions.astype(bool)
    largest = int(max(decisions.max(), targets.max()))
    num_classes = largest + 1 if class_names is None else len(class_names)
    if largest >= num_classes or min(decisions.min(), targets.min()) < 0:
        raise DataError(f"Classes must be numbers from 0 to {num_classes - 1}; some are not.")
    truth = as_columns(targets, num_classes)
    return counted_columns(truth, class_names, metric=metric, needs_both=False), as_columns(decisions, num_classes)
