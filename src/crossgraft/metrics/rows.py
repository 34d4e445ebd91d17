"""What a table of metrics is made of: facts about each metric, and one row a number."""

from __future__ import annotations

from typing import NamedTuple


class MetricFacts(NamedTuple):
    """What a reader needs beside the number.

    Attributes:
        title: Title in print.
        higher_is_better: Direction.
        explanation: One sentence.
    """

    title: str
    higher_is_better: bool
    explanation: str


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
        "AUC",
        True,
        "How often an image of the class is ranked above one that is not; 0.5 is chance, no threshold is needed.",
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
        "Calibration error",
        False,
        "Distance of stated probability and share right, in 15 bins; too high where images are few.",
    ),
    "brier_score": MetricFacts("Brier score", False, "Squared distance of probabilities from what was true."),
    "negative_log_likelihood": MetricFacts(
        "Negative log-likelihood", False, "Mean of −ln of the probability of what was true, in nats."
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
            return MetricFacts(
                f"{facts.title}, largest gap", False, f"Difference of two subgroups. {facts.explanation}"
            )
        return METRICS[self.metric]

    @property
    def subgroup(self) -> str | None:
        """``column=value``, or None for all images."""
        return None if self.attribute is None else f"{self.attribute}={self.attribute_value}"
