"""Frequencies of an artefact beside those that a network looks at: overlap, rank of risk, and AUC of filtered images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Integer
from scipy.stats import rankdata

from crossgraft.audit.learning_priority import exceeds_rounding, network_inputs, shorter_side
from crossgraft.audit.record import Band
from crossgraft.audit.subjects import Subject
from crossgraft.data import Dataset
from crossgraft.data.rows import ImageRows
from crossgraft.edit.confounders.low_pass import LowPass
from crossgraft.edit.edits import Editing
from crossgraft.edit.record import EditRow
from crossgraft.edit.source_editing import HighPass
from crossgraft.edit.spectrum import normalized_psd, radial_psd
from crossgraft.errors import DataError, UsageError
from crossgraft.metrics import MetricValue, auc, balanced_accuracy
from crossgraft.progress import Reporter
from crossgraft.statistics import permutation_p_value, spearman
from crossgraft.types import Preprocessing

Spectrum = Float[np.ndarray, " rings"]


class SpectralOverlap(NamedTuple):
    """Two spectra beside each other, both with a sum of 1 and without the mean of the image.

    Attributes:
        overlap: Σ min(a, g), in [0, 1].
        cosine: In [0, 1].
        spearman: Rank correlation over the rings from 1 on; NaN where one of them is flat.
        distance: Earth mover's distance in shares of the band, Σ |cumulated difference| / (K − 1).
        flat: Overlap of the first with a flat spectrum: what broadband alone gives.
    """

    overlap: float
    cosine: float
    spearman: float
    distance: float
    flat: float


def spectral_overlap(residual_psd: Spectrum, priority: Spectrum) -> SpectralOverlap:
    """The spectrum of what an artefact changes beside the learning priority of a network.

    It compares networks for one artefact. Between artefacts it says nothing, and for one that touches a small part of the image
    neither, because that is broadband.

    Args:
        residual_psd: (K,) mean spectrum of edited minus original, from ``radial_psd``.
        priority: (K,) from ``learning_priority``.

    Raises:
        DataError: Lengths differ, there are fewer than three rings, or one of them is zero everywhere.

    Source: the predictor is this project's; the thesis compares by eye (section 5.2.2).
    """
    if len(residual_psd) != len(priority) or len(priority) < 3:
        raise DataError(f"Two spectra of the same length, at least 3, are compared; got {len(residual_psd)} and {len(priority)}.")
    if not (np.isfinite(residual_psd).all() and np.isfinite(priority).all()):
        raise DataError("A spectrum has values that are NaN or infinite.")
    a, g = normalized_psd(np.asarray(residual_psd)), normalized_psd(np.asarray(priority))
    if not (a.any() and g.any()):
        raise DataError("A spectrum is zero everywhere, so that nothing can be compared: the edit changed nothing.")
    rings = len(a)
    flat = np.r_[0.0, np.full(rings - 1, 1 / (rings - 1))]
    return SpectralOverlap(
        overlap=float(np.minimum(a, g).sum()),
        cosine=float(a @ g / math.sqrt((a @ a) * (g @ g))),
        spearman=float(spearman(a[1:], g[1:])),
        distance=float(np.abs(np.cumsum(a - g)).sum() / (rings - 1)),
        flat=float(np.minimum(a, flat).sum()),
    )


Scope = Literal["local", "global"]


class EditSpectrum(NamedTuple):
    """One edit at the input of a network; the same for all networks that get the same inputs.

    Attributes:
        edit: Its name with options.
        scope: Whether it touches a part of an image or all of it.
        psd: (K,) mean over images of the spectrum of edited minus original input, each with a sum of 1; None: nothing is left.
        num_changed: Images that count: more than their mean, or the corners of their spectrum, changed.
        rms: Root mean square of what changed, in units of the input, over all images.
    """

    edit: str
    scope: Scope
    psd: Float64[np.ndarray, " rings"] | None
    num_changed: int
    rms: float


def edit_spectrum(
    clean: ImageRows,
    edited: ImageRows,
    preprocessing: Preprocessing,
    *,
    edit: str,
    scope: Scope = "global",
    told: Callable[[], object] = lambda: None,
) -> EditSpectrum:
    """Mean spectrum of what an edit changes in prepared images.

    Args:
        clean: Images as they are.
        edited: The same images with the edit.
        preprocessing: How images become inputs.
        edit: Name of the edit.
        scope: What it touches.
        told: Called after each image.

    Raises:
        DataError: There are no images, or other ones; or the input is too small.

    Cost: each image is prepared twice, and an FFT of the difference.
    """
    shorter_side(preprocessing)
    if len(clean) != len(edited) or not len(clean):
        raise DataError(f"The same images are needed without and with the edit; there are {len(clean)} and {len(edited)}.")
    spectra: list[np.ndarray] = []
    squares: list[float] = []
    for before, after in zip(network_inputs(clean, preprocessing), network_inputs(edited, preprocessing), strict=True):
        residual = after - before
        squares.append(float(np.mean(residual**2)))
        psd = radial_psd(residual)
        if exceeds_rounding(psd, max(np.abs(before).max(), np.abs(after).max()), residual[:, :, 0].size):
            spectra.append(normalized_psd(psd))
        told()
    rms = math.sqrt(math.fsum(squares) / len(squares))
    return EditSpectrum(edit, scope, np.mean(spectra, axis=0) if spectra else None, len(spectra), rms)


LEAST_MODELS = 5
"""A rank correlation of fewer models says nothing."""


class RiskRank(NamedTuple):
    """Whether the overlap orders models as their reliance does.

    Attributes:
        spearman: Rank correlation over models; None where it is not defined.
        p_value: One-sided, of agreement at least as good by chance; None likewise.
        num_models: Models compared.
        reason: Reason why there is none.
    """

    spearman: float | None
    p_value: float | None
    num_models: int
    reason: str | None


def risk_rank(
    overlaps: Sequence[float] | Float[np.ndarray, " num_models"],
    reliance: Sequence[float] | Float[np.ndarray, " num_models"],
    *,
    num_permutations: int = 4999,
    seed: int = 0,
) -> RiskRank:
    """Spearman's ρ between the overlaps of models with one artefact and how far they rely on it, with a permutation test.

    The p-value is the share of orders of the models with a ρ at least as large: all of them up to seven models, beyond it
    (1 + hits) / (1 + draws).

    Args:
        overlaps: One overlap per model, of the same artefact and with priorities of the same objective.
        reliance: Shortcut reliance index of each model.
        num_permutations: Draws beyond seven models.
        seed: Random seed of the draws.

    Returns:
        Below five models, or where all values of a side are equal, no ρ, and the reason.

    Raises:
        DataError: Lengths differ, or a value is not finite.

    Source: Spearman, The proof and measurement of association between two things, 1904.
    """
    first, second = np.asarray(overlaps, dtype=np.float64), np.asarray(reliance, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(f"Each model has an overlap and a reliance; got {first.size} and {second.size}.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise DataError("Overlaps and reliance must be finite. Leave out models for which one is not defined.")
    number = len(first)
    if number < LEAST_MODELS:
        return RiskRank(None, None, number, f"Ranks of {number} models say nothing; {LEAST_MODELS} are needed.")
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return RiskRank(None, None, number, "All models have the same value, so that they have no order.")
    ranks = [rankdata(each) for each in (first, second)]
    # Σ of products of ranks orders the permutations as ρ does, and is exact
    p_value = permutation_p_value(
        lambda x, y: float(np.dot(x, y)), ranks[0], ranks[1], num_permutations=num_permutations, seed=seed
    )
    return RiskRank(spearman(first, second), p_value, number, None)


BandMetric = Literal["auc", "balanced_accuracy"]
CUTOFFS = (1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)
"""Cycles per pixel; from about two waves across an image of 224 pixels to the Nyquist frequency."""
Columns = Integer[np.ndarray, " num_images"]


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
    edit: EditRow


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
        *(("low", LowPass(float(cutoff))) for cutoff in cutoffs),
        *(("high", HighPass(float(cutoff))) for cutoff in cutoffs),
    ]
    truth = _columns(subject, images)
    column = _positive_column(subject, truth, positive) if metric == "auc" else None

    def measured(rows: Dataset) -> MetricValue:
        probabilities = subject.probabilities(rows)
        if column is None:
            return balanced_accuracy(probabilities.argmax(axis=1), truth, images.groups, class_names=subject.class_names)
        return auc(probabilities[:, column], (truth == column).astype(np.int64), images.groups)

    under_filters: list[BandRow] = []
    with (reporter or Reporter(quiet=True)).stage(
        f"Taking frequencies away from {len(images)} images", total=1 + len(filters), unit="passes"
    ) as stage:
        clean = measured(images)
        stage.advance()
        for kind, each in filters:
            editing = Editing([each])
            value = measured(images.edited(editing))
            under_filters.append(BandRow(kind, each.cutoff, value, editing.facts()[0]))
            stage.advance()
    return BandAccuracy(
        metric=metric,
        positive=None if column is None else subject.class_names[column],
        chance=1 / len(np.unique(truth)) if column is None else 0.5,
        clean=clean,
        rows=tuple(under_filters),
    )


def _refuse(subject: Subject, cutoffs: Sequence[float], metric: str, positive: str | None) -> None:
    if not len(cutoffs):
        raise UsageError("No cutoff was given. Give some in cycles per pixel, for example cutoffs=(0.05, 0.1, 0.2).")
    if metric not in ("auc", "balanced_accuracy"):
        raise UsageError(f"The metric of a frequency band must be auc or balanced_accuracy, got {metric!r}.")
    if metric == "balanced_accuracy" and positive is not None:
        raise UsageError("A balanced accuracy is of all classes. Leave positive= out, or ask for metric='auc'.")
    if metric == "balanced_accuracy" and not subject.partitions:
        raise UsageError(f"{subject.name} gives an image several labels, of which none is decided for. Ask for metric='auc'.")


def _columns(subject: Subject, images: Dataset) -> Columns:
    """Column of the class of each image."""
    if not images.task.partitions:
        raise DataError("Frequency bands are of images with one class each, and these have several labels.")
    unknown = [name for name in images.class_names if name not in subject.class_names]
    if unknown:
        raise DataError(f"{subject.name} does not know the class {unknown[0]}: its classes are {', '.join(subject.class_names)}.")
    columns = np.array([subject.class_names.index(name) for name in images.class_names])[images.targets]
    if len(np.unique(columns)) < 2:
        raise DataError(f"Frequency bands need images of two classes; all are of {subject.class_names[columns[0]]}.")
    return columns


def _positive_column(subject: Subject, truth: Columns, positive: str | None) -> int:
    """Column of the positive class, of which there are images."""
    name = subject.class_names[-1] if positive is None else positive
    if name not in subject.class_names:
        raise DataError(f"{subject.name} does not know the class {name}: its classes are {', '.join(subject.class_names)}.")
    column = subject.class_names.index(name)
    if column not in truth:
        raise DataError(f"There is no image of {name}, so that it cannot be told from others. Name another: positive=.")
    return column
