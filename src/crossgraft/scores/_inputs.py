"""The inputs of a score, checked once and shared by all scores of one model."""

from __future__ import annotations

import copy
import math
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float32, Float64
from numpy.typing import ArrayLike

from crossgraft.errors import DataError, UsageError
from crossgraft.scores._moments import BLOCK_ROWS, ColumnMoments, shifted_blocks
from crossgraft.scores._statistics import FeatureStatistics, Passes, RowStatistics, Statistics
from crossgraft.types import ClassIndices, Features

_TRAINING_SHARE = 0.8


class FourToOneSplit(NamedTuple):
    """Row indices of both parts, and what to know about them."""

    train: np.ndarray
    test: np.ndarray
    warnings: tuple[str, ...]


def split_four_to_one(targets: ClassIndices, groups: np.ndarray | None, rng: np.random.Generator) -> FourToOneSplit:
    """The first ⌊0.8 n⌋ rows of a permutation, and the rest.

    With groups, whole groups are permuted and taken while they fit. A class without a row in the larger part gets the
    first of its groups from the rest, so a class with one image (or one group) is never tested.

    Args:
        targets: Class indices (n,).
        groups: The group of each row, or None where every row is its own.
        rng: Generator of the permutation.
    """
    units = np.arange(len(targets)) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    fits = np.cumsum(sizes[order]) <= int(_TRAINING_SHARE * len(targets))
    in_train = np.zeros(len(sizes), dtype=bool)
    in_train[order[fits]] = True
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    learned = np.zeros(int(targets.max()) + 1, dtype=bool)
    learned[targets[in_train[units]]] = True
    for index in np.flatnonzero(~learned):
        of_class = np.unique(units[targets == index])
        in_train[of_class[position[of_class].argmin()]] = True
    is_train = in_train[units]
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    if len(test):
        return FourToOneSplit(train, test, ())
    return FourToOneSplit(train, test, ("All images are needed to show every class once, so none is left for validation.",))


_SMALLEST_DEVIATION = 1e-6
"""Deviation of a feature relative to the typical one, below which it is not scaled up to variance 1."""


class Standardization(NamedTuple):
    """x ↦ (x − mean)·scale, estimated on one set of rows; constant columns get the scale 0."""

    mean: Float64[np.ndarray, " num_features"]
    scale: Float[np.ndarray, " num_features"]  # in the number type of the features

    @classmethod
    def fit(cls, features: Features) -> Standardization:
        """Estimate mean and (1/n) standard deviation of each column. Cost O(n·d)."""
        return cls.fit_apply(features)[0]

    @classmethod
    def fit_apply(cls, features: Features) -> tuple[Standardization, Float[np.ndarray, "num_samples num_features"]]:
        """What ``fit`` gives, and by it ``apply`` of the same rows, with one copy of them."""
        mean = features.mean(axis=0, dtype=np.float64)
        centred = features - mean.astype(features.dtype)
        deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(features))
        # A constant column has no deviation but rounding; dividing by it would blow that up to a feature.
        rounding = 10 * np.finfo(features.dtype).eps + len(features) * np.finfo(np.float64).eps
        resolution = rounding * np.abs(mean)
        is_varying = deviation > resolution
        scale = np.where(is_varying, 1 / np.where(is_varying, deviation, 1.0), 0.0)
        centred *= scale.astype(features.dtype)
        return cls(mean, scale), centred

    def apply(self, features: Features) -> Float[np.ndarray, "num_samples num_features"]:
        """The standardised rows, in their dtype."""
        dtype = features.dtype
        return (features - self.mean.astype(dtype)) * self.scale.astype(dtype)


def unit_variance(features: Features) -> Float32[np.ndarray, "num_samples num_features"]:
    """Columns of mean 0 and variance 1 (n − 1), as ITM wants them; constant ones are 0. Float32 whatever comes in."""
    mean, deviations = ColumnMoments.of(features)
    deviations *= math.sqrt(len(features) / (len(features) - 1))
    deviations[deviations <= 1e2 * np.finfo(features.dtype).eps * np.abs(mean)] = 0
    smallest = _SMALLEST_DEVIATION * np.sqrt(np.square(deviations).mean())
    scale = np.divide(1, np.maximum(deviations, smallest), out=np.zeros_like(deviations), where=deviations > 0)
    points = np.empty(features.shape, dtype=np.float32)
    for index, block in enumerate(shifted_blocks(features, mean.astype(features.dtype))):
        rows = slice(index * BLOCK_ROWS, index * BLOCK_ROWS + len(block))
        np.multiply(block, scale.astype(features.dtype), out=points[rows], casting="same_kind")
    return points


