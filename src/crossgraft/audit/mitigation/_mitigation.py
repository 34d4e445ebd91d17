"""What every strategy is: it is given rows with label and artefact, and gives a scorer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64, Integer
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.seeding import generator
from crossgraft.tasks import DEFAULT_THRESHOLD
from crossgraft.types import Groups

Flags = Integer[np.ndarray, " num_images"]
RowNumbers = Int64[np.ndarray, " _"]
CELLS = tuple((label, artefact) for label in (0, 1) for artefact in (0, 1))
"""(label, artefact) of each cell."""


def cell_rows(labels: Flags, artefact: Flags) -> list[RowNumbers]:
    """Row numbers of each cell, in the order of ``CELLS``."""
    return [np.flatnonzero((labels == label) & (artefact == carried)) for label, carried in CELLS]


def cell_name(label: int, artefact: int) -> str:
    """A cell in words."""
    return f"{'positive' if label else 'negative'} {'with' if artefact else 'without'} the artefact"


def balanced_draw(cells: list[RowNumbers], rng: np.random.Generator) -> RowNumbers:
    """As many rows of each cell as the smallest has, without replacement, in ascending order.

    Args:
        cells: Row numbers of each cell, none empty.
        rng: Random numbers of this draw.
    """
    fewest = min(map(len, cells))
    return np.sort(np.concatenate([rng.choice(rows, fewest, replace=False) for rows in cells]))


def flags(values: Flags, name: str) -> Int64[np.ndarray, " num_images"]:
    """Values that are 0 or 1, as integers.

    Raises:
        DataError: One is neither.
    """
    known = np.asarray(values)
    if known.ndim != 1 or not np.isin(known, (0, 1)).all():
        raise DataError(f"{name} must be 0 or 1 for each image.")
    return known.astype(np.int64)


ConfounderKind = Literal["local", "global", "attribute"]
"""What a confounder touches: a part of the image, all of it, or the person."""
KINDS: tuple[ConfounderKind, ...] = get_args(ConfounderKind)
Part = Literal["train", "val"]
ImageFeatures = Float[np.ndarray, "num_images num_features"]


class GroupedRows(NamedTuple):
    """Images of one part.

    Attributes:
        features: (n, d) frozen features.
        labels: (n,) 1 = positive.
        artefact: (n,) 1 = carries it, or belongs to the group in question.
        patients: (n,) patient of each image; None: each image is one.
    """

    features: ImageFeatures
    labels: Flags
    artefact: Flags
    patients: Groups | None = None

    def take(self, rows: RowNumbers) -> GroupedRows:
        """Some of the images, in this order."""
        patients = None if self.patients is None else np.asarray(self.patients)[rows]
        return GroupedRows(self.features[rows], self.labels[rows], self.artefact[rows], patients)


@dataclass(frozen=True, eq=False)
class FittedScorer:
    """p = σ(w · (x − mean) / scale + b), and from which p on an image is decided positive.

    Attributes:
        mean: (d,) mean of each feature.
        scale: (d,) standard deviation of each feature; 1 where it is constant.
        coefficients: w, (d,).
        intercept: b.
        thresholds: Thresholds of images without the artefact and with it.
    """

    mean: Float64[np.ndarray, " num_features"]
    scale: Float64[np.ndarray, " num_features"]
    coefficients: Float64[np.ndarray, " num_features"]
    intercept: float
    thresholds: tuple[float, float] = (DEFAULT_THRESHOLD, DEFAULT_THRESHOLD)

    def probabilities(self, features: ImageFeatures) -> Float64[np.ndarray, " num_images"]:
        """Probability of the positive class, (n,); raises as ``logits``."""
        return expit(self.logits(features))

    def logits(self, features: ImageFeatures) -> Float64[np.ndarray, " num_images"]:
        """Logit of each image, (n,): w · (x − mean) / scale + b.

        Raises:
            DataError: There are more features, or fewer, than the scorer was fitted to.
        """
        values = np.asarray(features, dtype=np.float64)
        if values.ndim != 2 or values.shape[1] != len(self.mean):
            raise DataError(f"The scorer was fitted to {len(self.mean)} features per image, got {values.shape}.")
        return (values - self.mean) / self.scale @ self.coefficients + self.intercept

    def decide(self, features: ImageFeatures, artefact: Flags) -> Bool[np.ndarray, " num_images"]:
        """Whether each image is decided positive: its probability is at least the threshold of its group.

        Raises:
            DataError: Shapes do not fit, or the artefact is not 0 or 1.
        """
        carried = flags(artefact, "artefact")
        if len(carried) != len(features):
            raise DataError(f"There are {len(features)} images and {len(carried)} artefact flags; they must match.")
        return self.probabilities(features) >= np.asarray(self.thresholds)[carried]


@dataclass(frozen=True)
class Mitigation(ABC):
    """Base of all strategies: a frozen dataclass whose fields are its options, and ``fit_rows``.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        reference: Publication behind it.
        kinds: Kinds of confounders that it can help with.
        uses_val: Whether anything is fitted to or picked on the validation part.
        applies_to_images: Whether images are to be changed before features are computed.
        balanced_part: Part whose four cells of label and artefact it weighs against each other; None: it looks at none.
        least_per_cell: Images that each cell needs there.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    kinds: ClassVar[tuple[ConfounderKind, ...]] = KINDS
    uses_val: ClassVar[bool] = False
    applies_to_images: ClassVar[bool] = False
    balanced_part: ClassVar[Part | None] = None
    least_per_cell: ClassVar[int] = 1

    @abstractmethod
    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """The scorer, from rows that are checked and whose order says nothing."""

    def fit(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Fit the scorer; the order of the rows does not matter.

        Args:
            train: Training part.
            val: Validation part; not looked at unless ``uses_val``.
            seed: Random seed of draws.

        Raises:
            DataError: Rows do not match, features are not finite, flags are not 0 or 1, or training has one class.
            UsageError: A cell that is needed has too few images.
        """
        train = _in_order(_checked(train, "train"))
        if self.uses_val:
            val = _in_order(_checked(val, "val"))
            if val.features.shape[1] != train.features.shape[1]:
                raise DataError(f"train has {train.features.shape[1]} features per image, val {val.features.shape[1]}.")
        refuse_unidentifiable(train, val, self)
        if len(np.unique(train.labels)) < 2:
            raise DataError(f"All {len(train.labels)} images of train have the label {train.labels[0]}.")
        return self.fit_rows(train, val, seed=seed)


def refuse_unidentifiable(train: GroupedRows, val: GroupedRows, mitigation: Mitigation) -> None:
    """Refuse a strategy that weighs cells against each other of which one has no images, or too few.

    Raises:
        UsageError: With the cells, wanted and available.
    """
    part = mitigation.balanced_part
    if part is None:
        return
    rows, least = {"train": train, "val": val}[part], mitigation.least_per_cell
    sizes = [len(cell) for cell in cell_rows(np.asarray(rows.labels), np.asarray(rows.artefact))]
    lacking = [f"{cell_name(*cell)} has {size}" for cell, size in zip(CELLS, sizes, strict=True) if size < least]
    if lacking:
        why = "" if min(sizes) else " Where there is none, label and artefact cannot be told apart."
        raise UsageError(
            f"{mitigation.name} needs at least {least} image{'s' if least > 1 else ''} in every cell of {part}: "
            f"{', '.join(lacking)}.{why} Put the artefact into images of both classes, or bring such images."
        )


def suited(mitigations: Iterable[Mitigation], kind: ConfounderKind) -> list[Mitigation]:
    """Those that can help with a kind of confounder, in their order.

    Raises:
        UnknownNameError: There is no such kind.
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of confounder", kind, KINDS)
    return [each for each in mitigations if kind in each.kinds]


def _checked(rows: GroupedRows, part: Part) -> GroupedRows:
    """The same rows as float64 and integers."""
    features = np.asarray(rows.features, dtype=np.float64)
    labels, artefact = flags(rows.labels, f"labels of {part}"), flags(rows.artefact, f"artefact of {part}")
    people = labels if rows.patients is None else np.asarray(rows.patients)
    if features.ndim != 2 or not len(features) == len(labels) == len(artefact) == len(people) or not features.size:
        raise DataError(
            f"Every image of {part} needs features, a label and an artefact flag; there are {features.shape}, {len(labels)} "
            f"and {len(artefact)}."
        )
    if not np.isfinite(features).all():
        raise DataError(f"Features of {part} have values that are NaN or infinite.")
    return GroupedRows(features, labels, artefact, None if rows.patients is None else people)


def _in_order(rows: GroupedRows) -> GroupedRows:
    """Rows by cell and content, so that draws depend on the images and not on their places.

    The content is a random projection: rounding of another batch size moves no row past another, as it would with a digest.
    """
    direction = generator(0, "order of rows").standard_normal(rows.features.shape[1])
    order = np.lexsort((rows.features @ direction, rows.artefact, rows.labels))
    return rows.take(order)


MAX_ITERATIONS = 1000


def logistic_scorer(
    rows: GroupedRows,
    weights: Float64[np.ndarray, " num_images"] | None = None,
    *,
    inverse_penalty: float = 1.0,
    scaler: StandardScaler | None = None,
) -> FittedScorer:
    """L2-penalised logistic regression; mean and deviation of features are those of all rows, whatever their weights.

    Args:
        rows: Images of both classes.
        weights: (n,) weight of each image in the loss; None: 1.
        inverse_penalty: C of scikit-learn: smaller is smoother.
        scaler: Fitted to other images, whose mean and deviation are taken; None: those of ``rows``.
    """
    scaler = scaler or StandardScaler().fit(rows.features)
    model = LogisticRegression(C=inverse_penalty, max_iter=MAX_ITERATIONS)
    model.fit(scaler.transform(rows.features), rows.labels, sample_weight=weights)
    return scorer_of(scaler, model.coef_[0], float(np.ravel(model.intercept_)[0]))


def scorer_of(scaler: StandardScaler, coefficients: Float64[np.ndarray, " num_features"], intercept: float) -> FittedScorer:
    """A scorer of features as they come, from coefficients of those that ``scaler`` makes of them."""
    return FittedScorer(np.asarray(scaler.mean_), np.asarray(scaler.scale_), coefficients, intercept)
