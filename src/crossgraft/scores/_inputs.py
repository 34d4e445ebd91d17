"""The inputs of a score, checked once and shared by all scores of one model."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from crossgraft.errors import DataError, UsageError
from crossgraft.scores._front_end import float_matrix, map_groups, map_labels, require_equal_rows
from crossgraft.scores._statistics import FeatureStatistics, Statistics

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

    Args:
        features: Penultimate features (n, d).
        labels: One label per row, of any type that sorts; at least two classes.
        groups: The patient (writer, lesion) of each row; neighbours and folds never cross it.
        source_logits: Logits of the pretrained head (n, Z), before softmax.
        source_features: Features of source-domain images (m, d), for scores that compare the two domains.
        model: The model itself, for scores that need gradients.
        images: Its input images, an array or tensor (n, …) or a sequence of n images.

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
        return FeatureStatistics(self.features)

    @cached_property
    def statistics(self) -> Statistics:
        """Statistics of features and labels, shared by all scores."""
        if self.labels is None:
            raise UsageError("These inputs have no labels, so there are no class statistics.")
        return Statistics(self.feature_statistics, self.labels)

    def without(self, rows: ArrayLike) -> ScoreInputs:
        """The same inputs with ``rows`` left out, for the jackknife.

        The Gram matrix of the features is downdated, not formed again. A class that loses its last row is left out.

        Args:
            rows: Row indices to leave out.

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
            smaller.features = (
                self.features[kept] if self.feature_statistics.warnings else smaller.feature_statistics.features
            )
        smaller.groups = None if self.groups is None else self.groups[kept]
        smaller.source_logits = None if self.source_logits is None else self.source_logits[kept]
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
        return relabelled

    def _copy_without_statistics(self) -> ScoreInputs:
        other = copy.copy(self)
        for cached in ("feature_statistics", "statistics"):
            other.__dict__.pop(cached, None)
        return other

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