# The checks that every score shares: what a caller may pass, and what a score then receives.
#
# Scores never check their arrays themselves. After this front end, features are finite float32 or float64 matrices that
# share memory with the caller's where they can (and are never written to), and labels are 0 … C−1.


class MappedLabels(NamedTuple):
    """Labels as class indices, and the label that each index stands for."""

    names: np.ndarray
    indices: np.ndarray


def float_matrix(name: str, values: ArrayLike) -> np.ndarray:
    """A finite two-dimensional float32 or float64 array.

    Args:
        name: The argument, for messages.
        values: Real numbers, one row per image. float16 becomes float32; integers and long doubles become float64.

    Raises:
        DataError: Wrong number of axes, an empty axis, values that are no real numbers, NaN or infinity, or of a size whose
            squares no float64 holds.
    """
    matrix = np.asarray(values)
    if matrix.ndim != 2:
        raise DataError(f"`{name}` must have two axes (rows, columns), got shape {matrix.shape}.")
    if 0 in matrix.shape:
        raise DataError(f"`{name}` is empty: shape {matrix.shape}.")
    if matrix.dtype == np.float16:
        matrix = matrix.astype(np.float32)
    elif matrix.dtype.kind in "iub" or (matrix.dtype.kind == "f" and matrix.dtype.itemsize not in (4, 8)):
        matrix = matrix.astype(np.float64)
    elif matrix.dtype.kind != "f":
        raise DataError(f"`{name}` must hold real numbers, got dtype {matrix.dtype}.")
    if not matrix.dtype.isnative:  # as some file formats store it; sparse products and BLAS want the machine's own
        matrix = matrix.astype(matrix.dtype.newbyteorder("="))
    _require_finite(name, matrix)
    largest = max(float(matrix.max()), -float(matrix.min()))
    if largest > _LARGEST or 0 < largest < _SMALLEST:
        raise DataError(
            f"The largest number of `{name}` has the size {largest:.3g}, and sums of squares of such numbers are 0 or infinite. "
            "Check the weights that produced them, or scale them."
        )
    if not 1 / _LARGEST_SINGLE < largest < _LARGEST_SINGLE:  # float32 holds no squares of it
        return matrix.astype(np.float64, copy=False)
    return matrix


_SMALLEST, _LARGEST = 1e-45, float(np.finfo(np.float32).max)
"""Sizes of which every score can do without overflow, in float64; every float32 is within."""
_LARGEST_SINGLE = 1e15
"""From here on, and below its inverse, products of float32 overflow or vanish."""


def _require_finite(name: str, matrix: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        column_sums = np.ones(len(matrix), dtype=matrix.dtype) @ matrix
    if np.isfinite(column_sums).all():  # NaN and infinity survive a sum; only an overflow needs the second look
        return
    bad_rows = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad_rows.size:
        raise DataError(
            f"`{name}` contains NaN or infinity in {bad_rows.size} of {len(matrix)} rows, first in row {bad_rows[0]}. "
            "Check the images and the weights that produced them, or leave these rows out."
        )


def map_labels(labels: ArrayLike) -> MappedLabels:
    """Map labels of any type that sorts to 0 … C−1.

    Raises:
        DataError: Not one label per row, fewer than two rows or classes, missing labels, measured (float) targets, or
            labels of mixed types.
    """
    raw = np.asarray(labels)
    if raw.ndim != 1:
        raise DataError(f"`labels` must have one axis, one label per row, got shape {raw.shape}.")
    if len(raw) < 2:
        raise DataError(f"`labels` has {len(raw)} rows; a score needs at least 2.")
    if raw.dtype.kind == "O" and all(isinstance(label, Real) for label in raw.tolist()):
        raw = np.array(raw.tolist())  # a column of numbers, perhaps with gaps, as tables give it
    if raw.dtype.kind == "f":
        _require_whole_numbers(raw)
    elif raw.dtype.kind not in "iubUSO":
        raise DataError(f"`labels` must be integers, strings or booleans, got dtype {raw.dtype}.")
    names, indices = _sorted_unique("labels", raw)
    if len(names) < 2:
        raise DataError(
            f"All {len(raw)} labels are {names[0]!r}; a score needs at least 2 classes. "
            "Check the label column and the rows that were selected."
        )
    return MappedLabels(names, indices)


def _require_whole_numbers(labels: np.ndarray) -> None:
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DataError(f"`labels` is missing or infinite in row {row}. Leave out the rows without a label.")
    if (labels != np.round(labels)).any():
        row = int(np.flatnonzero(labels != np.round(labels))[0])
        raise DataError(
            f"`labels` holds measured values, not classes ({labels[row]:g} in row {row}). These scores are for "
            "classification: bin the values into classes first, for example with numpy.digitize."
        )


def _sorted_unique(argument: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        names, indices = np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values.tolist()}))
        raise DataError(f"`{argument}` mixes types that do not sort together ({kinds}). Use one type.") from error
    return names, indices


