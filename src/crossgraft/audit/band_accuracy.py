"""How much of a model's result coarse shapes carry, and how much fine detail: every image under low-pass and under high-pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Integer

from crossgraft.audit.subjects import Subject
from crossgraft.data import Dataset
from crossgraft.edit.confounders.low_pass import LowPass
from crossgraft.edit.edits import EditFacts, Editing
from crossgraft.edit.high_pass import HighPass
from crossgraft.errors import DataError, UsageError
from crossgraft.metrics import MetricValue, auc, balanced_accuracy
from crossgraft.progress import Reporter

Band = Literal["low", "high"]
BandMetric = Literal["auc", "balanced_accuracy"]
CUTOFFS = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)
"""Cycles per pixel; from about two waves across an image of 224 pixels to the Nyquist frequency."""
Columns = Integer[np.ndarray, " num_images"]
_BANDS: tuple[Band, ...] = ("low", "high")


class BandRow(NamedTuple):
    """A model under one filter.

    Attributes:
        kind: ``low``: what is below the cutoff stays; ``high``: what is above it.
        cutoff: Cycles per pixel of the images as they are.
        value: Metric with its interval.
        edit: What the filter changed in the images.
    """

    kind: Band
    cutoff: float
    value: MetricValue
    edit: EditFacts


class BandAccuracy(NamedTuple):
    """A model under filters.

    Attributes:
        metric: ``auc`` or ``balanced_accuracy``.
        positive: Class that is told from all others; None for balanced accuracy.
        chance: Value of what does not look at the images.
        clean: Metric of the images as they are.
        rows: First every low-pass, then every high-pass, cutoffs in the order that they were given in.
    """

    metric: BandMetric
    positive: str | None
    chance: float
    clean: MetricValue
    rows: tuple[BandRow, ...]


def band_accuracy(
    subject: Subject,
    images: Dataset,
    *,
    cutoffs: Sequence[float] = CUTOFFS,
    metric: BandMetric = "auc",
    positive: str | None = None,
    reporter: Reporter | None = None,
) -> BandAccuracy:
    """A metric of a trained model whose test images pass a low-pass, or a high-pass, of several cutoffs.

    Cutoffs are in cycles per pixel of the images as they are: resized to a third of their size, 0.1 becomes 0.3 at the input of a
    network, and what would be above 0.5 is lost on the way without any filter.

    Args:
        subject: From ``subject_of``.
        images: Labelled images that the model has not learned from; their classes are among those of the subject.
        cutoffs: Cycles per pixel, each in [0, 1].
        metric: ``auc`` of the positive class against all others, or ``balanced_accuracy`` of all classes, each image decided for
            its most probable one.
        positive: Class that an AUC is of; by default the last one of the subject.
        reporter: Reporter of progress.

    Raises:
        DataError: Images have several labels, a class that the model does not know, are of one class, or too small for a filter.
        UsageError: There is no cutoff, one is out of range, or a metric has no such name or does not fit.

    Cost: two passes over all images for each cutoff, and one.

    Source: accuracy by frequency band after Yin, Gontijo Lopes, Shlens, Cubuk and Gilmer, A Fourier Perspective on Model
    Robustness in Computer Vision, NeurIPS 2019.
    """
    _refuse(subject, cutoffs, metric, positive)
    filters: list[tuple[Band, LowPass | HighPass]] = [
        (kind, _filter(kind, float(cutoff))) for kind in _BANDS for cutoff in cutoffs
    ]
    truth = _columns(subject, images)
    column = _positive_column(subject, truth, positive) if metric == "auc" else None

    def measured(rows: Dataset) -> MetricValue:
        probabilities = subject.probabilities(rows)
        if column is None:
            return balanced_accuracy(
                probabilities.argmax(axis=1), truth, images.groups, class_names=subject.class_names
            )
        return auc(probabilities[:, column], (truth == column).astype(np.int64), images.groups)

    found: list[BandRow] = []
    with (reporter or Reporter(quiet=True)).stage(
        f"Taking frequencies away from {len(images)} images", total=1 + len(filters), unit="passes"
    ) as stage:
        clean = measured(images)
        stage.advance()
        for kind, each in filters:
            editing = Editing([each])
            value = measured(images.edited(editing))
            found.append(BandRow(kind, each.cutoff, value, editing.facts()[0]))
            stage.advance()
    return BandAccuracy(
        metric=metric,
        positive=None if column is None else subject.class_names[column],
        chance=1 / len(np.unique(truth)) if column is None else 0.5,
        clean=clean,
        rows=tuple(found),
    )


def _filter(kind: Band, cutoff: float) -> LowPass | HighPass:
    return LowPass(cutoff) if kind == "low" else HighPass(cutoff)


def _refuse(subject: Subject, cutoffs: Sequence[float], metric: str, positive: str | None) -> None:
    if not len(cutoffs):
        raise UsageError("No cutoff was given. Give some in cycles per pixel, for example cutoffs=(0.05, 0.1, 0.2).")
    if metric not in ("auc", "balanced_accuracy"):
        raise UsageError(f"The metric of a frequency band must be auc or balanced_accuracy, got {metric!r}.")
    if metric == "balanced_accuracy" and positive is not None:
        raise UsageError("A balanced accuracy is of all classes. Leave positive= out, or ask for metric='auc'.")
    if metric == "balanced_accuracy" and not subject.partitions:
        raise UsageError(
            f"{subject.name} gives an image several labels, of which none is decided for. Ask for metric='auc'."
        )


def _columns(subject: Subject, images: Dataset) -> Columns:
    """Column of the class of each image."""
    if not images.task.partitions:
        raise DataError("Frequency bands are of images with one class each, and these have several labels.")
    unknown = [name for name in images.class_names if name not in subject.class_names]
    if unknown:
        raise DataError(
            f"{subject.name} does not know the class {unknown[0]}: its classes are {', '.join(subject.class_names)}."
        )
    found = np.array([subject.class_names.index(name) for name in images.class_names])[images.targets]
    if len(np.unique(found)) < 2:
        raise DataError(f"Frequency bands need images of two classes; all are of {subject.class_names[found[0]]}.")
    return found


def _positive_column(subject: Subject, truth: Columns, positive: str | None) -> int:
    """Column of the positive class, of which there are images."""
    name = subject.class_names[-1] if positive is None else positive
    if name not in subject.class_names:
        raise DataError(
            f"{subject.name} does not know the class {name}: its classes are {', '.join(subject.class_names)}."
        )
    column = subject.class_names.index(name)
    if column not in truth:
        raise DataError(f"There is no image of {name}, so that it cannot be told from others. Name another: positive=.")
    return column
