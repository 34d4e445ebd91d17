"""What a table of metrics is made of: facts about each metric, and one row a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from crossgraft.errors import DataError, NotApplicable
from crossgraft.tasks import task_of

BinaryMatrix = Bool[np.ndarray, "num_samples num_classes"]
Scores = Float[np.ndarray, "num_samples num_classes"] | Float[np.ndarray, " num_samples"]
Classes = Int[np.ndarray, " num_samples"] | Bool[np.ndarray, " num_samples"]
Marks = Int[np.ndarray, "num_samples num_classes"] | Bool[np.ndarray, "num_samples num_classes"]


@dataclass(frozen=True)
class Columns:
    """Which classes or labels count on these images, and which do not.

    Attributes:
        truth: One column per class: whether the image is of this class.
        counted: Columns that a mean is over.
        names: Names of all columns.
    """

    truth: BinaryMatrix
    counted: list[int]
    names: list[str]

    @property
    def left_out(self) -> list[str]:
        """Names of the columns that do not count."""
        return [name for column, name in enumerate(self.names) if column not in set(self.counted)]


def as_columns(values: Classes | Marks, num_classes: int) -> BinaryMatrix:
    """One class per image becomes one column per class; 0/1 for every label stays as it is."""
    return task_of(values).marks(values, num_classes)


def counted_columns(truth: BinaryMatrix, class_names: Sequence[str] | None, *, metric: str, needs_both: bool) -> Columns:
    """The columns with images that have the class and, where the metric needs them, images that have not.

    Raises:
        DataError: The number of names is not that of the columns.
        NotApplicable: No column counts.
    """
    num_images, num_columns = truth.shape
    names = [str(column) for column in range(num_columns)] if class_names is None else [str(name) for name in class_names]
    if len(names) != num_columns:
        raise DataError(f"There are {len(names)} class names for {num_columns} classes; they must match.")
    positives = truth.sum(axis=0)
    counts = (positives > 0) & ((positives < num_images) | (not needs_both))
    if not counts.any():
        everything = [name for name, number in zip(names, positives, strict=True) if number]
        what = f"{all_are(num_images)} of {' and '.join(everything)}" if everything else f"none of {num_images} is"
        other = "images with and without a class" if needs_both else "images of a class"
        raise NotApplicable(f"{metric} needs {other}; {what}.")
    return Columns(truth, np.flatnonzero(counts).tolist(), names)


def all_are(num_images: int) -> str:
    """The beginning of a clause about every image of a metric.

    >>> all_are(1), all_are(4)
    ('the only image is', 'all 4 are')
    """
    return "the only image is" if num_images == 1 else f"all {num_images} are"


class MetricFacts(NamedTuple):
    """What a reader needs beside the number.

    Attributes:
        title: Title in print.
        higher_is_better: Direction.
        explanation: One sentence.
        limits: Smallest and largest value that there can be.
    """

    title: str
    higher_is_better: bool
    explanation: str
    limits: tuple[float, float] = (0.0, 1.0)


METRICS: dict[str, MetricFacts] = {
    "accuracy": MetricFacts(
        "Accuracy", True, "Share of images that are decided rightly; of labels, the mean share of labels of an image."
    ),
    "balanced_accuracy": MetricFacts(
        "Balanced accuracy",
        True,
        "Mean over classes of the share of their images that are right; frequent classes count no more.",
    ),
    "auc": MetricFacts(
        "AUC", True, "How often an image of the class is ranked above one that is not; 0.5 is chance, no threshold is needed."
    ),
    "average_precision": MetricFacts(
        "Average precision",
        True,
        "Precision averaged over the images of the class from the surest down; chance is their share. "
        "Its mean over labels is mAP.",
    ),
    "f1": MetricFacts("F1", True, "Harmonic mean of precision and sensitivity of the decisions."),
    "sensitivity": MetricFacts("Sensitivity", True, "Share of the images of the class that are found."),
    "specificity": MetricFacts("Specificity", True, "Share of the other images that are left alone."),
    "calibration_error": MetricFacts(
        "Calibration error", False, "Distance of stated probability and share right, in 15 bins; too high where images are few."
    ),
    "brier_score": MetricFacts("Brier score", False, "Squared distance of probabilities from what was true.", (0.0, math.inf)),
    "negative_log_likelihood": MetricFacts(
        "Negative log-likelihood", False, "Mean of −ln of the probability of what was true, in nats.", (0.0, math.inf)
    ),
}
GAP = "_gap"
"""Ends the name of a metric where the value is the difference of two subgroups."""


class MetricRow(NamedTuple):
    """One metric of all images, one class or one subgroup.

    Attributes:
        metric: A name of ``METRICS``; with ``_gap`` for the largest difference between subgroups.
        value: Value; None where it has no meaning, with the ``reason``.
        low: Lower end of the 95 % interval, or None.
        high: Upper end of it, or None.
        num_images: Images counted.
        num_groups: Patients they belong to; None when images were taken as independent.
        class_name: Class or label it is about; None: all of them.
        attribute: Column that makes the subgroup; None: all images.
        attribute_value: Value in the column; of a gap, the higher and the lower subgroup as ``a − b``.
        reason: Reason why there is no value.
        note: Note about the value: why it has no interval, or which classes a mean leaves out.
        left_out: Classes or labels that the mean leaves out.
    """

    metric: str
    value: float | None
    low: float | None
    high: float | None
    num_images: int
    num_groups: int | None
    class_name: str | None = None
    attribute: str | None = None
    attribute_value: str | None = None
    reason: str | None = None
    note: str | None = None
    left_out: tuple[str, ...] = ()

    @property
    def facts(self) -> MetricFacts:
        """Title, direction and explanation of the metric."""
        if self.metric.endswith(GAP):
            facts = METRICS[self.metric.removesuffix(GAP)]
            return MetricFacts(f"{facts.title}, largest gap", False, f"Difference of two subgroups. {facts.explanation}")
        return METRICS[self.metric]

    @property
    def subgroup(self) -> str | None:
        """``column=value``, or None for all images."""
        return None if self.attribute is None else f"{self.attribute}={self.attribute_value}"