def map_groups(groups: ArrayLike) -> np.ndarray:
    """Map group names (patients, writers) to 0 … G−1.

    Raises:
        DataError: Not one group per row, or names of mixed types.
    """
    raw = np.asarray(groups)
    if raw.ndim != 1:
        raise DataError(f"`groups` must have one axis, one group per row, got shape {raw.shape}.")
    return _sorted_unique("groups", raw)[1]


def require_equal_rows(lengths: dict[str, int]) -> None:
    """Check that all row-aligned inputs have the same number of rows.

    Raises:
        DataError: They differ; the message gives all lengths.
    """
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise DataError(f"The inputs must have one row per image each, but {counts} rows.")


ROW_ALIGNED = ("features", "labels", "groups", "source_logits", "images")
"""Inputs with one row per image."""
INPUT_NAMES = (*ROW_ALIGNED, "source_features", "model")
"""Everything that a score can ask for."""


@runtime_checkable
class ReadableRows(Protocol):
    """An array or tensor (n, …), or a sequence of n images."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: Any, /) -> Any: ...


class ScoreInputs:
    """What one model says about one labelled data set; give what you have, scores say what they miss.

    What is computed from arrays, model and images is kept for the next score, so none of them may change meanwhile.

    Args:
        features: Penultimate features (n, d).
        labels: One label per row, of any type that sorts; at least two classes.
        groups: The patient (writer, lesion) of each row; neighbours and folds never cross it.
        source_logits: Logits of the pretrained head (n, Z), before softmax.
        source_features: Features of source-domain images (m, d), for scores that compare the two domains.
        model: The model itself, for scores that need gradients.
        images: Its input images, an array or tensor (n, …) or a sequence of n images.
        device: Where second moments, eigenvectors and Cholesky factors are computed: on ``cuda`` with torch in float64. A device
            without float64 (``mps``) is passed over.

    Attributes:
        labels: Class indices 0 … C−1.
        class_names: The label of each class index.

    Raises:
        DataError: An array has the wrong shape or type, holds NaN or infinity, or the rows do not match.
    """

    def __init__(
        self,
        *,
        features: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        source_logits: ArrayLike | None = None,
        source_features: ArrayLike | None = None,
        model: object | None = None,
        images: ReadableRows | None = None,
        device: str = "cpu",
    ) -> None:
        self.features = None if features is None else float_matrix("features", features)
        self.source_logits = None if source_logits is None else float_matrix("source_logits", source_logits)
        self.source_features = None if source_features is None else float_matrix("source_features", source_features)
        self.class_names: np.ndarray | None = None
        self.labels: np.ndarray | None = None
        if labels is not None:
            self.class_names, self.labels = map_labels(labels)
        self.groups = None if groups is None else map_groups(groups)
        self.model = model
        self.images = images
        self.device = device
        self._require_matching_shapes()

    def _require_matching_shapes(self) -> None:
        lengths = {name: len(values) for name in ROW_ALIGNED if (values := getattr(self, name)) is not None}
        require_equal_rows(lengths)
        if self.features is not None and self.source_features is not None:
            target, source = self.features.shape[1], self.source_features.shape[1]
            if target != source:
                raise DataError(
                    f"`features` has {target} columns and `source_features` has {source}; extract both with one model."
                )

    @property
    def num_samples(self) -> int:
        """Number of rows n; 0 when nothing row-aligned was given."""
        return next((len(values) for name in ROW_ALIGNED if (values := getattr(self, name)) is not None), 0)

    @cached_property
    def feature_statistics(self) -> FeatureStatistics:
        """Label-free statistics of the features, shared by all scores and all label permutations."""
        if self.features is None:
            raise UsageError("These inputs have no features, so there are no feature statistics.")
        if self.device.partition(":")[0] in ("cpu", "mps"):
            return FeatureStatistics(self.features)
        import torch

        return FeatureStatistics(self.features, device=torch.device(self.device))

    @cached_property
    def statistics(self) -> Statistics:
        """Statistics of features and labels, shared by all scores."""
        if self.labels is None:
            raise UsageError("These inputs have no labels, so there are no class statistics.")
        return Statistics(self.feature_statistics, self.labels)

    @cached_property
    def logit_rows(self) -> RowStatistics:
        """What follows from the source logits of each image alone, shared by all scores, blocks and label permutations."""
        if self.source_logits is None:
            raise UsageError("These inputs have no source logits, so nothing follows from them.")
        return RowStatistics(self.source_logits)

    @cached_property
    def passes(self) -> Passes:
        """What passes of the images through the network gave, shared by all scores of these labels."""
        return {}

    def share(self, earlier: ScoreInputs) -> None:
        """Take over what was computed for ``earlier`` from features and source logits alone, which are the same."""
        for name in ("feature_statistics", "logit_rows"):
            if name in earlier.__dict__:
                self.__dict__[name] = earlier.__dict__[name]

    def without(self, rows: ArrayLike) -> ScoreInputs:
        """The same inputs with ``rows`` left out, for the jackknife.

        The Gram matrix of the features is downdated, not formed again, and what follows from the source logits of each image
        alone is kept. A class that loses its last row is left out.

        Raises:
            UsageError: An index is out of range.
            DataError: Fewer than two rows or classes remain.
        """
        removed = np.unique(np.asarray(rows, dtype=np.intp))
        if removed.size and (removed[0] < 0 or removed[-1] >= self.num_samples):
            raise UsageError(f"`rows` must lie in 0 … {self.num_samples - 1}, got {removed[0]} … {removed[-1]}.")
        kept = np.delete(np.arange(self.num_samples), removed)
        smaller = self._copy_without_statistics()
        if self.labels is not None:
            smaller._set_labels(self.labels[kept], self.class_names)
        if self.features is not None:
            smaller.feature_statistics = self.feature_statistics.without(removed)
            smaller.features = self.features[kept] if self.feature_statistics.warnings else smaller.feature_statistics.features
        smaller.groups = None if self.groups is None else self.groups[kept]
        if self.source_logits is not None:
            smaller.source_logits = self.source_logits[kept]
            smaller.logit_rows = self.logit_rows.without(removed)
        smaller.images = None if self.images is None else _take(self.images, kept)
        return smaller

    def with_labels(self, labels: ArrayLike) -> ScoreInputs:
        """The same inputs with other labels, for the permutation control; label-free statistics are shared.

        Raises:
            DataError: Not one label per row, or fewer than two classes.
        """
        relabelled = self._copy_without_statistics()
        relabelled.class_names, relabelled.labels = map_labels(labels)
        require_equal_rows({"labels": len(relabelled.labels), "inputs": self.num_samples})
        if self.features is not None:
            relabelled.feature_statistics = self.feature_statistics
        if self.source_logits is not None:
            relabelled.logit_rows = self.logit_rows
        return relabelled

    def _copy_without_statistics(self) -> ScoreInputs:
        twin = copy.copy(self)
        for cached in ("feature_statistics", "statistics", "logit_rows", "passes"):
            twin.__dict__.pop(cached, None)
        return twin

    def _set_labels(self, labels: np.ndarray, names: np.ndarray | None) -> None:
        present, self.labels = map_labels(labels)
        self.class_names = None if names is None else names[present]


def _take(images: ReadableRows, kept: np.ndarray) -> ReadableRows:
    return images[kept] if hasattr(images, "shape") else ChosenRows(images, kept)  # an array or a tensor, else lazily


class ChosenRows:
    """Some images of a sequence; none is made before it is asked for."""

    def __init__(self, images: ReadableRows, rows: np.ndarray) -> None:
        self.images = images
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int, /) -> Any:
        return self.images[int(self.rows[row])]
