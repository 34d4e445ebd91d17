"""Features as they are given, as checked arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsFloat, TypeVar

import numpy as np
from jaxtyping import Float, Float64
from scipy import linalg
from scipy.linalg import get_lapack_funcs
from torch import Tensor

from crossgraft.errors import DataError, NotApplicable

T = TypeVar("T", bound="Similarity")


class Similarity(float):
    """Value of a measure: a float with what it was computed from.

    Attributes:
        estimator: Name of the measure, with its variant.
        n: Number of rows (images, or positions) that it is of.
        seed: Random seed of what was drawn; None where nothing was.
        parts: Named intermediate numbers.
        warnings: Warnings about the value, each a sentence.
    """

    estimator: str
    n: int
    seed: int | None
    parts: dict[str, float]
    warnings: tuple[str, ...]

    def __new__(
        cls: type[T],
        value: float,
        *,
        estimator: str,
        n: int,
        seed: int | None = None,
        parts: Mapping[str, SupportsFloat] | None = None,
        warnings: Sequence[str] = (),
    ) -> T:
        self = float.__new__(cls, value)
        self.estimator, self.n, self.seed = estimator, n, seed
        self.parts = {name: float(part) for name, part in (parts or {}).items()}
        self.warnings = tuple(warnings)
        return self

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: dict[int, object]) -> T:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), float(self), vars(self))


def _again(kind: type[Similarity], value: float, state: dict[str, object]) -> Similarity:
    """A value that was pickled."""
    again = kind(value, estimator="", n=0)
    vars(again).update(state)
    return again


Matrix = Float64[np.ndarray, "_ _"]
Coefficients = Float64[np.ndarray, " _"]

_WORST_CONDITION = 1e6
"""Condition of a covariance (of columns of unit length) up to which its Cholesky factor is used: correlations lose at most about
this times 10⁻¹⁶."""
_SMALLEST = 1e-12
"""Directions that are shorter than this times the longest are rounding, not features."""


@dataclass(frozen=True, eq=False)
class Canonical:
    """What two whitened sets of features have in common.

    Attributes:
        coefficients: Canonical correlations, largest first, in [0, 1]; as many as the smaller rank.
        weights: For each canonical variate h of the first set Σ_j |⟨h, x_j⟩|, with x_j its columns.
        ranks: Linearly independent columns on each side.
    """

    coefficients: Coefficients
    weights: Coefficients
    ranks: tuple[int, int]


def canonical(x: Matrix, y: Matrix, *, with_weights: bool = False) -> Canonical:
    """Canonical correlations of centred features.

    Args:
        x: (n, d_x), the mean of each column is 0; not all columns are 0.
        y: (n, d_y), the same.
        with_weights: Also compute the weights, which are empty otherwise.

    Cost: n (d_x² + d_y² + 2 d_x d_y) operations and a singular value decomposition of d_x × d_y; by QR about three times that.
    """
    lengths = [np.sqrt(np.einsum("ij,ij->j", side, side)) for side in (x, y)]
    kept = [length > _SMALLEST * length.max() for length in lengths]
    x, y = (side if mask.all() else side[:, mask] for side, mask in zip((x, y), kept, strict=True))
    of_x, of_y = (length[mask] for length, mask in zip(lengths, kept, strict=True))
    factors = [_cholesky(side, length) if len(side) > side.shape[1] else None for side, length in ((x, of_x), (y, of_y))]
    if factors[0] is not None and factors[1] is not None:
        between = (x.T @ y) / of_x[:, None] / of_y
        between = linalg.solve_triangular(factors[0], between, trans=1, overwrite_b=True, check_finite=False)
        between = linalg.solve_triangular(factors[1], between.T, trans=1, overwrite_b=True, check_finite=False).T
        back = factors[0] * of_x  # X = H R for whitened H: ⟨h, x_j⟩ = (Uᵀ R)_j
    else:
        (basis_x, back), (basis_y, _) = _orthonormal(x), _orthonormal(y)
        between = basis_x.T @ basis_y
    ranks = between.shape[0], between.shape[1]
    if not with_weights:
        correlations = linalg.svdvals(between, overwrite_a=True, check_finite=False)
        return Canonical(np.clip(correlations, 0, 1), np.empty(0), ranks)
    left, correlations, _ = svd(between)
    return Canonical(np.clip(correlations, 0, 1), np.abs(left.T @ back).sum(axis=1), ranks)


def _cholesky(side: Matrix, lengths: Coefficients) -> Matrix | None:
    """The upper factor of the correlations of the columns; None where it would lose digits."""
    correlations = (side.T @ side) / lengths[:, None] / lengths
    norm = float(np.abs(correlations).sum(axis=0).max())
    factorize, estimate = get_lapack_funcs(("potrf", "pocon"), dtype=np.float64)
    factor, info = factorize(correlations, lower=False, clean=True)
    if info:
        return None
    reciprocal, _ = estimate(factor, norm, uplo="U")
    return factor if reciprocal * _WORST_CONDITION > 1 else None


def svd(matrix: Matrix) -> tuple[Matrix, Coefficients, Matrix]:
    """Thin singular value decomposition, largest values first; U, σ and Vᵀ."""
    return linalg.svd(matrix, full_matrices=False, check_finite=False)  # type: ignore[return-value]


def _orthonormal(side: Matrix) -> tuple[Matrix, Matrix]:
    """Orthonormal directions of the columns and their coordinates in them, those left out that are rounding."""
    lengths = np.linalg.norm(side, axis=0)
    decomposed: tuple[Matrix, Matrix, Any] = linalg.qr(side / lengths, mode="economic", pivoting=True, check_finite=False)  # type: ignore[assignment]
    basis, factor, order = decomposed
    diagonal = np.abs(np.diag(factor))
    rank = int((diagonal > _SMALLEST * diagonal[0]).sum())
    coordinates = np.empty((rank, side.shape[1]))
    coordinates[:, order] = factor[:rank]
    return basis[:, :rank], coordinates * lengths


Features = np.ndarray | Tensor
"""As they are given; ``as_rows`` says what is wrong with them."""
Rows = Float[np.ndarray, "num_samples num_features"]
RowsX = Float[np.ndarray, "num_samples num_features_x"]
RowsY = Float[np.ndarray, "num_samples num_features_y"]

_FEWEST, _FEWEST_DEBIASED = 2, 4
_USUAL = 100
"""Features below two to this power, and above its inverse, are not scaled."""
_NOTHING = 1e-15
"""A mean that is at most this times the largest feature is 0."""


class Centred(NamedTuple):
    """Features with the mean of each column taken away, divided by two to the power of ``exponent``."""

    rows: Float64[np.ndarray, "num_samples _"]
    exponent: int


def as_rows(x: Features, y: Features, measure: str = "CKA") -> tuple[RowsX, RowsY]:
    """Both on the CPU, as float32 or float64: what is shorter becomes float32, whole numbers float64.

    Args:
        x: Features.
        y: Features of the same images.
        measure: Name of the measure in messages.

    Raises:
        DataError: Not one row per image, or not the same number of rows.
    """
    rows_x, rows_y = as_array(x), as_array(y)
    if rows_x.ndim != 2 or rows_y.ndim != 2 or len(rows_x) != len(rows_y) or 0 in (rows_x.shape[1], rows_y.shape[1]):
        raise DataError(
            f"{measure} compares features of the same images, one row per image (n, d); found the shapes "
            f"{rows_x.shape} and {rows_y.shape}. Pool or flatten maps first."
        )
    return rows_x, rows_y


def as_array(features: Features) -> Float[np.ndarray, "..."]:
    """On the CPU, as float32 or float64: what is shorter becomes float32, whole numbers float64."""
    if isinstance(features, Tensor):
        tensor = features.detach().cpu()
        features = (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()
    rows = np.asarray(features)
    if rows.dtype == np.float32 or rows.dtype == np.float64:
        return rows
    return rows.astype(np.float32 if rows.dtype == np.float16 else np.float64)


def refuse_few(num_images: int, *, debiased: bool) -> None:
    """Two images have a similarity, four an unbiased estimate of it.

    Raises:
        NotApplicable: There are fewer.
    """
    fewest = _FEWEST_DEBIASED if debiased else _FEWEST
    if num_images < fewest:
        kind = "Debiased CKA" if debiased else "CKA"
        raise NotApplicable(f"{kind} needs at least {fewest} images, found {num_images}.")


def not_finite(side: str, measure: str = "CKA") -> DataError:
    """What is said of NaN and infinite values in ``x`` or ``y``."""
    return DataError(f"{measure} needs finite features; some of {side} are NaN or infinite. Look at the network they come from.")


def centred_rows(x: Features, y: Features, measure: str, *, fewest: int = 2) -> tuple[Centred, Centred]:
    """Both as float64 with the mean of each column taken away; a constant column vanishes exactly.

    Raises:
        DataError: Not one row per image, not the same number of rows, or a number is not finite.
        NotApplicable: Fewer than ``fewest`` images, or all images have the same features; the message says on which side.

    Cost: two copies of the features.
    """
    rows = as_rows(x, y, measure)
    if len(rows[0]) < fewest:
        raise NotApplicable(f"{measure} needs at least {fewest} images, found {len(rows[0])}.")
    return _centred(rows[0], "x", measure), _centred(rows[1], "y", measure)


def _centred(rows: Rows, side: str, measure: str) -> Centred:
    low, high = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise not_finite(side, measure)
    if (low == high).all():
        raise same_everywhere(side, measure)
    mean = np.where(low == high, low, rows.mean(axis=0, dtype=np.float64))
    centred = np.subtract(rows, mean, dtype=np.float64)
    reach = max(float((high - mean).max()), float((mean - low).max()))
    exponent = int(np.frexp(reach)[1])
    exponent = exponent if abs(exponent) > _USUAL else 0
    if exponent:
        np.ldexp(centred, -exponent, out=centred)  # so that squares neither overflow nor vanish
    left = centred.mean(axis=0)  # by rounding of a large mean
    if np.abs(left).max() > _NOTHING * np.ldexp(reach, -exponent):
        centred -= left
    return Centred(centred, exponent)


def same_everywhere(side: str, measure: str) -> NotApplicable:
    """What is said where nothing varies in ``x`` or ``y``."""
    return NotApplicable(f"All images have the same features in {side}, so {measure} has nothing to compare.")


def ratio(hsic: float, of_x: float, of_y: float) -> float:
    """HSIC(K, L) / √(HSIC(K, K) · HSIC(L, L)), at most 1 also after rounding.

    Raises:
        NotApplicable: A side does not vary, or too little for an unbiased estimate; the message says which.
    """
    for side, own in (("x", of_x), ("y", of_y)):
        if not own > 0:
            raise NotApplicable(
                f"All images have the same features in {side} (or the estimate of their spread is not positive), so there is "
                "nothing to align."
            )
    return min(hsic / float(np.sqrt(of_x) * np.sqrt(of_y)), 1.0)
