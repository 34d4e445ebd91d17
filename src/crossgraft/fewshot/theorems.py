"""Both sides of the theorems of CoPA, as numbers.

Source: Tian, Liu, Zhou, Liu, Zhang and Han, Mind the Gap Between Prototypes and Images in Cross-domain Finetuning, NeurIPS 2024.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossgraft.types import Features

Rows = np.ndarray


class Bounds(NamedTuple):
    """``lower ≤ value ≤ upper``, where the theorem has an upper bound."""

    lower: float
    value: float
    upper: float | None = None

    @property
    def holds(self) -> bool:
        """Whether the value is between the bounds, up to rounding."""
        slack = 1e-9 * max(1.0, abs(self.value))
        return self.lower <= self.value + slack and (self.upper is None or self.value <= self.upper + slack)


def theorem_3_1(instances: Features, classes: np.ndarray, *, share: float = 1.0) -> Bounds:
    """The NCC loss of unit vectors, cosines not scaled, is at least −mean zᵢ·c + (α/n) Σᵢ Σ_z′ zᵢ·z′.

    It follows from Jensen's inequality where the cosines that α leaves out sum to no less than −log N_C; with opposed features of
    unbalanced classes it need not hold, which is why both sides are given.

    Args:
        instances: (n, d) what a head makes of images; divided by their lengths here.
        classes: (n,) class of each, from 0.
        share: α as a share of its limit, 1 / (N_C · size of the largest class), in [0, 1].
    """
    unit, counts = _unit(instances), np.bincount(classes)
    means = _means(unit, classes)
    logits = unit @ means.T
    own = logits[np.arange(len(unit)), classes]
    alpha = share / (len(counts) * counts.max())
    total = unit.sum(axis=0)
    loss = float((_log_sum_exp(logits) - own).mean())
    return Bounds(float(-own.mean() + alpha * (total @ total) / len(unit)), loss)


def theorem_3_2(features: Features, classes: np.ndarray, weights: Features) -> Bounds:
    """The squared gap behind a shared map Θ lies between m and M times ‖Θ‖²_F ‖Δ‖², not normalised, prototypes counted once.

    m and M are the smallest and the largest cos²(Δ, column of Θ).

    Args:
        features: (n, d) as they come.
        classes: (n,) class of each, from 0.
        weights: (d_out, d) W = Θᵀ, applied as X Wᵀ.
    """
    gap = features.mean(axis=0) - _means(features, classes).mean(axis=0)
    lengths = np.linalg.norm(weights, axis=1)
    squared = float(gap @ gap)
    along = (weights @ gap) ** 2
    cosines = along / np.maximum(lengths**2 * squared, np.finfo(np.float64).tiny)
    scale = float((weights**2).sum()) * squared
    return Bounds(float(cosines.min()) * scale, float(along.sum()), float(cosines.max()) * scale)


def theorem_5_1(instances: Features, prototypes: Features, classes: np.ndarray) -> Bounds:
    """The symmetric loss of unit vectors, cosines not scaled, is at least −(2/n) Σ zᵢ·cᵢ + (2/n) Σᵢ Σ_k (n_k/n) zᵢ·c_k.

    Args:
        instances: (n, d) what a head makes of images; divided by their lengths here.
        prototypes: (C, d) what it makes of prototypes; the same.
        classes: (n,) class of each, from 0.
    """
    images, centres, counts = _unit(instances), _unit(prototypes), np.bincount(classes)
    cosines = images @ centres.T
    own = cosines[np.arange(len(images)), classes].mean()
    pulled = float((cosines @ (counts / counts.sum())).mean())
    return Bounds(float(2 * (pulled - own)), symmetric_cross_entropy(cosines, classes))


def symmetric_cross_entropy(cosines: Features, classes: np.ndarray, *, scale: float = 1.0) -> float:
    """Equation 4, the sum of both directions over expanded prototypes, from (n, C) cosines.

    A prototype stands in n_c rows and columns of the n × n matrix.
    """
    similarities, counts = scale * cosines, np.bincount(classes)
    own = similarities[np.arange(len(similarities)), classes]
    of_rows = _log_sum_exp(similarities + np.log(counts)) - own
    of_columns = _log_sum_exp(similarities.T)[classes] - own
    return float(of_rows.mean() + of_columns.mean())


def _unit(rows: Rows) -> Rows:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _means(rows: Rows, classes: np.ndarray) -> Rows:
    return np.stack([rows[classes == number].mean(axis=0) for number in range(classes.max() + 1)])


def _log_sum_exp(rows: Rows) -> Rows:
    most = rows.max(axis=1)
    return most + np.log(np.exp(rows - most[:, None]).sum(axis=1))
