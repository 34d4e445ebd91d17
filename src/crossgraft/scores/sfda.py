"""SFDA: how well a shrunk Fisher discriminant separates the classes after they were moved towards each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossgraft.scores._lda import WithinClass, posterior_of, shrinkage_of, with_enough_digits
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.types import Features, Labels

SATURATED = 1e-9
"""Share of the posterior off the true class below which models can no longer be told apart."""
_BLOCK_ROWS = 256


@score(
    title="SFDA",
    reference="Shao, Zhao, Ge, Zhang, Yang, Wang, Shan and Luo, Not All Models Are Equal: Predicting Model "
    "Transferability in a Self-challenging Fisher Space, ECCV 2022, eqs. 3–8",
    invariances=("shift",),
    cost="two Gram matrices and two Cholesky factorisations of size min(n, d), then O(n·d·C)",
)
def sfda(features: Features, labels: Labels, *, statistics: Statistics = SHARED) -> ScoreValue:
    """Mean posterior of the true class under a shrunk linear discriminant, after self-challenging noise.

    Stage 1: A = (1−s) S_w + s tr(S_w)/d I with s = exp(−5λ), λ the leading eigenvalue of S_w; P = softmax_c of
    x A⁻¹ μ_c − ½ μ_c A⁻¹ μ_c + ln p_c. Self-challenge: x'_i = q_i x_i + (1−q_i) o_y, with q_i = softmax(P_i)_y (the
    softmax of the probabilities, as published) and o_y the mean of the *other* class means. Stage 2: the same
    discriminant on x', with the same s; the score is mean_i P'(y_i | x'_i).

    Args:
        features: (n, d); never written to.
        labels: (n,).
        statistics: Shared statistics of the same features and labels.

    Returns:
        In (0, 1]; higher is better. Saturates at 1 for well separated classes: ``parts["miss"]`` is 1 − score without
        cancellation, and a warning says when it is below 1e-9. Depends on the scale of the features through s, and a
        little on their axes: λ is three double steps of power iteration from the row sums of S_w, as published.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> round(sfda(features=X, labels=y), 3)
        1.0
    """
    stages = with_enough_digits(_stages, statistics)
    rows = np.arange(statistics.num_samples)
    hit = float(stages.second[rows, statistics.targets].mean())
    stages.second[rows, statistics.targets] = 0
    miss = float(stages.second.sum(axis=1).mean())
    warnings = list(statistics.warnings)
    if miss < SATURATED:
        warnings.append("The score is saturated at 1: differences to other saturated models are rounding.")
    parts = {"miss": miss, "shrinkage": stages.shrinkage, "first_stage": stages.first[rows, statistics.targets].mean()}
    return ScoreValue(hit, parts=parts, warnings=warnings)


class _Stages(NamedTuple):
    """The shrinkage s, and the posterior of each stage."""

    shrinkage: float
    first: np.ndarray
    second: np.ndarray


def _stages(statistics: Statistics) -> _Stages:
    within = WithinClass.of(statistics)
    shrinkage = shrinkage_of(within)
    posterior = posterior_of(within.log_joint(shrinkage))
    confidence = posterior_of(posterior)[np.arange(statistics.num_samples), statistics.targets]  # q
    challenged = WithinClass(_self_challenge(within, confidence), statistics)
    return _Stages(shrinkage, posterior, posterior_of(challenged.log_joint(shrinkage)))


def _self_challenge(within: WithinClass, confidence: np.ndarray) -> np.ndarray:
    """Each image moved towards the mean of the other class means, the further the less it is recognised."""
    num_classes = len(within.means)
    dtype = within.offsets.dtype
    others = ((within.means.sum(axis=0) - within.means) / (num_classes - 1)).astype(dtype)
    share = confidence[:, None].astype(dtype)
    moved = np.empty_like(within.offsets)
    for start in range(0, len(moved), _BLOCK_ROWS):
        rows = slice(start, start + _BLOCK_ROWS)
        pull = others[within.targets[rows]]
        pull *= 1 - share[rows]
        np.multiply(share[rows], within.offsets[rows], out=moved[rows])
        moved[rows] += pull
    return moved
