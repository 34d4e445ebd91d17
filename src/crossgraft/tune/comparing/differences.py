"""Differences of two variants on the same test images with the same seeds, and how sure they are.

Two sources of chance count: which test images there are, by the jackknife over blocks of images (groups stay together), and
which seed was drawn, by the spread over seeds. Their variances add up, because a seed says nothing about the test images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy import stats

from crossgraft.data import Dataset
from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics import auc, balanced_accuracy
from crossgraft.records import DifferenceRecord
from crossgraft.statistics import jackknife_blocks, jackknife_interval
from crossgraft.tune.comparing.trainings import Answers

Replicated = Float[np.ndarray, " num_replicates"]
"""A metric on all test images, then without each block of them; nan where it has no meaning."""


@dataclass(frozen=True, eq=False)
class MeasuredImages:
    """The images that all variants are measured on.

    Attributes:
        data: These images alone.
        metric: The primary metric: ``balanced_accuracy`` or ``auc``.
        blocks: Left out one at a time; empty where there are too few images, or groups, for an interval.
        reason: Reason why there are no blocks.
    """

    data: Dataset
    metric: str
    blocks: Sequence[np.ndarray]
    reason: str | None = None

    @classmethod
    def of(cls, data: Dataset, metric: str) -> MeasuredImages:
        """Cut ``data`` into blocks.

        Args:
            data: The test images.
            metric: The primary metric.
        """
        classes = data.task.classes_of_scores(data.targets)
        if classes is None:
            classes = np.zeros(len(data), dtype=np.int64)
        try:
            return cls(data, metric, jackknife_blocks(classes, data.groups))
        except DataError as error:
            return cls(data, metric, [], str(error))

    def measure(self, answers: Answers) -> Replicated:
        """The metric of ``answers``, on all images and without each block."""
        everything = np.arange(len(self.data))
        whole, counted = self._value(answers, everything)
        values = [whole]
        for block in self.blocks:
            value, here = self._value(answers, np.delete(everything, block))
            values.append(value if here == counted else math.nan)  # a class has no image left: another mean
        return np.array(values)

    def _value(self, answers: Answers, rows: np.ndarray) -> tuple[float, tuple[str, ...]]:
        """Value, and the classes that it leaves out."""
        compute = auc if self.metric == "auc" else balanced_accuracy
        try:
            found = compute(answers[rows], self.data.targets[rows], class_names=list(self.data.class_names))
        except NotApplicable:
            return math.nan, ()
        return found.value, found.left_out


def difference(ones: Sequence[Replicated], others: Sequence[Replicated], images: MeasuredImages) -> DifferenceRecord:
    """Mean over seeds of one minus the other, with its 95 % interval.

    SE² = SE²(jackknife of the mean difference) + s²/S over S seeds; with one seed the interval is that of test images alone.
    The quantile is Student's t with Welch and Satterthwaite's degrees of freedom.

    Args:
        ones: Metric of one variant, for each seed.
        others: Metric of the other variant, for the same seeds.
        images: What they were measured on.
    """
    if not ones:
        return DifferenceRecord(value=None, reason="no seed was trained in both")
    by_seed = np.stack(ones) - np.stack(others)
    mean = by_seed.mean(axis=0)
    if not math.isfinite(mean[0]):
        return DifferenceRecord(value=None, reason="the metric has no meaning on these test images")
    value = float(mean[0])
    if images.reason is not None:
        return DifferenceRecord(value=value, reason=images.reason)
    if not np.isfinite(mean).all():
        return DifferenceRecord(
            value=value, reason="a class has so few test images, or groups, that a block holds all of them"
        )
    of_images = jackknife_interval(value, mean[1:]).standard_error ** 2
    freedom = of_images**2 / (len(mean) - 2)
    variance = of_images
    if len(by_seed) > 1:
        of_seeds = float(by_seed[:, 0].var(ddof=1)) / len(by_seed)
        variance += of_seeds
        freedom += of_seeds**2 / (len(by_seed) - 1)
    if variance <= _ROUNDING:
        return DifferenceRecord(value=value, low=value, high=value)
    half_width = float(stats.t.ppf(0.975, variance**2 / freedom)) * math.sqrt(variance)
    return DifferenceRecord(value=value, low=value - half_width, high=value + half_width)


_ROUNDING = 1e-24
"""A variance below it is rounding: equal answers to every image."""
