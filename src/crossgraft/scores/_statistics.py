"""What the scores share about one feature matrix: each statistic is computed on first use, and once.

``FeatureStatistics`` never sees labels, so shuffled labels cost nothing here; ``Statistics`` adds the class sums. Leaving
rows out (the jackknife) takes their products out of the Gram matrix instead of forming it again.

Notation: X (n×d) features, m their mean, T the centred scatter Σ (x−m)(x−m)ᵀ, K = XᵀX. For n < d both are replaced by
their n×n duals, which have the same non-zero eigenvalues.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np
from jaxtyping import Float64
from scipy.sparse import csr_array

from crossgraft import seeding
from crossgraft.compute import is_out_of_memory
from crossgraft.scores._moments import DualMoments, PrimalMoments, RowIndices, near_mean, shifted_blocks
from crossgraft.scores._symmetric import Factor, Matrix, Spectrum, to_host
from crossgraft.types import ClassIndices, Features

if TYPE_CHECKING:
    import torch

# A projection for feature matrices that are large in both directions.
#
# The d×d and the n×n form are both out of reach when n and d exceed 10 000. A randomised range finder (Halko, Martinsson
# and Tropp, SIAM Review 2011, algorithm 4.4) keeps the leading directions of X; the scores then see X Q with QᵀQ = I.

LARGE = 10_000
"""Rows and columns above which neither form of the Gram matrix is formed."""
NUM_DIRECTIONS = 4096
"""Directions kept of larger matrices."""
_OVERSAMPLING = 16
_POWER_ITERATIONS = 2


def reduce_when_large(features: Features) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features themselves, or their projection and a warning that says how much of their energy is kept."""
    num_samples, num_features = features.shape
    if num_samples <= LARGE or num_features <= LARGE:
        return features, ()
    directions = _leading_directions(features)
    projected = features @ directions
    kept = _energy(projected) / max(_energy(features), np.finfo(np.float64).tiny)
    return projected, (
        f"{num_features} features of {num_samples} images were reduced to {directions.shape[1]} by randomised PCA; "
        f"{kept:.4f} of their energy is kept.",
    )


def _energy(matrix: np.ndarray) -> float:
    return float(np.einsum("ij,ij->", matrix, matrix, dtype=np.float64))


