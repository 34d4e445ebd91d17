"""Prior × evidence: the best model here, given what is known of other targets and what the scores say of this one.

One value per model and target, the normal score z of its rank (0 = middling, larger = better). Model:

    z_mt = ω_m + slope · e_mt + noise,    ω_m ~ N(0, τ²),    noise ~ N(0, σ²)

ω_m is what a model brings to every target. Known results on n other targets shrink towards it: posterior mean
n·z̄_m/(n + κ) and variance τ²·κ/(n + κ), where κ = σ²/τ². e_mt is the mean normal score of the scores, with
the jackknife error of each. κ, slope and σ are all that is fitted; κ is the variance ratio of a one-way random-effects model
(Searle, Casella and McCulloch, Variance components, 1992, sec. 3.6), the shrinkage the empirical Bayes of Efron and Morris
(1973).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy  # scipy.stats, a quarter of a second, is imported where it is asked for first
from jaxtyping import Float, Float64, Int

from crossgraft.errors import DataError
from crossgraft.seeding import generator
from crossgraft.types import History

PerModel = Float64[np.ndarray, " num_models"]


class StaticPrior(NamedTuple):
    """Mean relative rank of each model on the other targets, and on how many it is known."""

    mean_ranks: PerModel
    num_known: Int[np.ndarray, " num_models"]

    @property
    def values(self) -> PerModel:
        """Larger = better; models without history stand where a middling one does."""
        return -np.where(self.num_known > 0, self.mean_ranks, 0.5)


def relative_ranks(results: History) -> History:
    """(rank − ½)/n of each model among the n that are known on a target: from 1/(2n) = best; ties share.

    >>> relative_ranks(np.array([[0.9, np.nan, 0.7]]))
    array([[0.25,  nan, 0.75]])
    """
    num_known = np.isfinite(results).sum(axis=1, keepdims=True)
    ranks = scipy.stats.rankdata(-results, axis=1, nan_policy="omit")
    return (ranks - 0.5) / num_known


def static_prior(history: History) -> StaticPrior:
    """Mean relative rank over the targets of ``history``: a ranking that never looks at the target at hand.

    Only the columns of ``history`` are ranked against each other, so give it the models that are to be ordered.

    Args:
        history: Results on *other* targets, larger = better; leave out targets related to the one at hand.

    Raises:
        DataError: An infinite value.

    Reference:
        Singh, Hess and Vanschoren, arXiv 2510.06448: such a ranking is the baseline that scores have to beat.
    """
    if np.isinf(history).any():
        raise DataError("The history holds an infinite result.")
    known = np.isfinite(history)
    num_known = known.sum(axis=0)
    rows = history[known.any(axis=1)]
    ranks = relative_ranks(rows) if len(rows) else history
    total = np.nansum(ranks, axis=0) if len(rows) else np.zeros(history.shape[1])
    means = np.where(num_known > 0, total / np.maximum(num_known, 1), np.nan)
    return StaticPrior(means, num_known)


Scores = Float64[np.ndarray, "num_scores num_models"]
Order = Float64[np.ndarray, " num_models"]


def borda(scores: Scores) -> Order:
    """Minus the mean rank over the scores; larger = better, ties share their mean rank.

    Raises:
        DataError: No score, or a value that is not finite.

    Reference:
        Borda, Mémoire sur les élections au scrutin, 1781.
    """
    return -_ranks(scores).mean(axis=0)


def robust_rank_aggregation(scores: Scores) -> Order:
    """Minus the logarithm of the ρ score: whether a model is near the top of several lists more often than by chance.

    With r the relative ranks of one model in K lists, sorted: ρ = min(1, K · min_k P(U₍k₎ ≤ r₍k₎)), where the k-th of K
    uniform numbers is Beta(k, K − k + 1). Models with ρ = 1 are ordered by their mean rank below all others.

    Raises:
        DataError: No score, or a value that is not finite.

    Reference:
        Kolde et al., Robust rank aggregation for gene list integration and meta-analysis, Bioinformatics 2012, eq. 1–3.
    """
    ranks = _ranks(scores)
    num_scores, num_models = ranks.shape
    r = np.sort(ranks / num_models, axis=0)
    k = np.arange(1, num_scores + 1)[:, None]
    rho = np.minimum(1, num_scores * scipy.stats.beta.cdf(r, k, num_scores - k + 1).min(axis=0))
    return -np.log(rho) - 1e-9 * ranks.mean(axis=0)


def _ranks(scores: Scores) -> Scores:
    if len(scores) == 0:
        raise DataError("A consensus needs at least one score.")
    if not np.isfinite(scores).all():
        raise DataError("A consensus needs a finite value of every score; leave out models or scores without one.")
    return scipy.stats.rankdata(-scores, axis=1)


NUM_DRAWS = 4000
DEFAULT_NOISE = 0.7
"""σ where no two targets are known: ranks then say little."""

GroupMeans = Float64[np.ndarray, "num_groups num_models"]


class Evidence(NamedTuple):
    """One score on the target at hand; larger = better.

    Attributes:
        values: NaN where a model has none.
        standard_errors: Standard errors from the jackknife, in the unit of the score; None = unknown, taken as 0.
    """

    values: Float[np.ndarray, " num_models"]
    standard_errors: Float[np.ndarray, " num_models"] | None = None


class Parameters(NamedTuple):
    """Everything that is fitted."""

    shrinkage: float
    """κ: the history of n targets counts n/(n + κ)."""
    slope: float
    """What one standard deviation of evidence adds; 0 = the scores say nothing beyond the prior."""
    noise: float
    """σ: standard deviation of what neither prior nor evidence explains."""


class Aggregation(NamedTuple):
    """Posterior over the ranks of the models on one target."""

    mean: PerModel
    standard_deviation: PerModel
    probability_best: PerModel
    rank_probabilities: Float64[np.ndarray, "num_models num_models"]
    """Row = model, column = rank from 1 = best."""
    num_known: Int[np.ndarray, " num_models"]
    parameters: Parameters


def normal_scores(values: History) -> History:
    """Φ⁻¹(1 − relative rank) on each target: 0 = middling, larger = better; NaN stays."""
    return scipy.stats.norm.ppf(1 - relative_ranks(values))


def combine_evidence(evidence: Sequence[Evidence], num_models: int) -> tuple[PerModel, PerModel]:
    """Mean normal score of several scores, and its error variance, both in units of one target's spread.

    The error of a score is its jackknife error divided by the standard deviation of the score over the models. Scores that are
    constant say nothing and are left out; a model without any score has evidence 0 with infinite error.

    Raises:
        DataError: A score has another number of models, an infinite value or a negative error.
    """
    total, error, count = np.zeros(num_models), np.zeros(num_models), np.zeros(num_models)
    for values, standard_errors in evidence:
        errors = np.zeros(num_models) if standard_errors is None else np.nan_to_num(standard_errors)
        if values.shape != (num_models,) or errors.shape != (num_models,):
            raise DataError(f"Evidence needs one value and one error for each of {num_models} models.")
        if np.isinf(values).any() or (errors < 0).any():
            raise DataError("Evidence holds an infinite value or a negative error.")
        known = np.isfinite(values)
        if known.sum() < 2 or np.ptp(values[known]) == 0:
            continue
        total[known] += normal_scores(values[None])[0, known]
        error[known] += (errors[known] / values[known].std()) ** 2
        count[known] += 1
    some = count > 0
    number = np.maximum(count, 1)
    return np.where(some, total / number, 0.0), np.where(some, error / number**2, np.inf)


def fit_parameters(results: History, evidence: History, groups: Sequence[str]) -> Parameters:
    """κ, slope and σ from targets whose results are known.

    The slope is the regression of what the prior leaves (each target against the prior of the other groups) on the evidence,
    shrunk by its own uncertainty: slope · max(0, 1 − SE²/slope²), SE from leaving groups out. So evidence that only by chance
    goes with the results counts nothing.

    Args:
        results: Known results, targets × models, larger = better, NaN = unknown.
        evidence: Combined evidence on the same targets; NaN = none.
        groups: One per target; related targets share one and count once.
    """
    z = normal_scores(results)
    means = _group_means(z, groups)
    if len(means) < 2:
        return Parameters(shrinkage=1.0, slope=0.0, noise=DEFAULT_NOISE)
    shrinkage = _shrinkage(means)
    names = np.asarray(groups)
    residuals = np.full_like(z, np.nan)
    for group in dict.fromkeys(groups):
        prior, _ = _history_mean(_group_means(z[names != group], names[names != group].tolist()), shrinkage)
        residuals[names == group] = z[names == group] - prior
    slope = _slope(residuals, evidence, names)
    left = residuals - slope * np.nan_to_num(evidence)
    return Parameters(shrinkage, slope, float(np.sqrt(np.nanmean(left**2))))


def aggregate(
    history: History,
    evidence: Sequence[Evidence] = (),
    *,
    parameters: Parameters,
    groups: Sequence[str] | None = None,
    seed: int = 0,
) -> Aggregation:
    """Posterior over the ranks of models on a new target.

    The noise was fitted against priors that were uncertain themselves, and the uncertainty of the history is added once
    more, so the probabilities err to the side of caution.

    Args:
        history: Results on other targets, larger = better, NaN = unknown; may have no rows.
        evidence: Scores on the target at hand.
        parameters: Parameters from ``fit_parameters`` on other targets.
        groups: One per row of ``history``; rows of one group count as one target.
        seed: Random seed of the draws behind the probabilities.

    Raises:
        DataError: Shapes do not fit.
    """
    num_models = history.shape[1]
    means = _group_means(normal_scores(_ranked(history)), _kept_groups(history, groups))
    prior, num_known = _history_mean(means, parameters.shrinkage)
    signal, error = combine_evidence(evidence, num_models)
    reliability = 1 / (1 + error)  # of evidence with unit variance and this error variance
    mean = prior + parameters.slope * reliability * signal
    between = parameters.noise**2 / max(parameters.shrinkage, 1e-9)
    history_variance = min(between, 1.0) * parameters.shrinkage / (num_known + parameters.shrinkage)
    evidence_variance = parameters.slope**2 * (1 - reliability)
    deviation = np.sqrt(parameters.noise**2 + history_variance + evidence_variance)
    probabilities = _rank_probabilities(mean, deviation, seed)
    return Aggregation(mean, deviation, probabilities[:, 0], probabilities, num_known, parameters)


def _ranked(history: History) -> GroupMeans:
    """Targets on which an order is known."""
    return history[np.isfinite(history).sum(axis=1) > 1]


def _kept_groups(history: History, groups: Sequence[str] | None) -> list[str]:
    names = [str(row) for row in range(len(history))] if groups is None else list(groups)
    if len(names) != len(history):
        raise DataError(f"There are {len(names)} groups for {len(history)} targets.")
    return [name for name, row in zip(names, history, strict=True) if np.isfinite(row).sum() > 1]


def _group_means(z: History, groups: Sequence[str]) -> GroupMeans:
    """One row per group: the mean over its targets, so that related targets count once."""
    names = np.asarray(groups)
    rows = [z[names == group] for group in dict.fromkeys(groups)]
    if not rows:
        return np.empty((0, z.shape[1]))
    counts = np.array([np.isfinite(row).sum(axis=0) for row in rows])
    sums = np.array([np.nansum(row, axis=0) for row in rows])
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def _history_mean(means: GroupMeans, shrinkage: float) -> tuple[PerModel, Int[np.ndarray, " num_models"]]:
    """Shrunk mean of each model, and on how many groups of targets it is known."""
    num_known = np.isfinite(means).sum(axis=0)
    return np.nansum(means, axis=0) / (num_known + shrinkage), num_known


def _shrinkage(means: GroupMeans) -> float:
    """κ = σ²/τ² by the analysis of variance of models × targets, unbalanced; large when models do not differ."""
    counts = np.isfinite(means).sum(axis=0)
    kept = means[:, counts > 0]
    counts = counts[counts > 0]
    total, num_models = counts.sum(), len(counts)
    if total <= num_models or num_models < 2:
        return 1.0
    of_models = np.nanmean(kept, axis=0)
    within = np.nansum((kept - of_models) ** 2) / (total - num_models)
    grand = np.nansum(kept) / total
    between = np.sum(counts * (of_models - grand) ** 2) / (num_models - 1)
    per_model = (total - np.sum(counts**2) / total) / (num_models - 1)
    variance = (between - within) / per_model
    largest = 10.0 * len(means)
    return float(np.clip(within / variance if variance > 0 else largest, 0.05, largest))


def _slope(residuals: History, evidence: History, groups: np.ndarray) -> float:
    both = np.isfinite(residuals) & np.isfinite(evidence)
    products = np.where(both, np.nan_to_num(residuals) * np.nan_to_num(evidence), 0.0).sum(axis=1)
    squares = np.where(both, np.nan_to_num(evidence) ** 2, 0.0).sum(axis=1)
    names = list(dict.fromkeys(groups[squares > 0].tolist()))
    if len(names) < 3:
        return 0.0
    slope = float(products.sum() / squares.sum())
    without = np.array([products[groups != name].sum() / squares[groups != name].sum() for name in names])
    variance = (len(names) - 1) / len(names) * np.sum((without - without.mean()) ** 2)
    return slope * max(0.0, 1.0 - float(variance) / slope**2) if slope else 0.0


def _rank_probabilities(mean: PerModel, deviation: PerModel, seed: int) -> Float64[np.ndarray, "num_models num_models"]:
    draws = mean + deviation * generator(seed, "rank probabilities").normal(size=(NUM_DRAWS, len(mean)))
    ranks, number = np.argsort(np.argsort(-draws, axis=1), axis=1), len(mean)
    places = ranks + number * np.arange(number)  # one for each model and rank
    return np.bincount(places.ravel(), minlength=number**2).reshape(number, number) / NUM_DRAWS