def _leading_directions(features: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span the leading right singular vectors approximately; seeded. Cost O(n·d·directions)."""
    num_features = features.shape[1]
    noise = seeding.generator(0, "randomised PCA").standard_normal((num_features, NUM_DIRECTIONS + _OVERSAMPLING))
    basis = noise.astype(features.dtype)
    for _ in range(_POWER_ITERATIONS):
        basis = np.linalg.qr(features.T @ (features @ basis))[0]
    projected = features @ basis
    _, rotation = np.linalg.eigh(projected.T.astype(np.float64) @ projected)
    return basis @ rotation[:, ::-1][:, :NUM_DIRECTIONS].astype(features.dtype)


def spectrum_of(matrix: Matrix) -> Spectrum:
    """The spectrum of a symmetric matrix, computed where it lies; on the host where the device cannot."""
    if isinstance(matrix, np.ndarray):
        return Spectrum(matrix)
    from crossgraft.scores._on_device import NOT_THERE, DeviceSpectrum

    try:
        return DeviceSpectrum(matrix)
    except NOT_THERE:
        return Spectrum(to_host(matrix))


def factor_of(matrix: Matrix, device: torch.device | None = None) -> Factor | None:
    """The Cholesky factor of a symmetric matrix, computed where it lies, or on ``device``.

    Returns:
        None where the matrix is not positive definite.
    """
    if isinstance(matrix, np.ndarray) and device is None:
        return Factor.of(matrix)
    from crossgraft.scores._on_device import NOT_THERE, factor_on_device

    try:
        return factor_on_device(matrix, device)
    except NOT_THERE:
        return Factor.of(to_host(matrix))


R = TypeVar("R")

SHARED: Any = None
"""Default of ``statistics``, ``logit_rows`` and ``passes``, in whose place a score gets what all scores of one model share."""

Passes = dict[Hashable, Any]
"""Settings of what needs passes of the images through the network → what they gave."""

_SUMMED_ROWS = 1024
"""Rows that are added up in the dtype of the features before the sum moves on to float64."""


class Origin(NamedTuple):
    """Where statistics with rows left out came from."""

    parent: FeatureStatistics
    kept: np.ndarray
    removed: np.ndarray


class FeatureStatistics:
    """Label-free statistics of one feature matrix.

    Args:
        features: n×d, finite. Above 10 000 rows *and* columns they are replaced by a projection onto 4096 directions,
            and ``warnings`` says so.
        origin: Statistics of all rows, and which of these are left.
        device: Where second moments, eigenvectors and Cholesky factors are computed, in float64; None: here, products in the
            dtype of the features.
    """

    def __init__(self, features: Features, *, origin: Origin | None = None, device: torch.device | None = None) -> None:
        self.origin = origin
        self.device = device
        self.warnings: tuple[str, ...] = ()
        if origin is None:
            features, self.warnings = reduce_when_large(features)
        else:
            self.warnings = origin.parent.warnings
        self.features = features
        self.num_samples, self.num_features = features.shape
        self.is_dual: bool = origin.parent.is_dual if origin else self.num_samples < self.num_features
        self._remembered: dict[Hashable, object] = {}

    def without(self, rows: RowIndices) -> FeatureStatistics:
        """The statistics with ``rows`` left out."""
        kept = np.delete(np.arange(self.num_samples), rows)
        return FeatureStatistics(self.features[kept], origin=Origin(self, kept, rows), device=self.device)

    def remember(self, key: Hashable, compute: Callable[[], R]) -> R:
        """The value of ``compute()``, computed once for these features; ``key`` names it and its settings."""
        if key not in self._remembered:
            self._remembered[key] = compute()
        return cast(R, self._remembered[key])

    def recall(self, key: Hashable, kind: type[R]) -> R | None:
        """What ``remember`` keeps under ``key``; None where it was not asked for."""
        value = self._remembered.get(key)
        return value if isinstance(value, kind) else None

    @cached_property
    def moments(self) -> PrimalMoments | DualMoments:
        """Second moments in the smaller form."""
        if self.origin is None:
            kind = DualMoments if self.is_dual else PrimalMoments
            try:
                return kind.of(self.features, near_mean(self.features), self.device)
            except RuntimeError as error:
                if self.device is None or not is_out_of_memory(error):
                    raise
                self.warnings += (f"The memory of {self.device} was full, so second moments were computed on the host.",)
                return kind.of(self.features, near_mean(self.features))
        parent = self.origin.parent
        if isinstance(parent.moments, DualMoments):
            return parent.moments.without(self.origin.kept)
        return parent.moments.without(parent.features, self.origin.removed)

    @property
    def has_double_products(self) -> bool:
        """Whether the second moments are those of products in float64."""
        return self.features.dtype == np.float64 or not isinstance(self.moments.product, np.ndarray)

    @cached_property
    def mean(self) -> Float64[np.ndarray, " num_features"]:
        """m, the mean of the rows."""
        if isinstance(self.moments, PrimalMoments):
            return self.moments.mean()
        return self.features.mean(axis=0, dtype=np.float64)

    @cached_property
    def is_constant(self) -> bool:
        """Whether all rows are the same image to the precision of their dtype."""
        resolution = np.finfo(self.features.dtype).eps
        return bool(self.moments.spread() <= 16 * self.num_samples * resolution**2 * np.square(self.mean).sum())

    @cached_property
    def squared_norms(self) -> Float64[np.ndarray, " num_samples"]:
        """‖x_i − m‖² of every row."""
        if isinstance(self.moments, DualMoments):
            return to_host(self.moments.scatter().diagonal()).copy()
        return self.moments.centred_norms(self.features)

    @cached_property
    def gram_spectrum(self) -> Spectrum:
        """Spectrum of K = XᵀX (d×d), or of XXᵀ (n×n) when n < d."""
        return spectrum_of(self.moments.gram())

    @cached_property
    def scatter_spectrum(self) -> Spectrum:
        """Spectrum of the centred scatter T, or of its dual when n < d."""
        return spectrum_of(self.moments.scatter())

    def resolved(self, num_leading: int) -> FeatureStatistics:
        """These statistics, or the same in float64 where float32 leaves one of the leading directions in doubt."""
        values = self.scatter_spectrum.values[::-1][:num_leading]
        if self.has_double_products or not self.scatter_spectrum.is_in_doubt(values):
            return self
        return self.in_float64

    @cached_property
    def in_float64(self) -> FeatureStatistics:
        """The statistics of the same numbers, with products in float64."""
        if self.features.dtype == np.float64:
            return self
        if self.origin is not None:
            return self.origin.parent.in_float64.without(self.origin.removed)
        return FeatureStatistics(self.features.astype(np.float64), device=self.device)

    def principal_scores(self, variance_kept: float) -> Float64[np.ndarray, "num_samples num_components"]:
        """Coordinates along the leading principal directions that hold more than ``variance_kept`` of the variance.

        The eigenvectors are exact, so nothing here is random. Constant features give zero columns.
        """
        if self.is_constant:
            return np.zeros((self.num_samples, 0))
        values = np.maximum(self.scatter_spectrum.values[::-1], 0.0)
        share = np.cumsum(values) / values.sum()
        return self.leading_scores(int(np.searchsorted(share, variance_kept, side="right")) + 1)

    def all_scores(self) -> Float64[np.ndarray, "num_samples num_components"]:
        """All principal coordinates, at least one: the features in another orthonormal basis, around their mean."""
        if self.is_constant:
            return np.zeros((self.num_samples, 1))
        return self.leading_scores(min(self.num_samples - 1, self.num_features))

    def leading_scores(self, num_components: int) -> Float64[np.ndarray, "num_samples num_components"]:
        """Coordinates along the first principal directions, at most ``num_components`` and at most min(n, d) of them.

        Where a direction is empty they are 0, so that no score can blow rounding up.
        """
        resolved = self.resolved(num_components)
        if resolved is not self:
            return resolved.leading_scores(num_components)
        spectrum = self.scatter_spectrum
        values = spectrum.values[::-1][:num_components]
        values = np.where(values > spectrum.smallest, values, 0.0)
        leading = spectrum.leading(len(values)) * (values > 0)
        if self.is_dual:
            return leading * np.sqrt(values)
        directions = np.ascontiguousarray(leading, dtype=self.features.dtype)
        center = self.mean.astype(self.features.dtype)
        parts = [shifted @ directions for shifted in shifted_blocks(self.features, center)]
        return np.concatenate(parts).astype(np.float64)


class RowStatistics:
    """What follows from each row of a matrix alone: computed once for all rows, whichever are left out or relabelled later.

    Args:
        values: (all rows, k).
        kept: The rows that are left, ascending; all of them where it is None.
    """

    def __init__(self, values: np.ndarray, *, kept: np.ndarray | None = None, known: dict[Hashable, Any] | None = None) -> None:
        self._values = values
        self._known: dict[Hashable, Any] = {} if known is None else known
        self.kept = np.arange(len(values)) if kept is None else kept

    def of_all(self, key: Hashable, compute: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """``compute(values)``, one entry for each of all rows, of which ``kept`` are left.

        Args:
            key: Names ``compute`` and its settings.
            compute: No entry may depend on another row.
        """
        if key not in self._known:
            self._known[key] = compute(self._values)
        return self._known[key]

    def without(self, rows: RowIndices) -> RowStatistics:
        """The same with ``rows`` of the kept ones left out."""
        return RowStatistics(self._values, kept=np.delete(self.kept, rows), known=self._known)


def sum_by_class(values: np.ndarray, targets: ClassIndices, num_classes: int) -> Float64[np.ndarray, "num_classes width"]:
    """Sums of the rows of ``values`` over each class: ``onehot(y)ᵀ values`` without the zeros. Cost O(n·width)."""
    sums = np.zeros((num_classes, values.shape[1]))
    for start in range(0, len(values), _SUMMED_ROWS):
        block = values[start : start + _SUMMED_ROWS]
        ones = np.ones(len(block), dtype=values.dtype)
        cells = (targets[start : start + _SUMMED_ROWS], np.arange(len(block)))
        sums += csr_array((ones, cells), shape=(num_classes, len(block))) @ block
    return sums


class Statistics:
    """Statistics of one feature matrix together with labels; what a score asks for by a ``statistics`` parameter.

    Args:
        label_free: Statistics that do not depend on the labels; shared between label permutations.
        targets: Class indices 0 … C−1, every class present.
    """

    def __init__(self, label_free: FeatureStatistics, targets: ClassIndices) -> None:
        self.label_free = label_free
        self.targets = targets
        self.num_samples = len(targets)
        self.num_classes = int(targets.max()) + 1

    @property
    def warnings(self) -> tuple[str, ...]:
        """Those of the features, as far as they were looked at."""
        return self.label_free.warnings

    @cached_property
    def class_counts(self) -> Float64[np.ndarray, " num_classes"]:
        """n_c."""
        return np.bincount(self.targets, minlength=self.num_classes).astype(np.float64)

    @cached_property
    def in_float64(self) -> Statistics:
        """The statistics of the same numbers and labels, with products in float64."""
        return Statistics(self.label_free.in_float64, self.targets)

    def class_sums(self, values: np.ndarray) -> Float64[np.ndarray, "num_classes width"]:
        """Sums of the rows of ``values`` over each class."""
        return sum_by_class(values, self.targets, self.num_classes)

    @cached_property
    def mean_offsets(self) -> Float64[np.ndarray, "num_classes num_features"]:
        """μ_c − m: how far each class mean lies from the mean."""
        means = self.class_sums(self.label_free.features) / self.class_counts[:, None]
        return means - (self.class_counts @ means) / self.num_samples

    @cached_property
    def class_weights(self) -> Float64[np.ndarray, "num_samples num_classes"]:
        """w_c = 1[y=c]/n_c − 1/n, with which the centred features X̃ have μ_c − m = X̃ᵀ w_c."""
        return self.one_hot / self.class_counts - 1 / self.num_samples

    @cached_property
    def one_hot(self) -> Float64[np.ndarray, "num_samples num_classes"]:
        """1 where a row is of a class, else 0."""
        return np.eye(self.num_classes)[self.targets]
