"""The arithmetic of ``belief``: a joint normal of general and specific standing, conditioned on observations of many kinds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy import linalg, special

from crossgraft.rank.kinds import KindModel, kind_model, score_correlation, without_outliers
from crossgraft.rank.published.tables import published_tables
from crossgraft.rank.standing import Standing

FULL = "full"
NUM_SCALES = 25
FREE_LEVEL = 1e5
"""Variance of an unknown level, in squared spreads of its observations."""
WIDEST = 6.0
"""Scales are tried from a sixth of that of the observations to six times it."""
ROUNDING = 1e-12
"""Observations whose spread is a smaller share of them are equal."""
Square = Float64[np.ndarray, "num_states num_states"]


class Observed(NamedTuple):
    """All observations of one kind."""

    kind: str
    places: Int[np.ndarray, " num_observed"]
    values: Float64[np.ndarray, " num_observed"]
    errors: Float64[np.ndarray, " num_observed"]

    @property
    def family(self) -> str:
        """``score``, ``low``, ``curve`` or ``full``."""
        return self.kind.partition(":")[0]


class Read(NamedTuple):
    """One kind with what it says and its scale."""

    observed: Observed
    model: KindModel
    values: np.ndarray
    scale: float


class Conditioned(NamedTuple):
    """The results given observations.

    Attributes:
        mean: Expected results.
        covariance: Their covariance.
        in_metric: Whether they are in the metric's unit: where a full result is among the observations.
        log_evidence: Logarithm of the likelihood of the observations, up to what does not depend on the prior.
    """

    mean: Float64[np.ndarray, " num_models"]
    covariance: Square
    in_metric: bool
    log_evidence: float


def condition(
    prior: Standing, kinds: Sequence[Observed], *, without_group: str | None, metric: str | None = None
) -> Conditioned:
    """The results given all kinds, with the factor of the target as in ``prior``."""
    models = {each.kind: what_it_says(each.kind, without_group, metric) for each in kinds}
    full = [each for each in kinds if each.kind == FULL]
    cheap = [each for each in kinds if each.kind != FULL and len(each.places) > 1 and models[each.kind].says_something]
    read = [read_kind(prior, each, models[each.kind]) for each in cheap]
    evidence = _log_evidence(prior, read)
    if not full:
        return Conditioned(*posterior(prior, read, None), False, evidence)
    mean, covariance, of_full = _in_metric(prior, read, full[0])
    return Conditioned(mean, covariance, True, evidence + of_full)


def what_it_says(kind: str, without_group: str | None, metric: str | None) -> KindModel:
    """What one kind says, a whole fine-tuning among them."""
    return KindModel(1.0, 1.0, 0.0, 0) if kind == FULL else kind_model(kind, without_group, metric)


def read_kind(prior: Standing, observed: Observed, model: KindModel) -> Read:
    """A kind with its scale, the mean under its restricted likelihood."""
    values = without_outliers(observed.values)
    scales, logs = _scale_likelihood(prior, observed, values, model)
    weights = np.exp(logs - logs.max())
    scale = float(np.exp(weights @ np.log(scales) / weights.sum()))
    return Read(observed, model, values, scale)


def _scale_likelihood(
    prior: Standing,
    observed: Observed,
    values: np.ndarray,
    model: KindModel,
    *,
    centre: float | None = None,
    width: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """Scales, and the logarithm of the restricted likelihood of each (level integrated out) times its prior."""
    spread = float(values.std()) if len(values) > 1 else 0.0
    is_rounding = spread <= ROUNDING * float(np.abs(values).max())  # equal values have a spread of 1e-16
    middle = (0.0 if is_rounding else spread) or centre or 1.0
    factors = np.linspace(-np.log(WIDEST), np.log(WIDEST), NUM_SCALES)
    scales = middle * np.exp(factors)
    places = observed.places
    block = np.ix_(places, places)
    unit = model.general**2 * prior.general[block] + model.specific**2 * model.repeatable * prior.specific[block]
    unit = unit + (model.noise**2 + 1e-9) * np.eye(len(places))
    logs = np.zeros(len(scales))
    if len(places) > 1:
        logs = _restricted(values, model.general * prior.mean[places], unit, observed.errors, scales)
    if centre is not None:
        logs += -0.5 * (np.log(scales / centre) / width) ** 2
    return scales, logs


def _restricted(
    values: np.ndarray, mean: np.ndarray, unit: Square, errors: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """Logarithm of the likelihood of what does not depend on the level, for each scale s.

    The covariance V = s² U + D, D of the errors, is diagonal for every s in the coordinates X with XᵀUX = I and XᵀDX = diag(d).
    """
    d, x = linalg.eigh(np.diag(errors**2), unit)
    variances = scales[:, None] ** 2 + np.maximum(d, 0.0)
    residual, one = values @ x - scales[:, None] * (mean @ x), x.sum(axis=0)
    inside = (one**2 / variances).sum(axis=1)
    level = (one * residual / variances).sum(axis=1) / inside
    rest = ((residual - level[:, None] * one) ** 2 / variances).sum(axis=1)
    return -0.5 * (np.log(variances).sum(axis=1) + np.linalg.slogdet(unit)[1] + np.log(inside) + rest)


def _log_evidence(prior: Standing, read: Sequence[Read]) -> float:
    """Evidence of cheap kinds together, at their scales; what the free levels add to the determinant is taken out."""
    if not read:
        return 0.0
    _, v, surprise = joint(prior, read)
    root = np.linalg.cholesky(v)
    white = linalg.solve_triangular(root, surprise, lower=True)
    levels = sum(np.log(_level_variance(each)) for each in read)
    return float(-np.log(np.diag(root)).sum() - 0.5 * white @ white + 0.5 * levels)


def _level_variance(read: Read) -> float:
    return FREE_LEVEL * (read.scale**2 + float(np.var(read.values)))


def _in_metric(prior: Standing, read: Sequence[Read], full: Observed) -> tuple[np.ndarray, Square, float]:
    """A mixture over the scale of the full results: its first two moments, and the logarithm of its likelihood."""
    cut = without_outliers(full.values)
    centre, width = expected_scale(read)
    model = KindModel(1.0, 1.0, 0.0, 0)
    scales, logs = _scale_likelihood(prior, full, cut, model, centre=centre, width=width)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    kept = weights > 1e-4
    parts = [
        (weight, *posterior(prior, read, (Read(full, model, cut, float(scale)))))
        for weight, scale in zip(weights[kept], scales[kept], strict=True)
    ]
    total = sum(weight for weight, _, _ in parts)
    mean = np.sum([weight * m for weight, m, _ in parts], axis=0) / total
    covariance = np.sum([w * (c + np.outer(m - mean, m - mean)) for w, m, c in parts], axis=0) / total
    mean[full.places] += full.values - cut  # how far behind a failed training is decides nothing, but is known
    return mean, covariance, float(special.logsumexp(logs))


def expected_scale(read: Sequence[Read]) -> tuple[float, float]:
    """Spread of full results before they speak for themselves: that of cheaper trainings, else of the published tables."""
    trained = [each for each in read if each.observed.family in ("low", "curve") and len(each.values) > 2]
    centre, width = _published_scale()
    if trained:
        return max(trained, key=lambda each: each.model.specific).scale, 0.5
    return centre, width


@cache
def _published_scale() -> tuple[float, float]:
    """Typical standard deviation of results (as a fraction) over the networks of a target, and that of its logarithm."""
    rows = [np.log(np.nanstd(without_outliers(row))) for table in published_tables() for row in table.results]
    return float(np.exp(np.median(rows))), float(np.std(rows))


def posterior(prior: Standing, read: Sequence[Read], full: Read | None) -> tuple[np.ndarray, Square]:
    """Moments of the results given all kinds at their scales: normal scores, or level + scale · score where ``full`` is given."""
    every = [*read, *([full] if full else [])]
    scale = full.scale if full else 1.0
    level = FREE_LEVEL * (full.scale**2 + float(np.var(full.values))) if full else 0.0
    mean = scale * prior.mean + (full.values.mean() if full else 0.0)
    covariance = scale**2 * (prior.general + prior.specific) + level
    if every:
        cross, v, surprise = joint(prior, every)
        cross = scale * cross
        if full:
            cross[:, -len(full.values) :] += level
        solved = np.linalg.solve(v, cross.T)
        mean, covariance = mean + surprise @ solved, covariance - cross @ solved
    return mean, (covariance + covariance.T) / 2


def joint(prior: Standing, every: Sequence[Read]) -> tuple[np.ndarray, Square, np.ndarray]:
    """Covariance of normal scores with all observations; that of the observations, with levels and errors; their surprise."""
    places = np.concatenate([each.observed.places for each in every])
    kind = np.repeat(np.arange(len(every)), [len(each.values) for each in every])
    general = np.array([each.scale * each.model.general for each in every])[kind]
    specific = np.array([each.scale * each.model.specific for each in every])[kind]
    same = places[:, None] == places[None]
    free = {each.observed.kind: _level_variance(each) for each in reversed(every)}
    level = np.array([[free[a.observed.kind] * (a.observed.kind == b.observed.kind) for b in every] for a in every])
    noise = np.array([[a.scale * b.scale * _shared_noise(a, b) for b in every] for a in every])
    errors = np.concatenate([each.observed.errors**2 + 1e-9 * each.scale**2 for each in every])
    repeated = np.array([each.model.repeatable for each in every])[kind]
    shared = np.minimum(repeated[:, None], repeated)
    block = np.ix_(places, places)
    v = (
        np.outer(general, general) * prior.general[block]
        + np.outer(specific, specific) * shared * prior.specific[block]
    )
    v += same * noise[np.ix_(kind, kind)] + level[np.ix_(kind, kind)] + np.diag(errors)
    cross = general * prior.general[:, places] + specific * repeated * prior.specific[:, places]
    surprise = np.concatenate([each.values - each.values.mean() for each in every]) - general * prior.mean[places]
    return cross, v, surprise


def _shared_noise(first: Read, second: Read) -> float:
    """Covariance of what two kinds of one network leave unexplained, in units of their scales."""
    if first.observed.kind == second.observed.kind:
        return first.model.noise**2
    family = first.observed.family
    if family != second.observed.family:
        return 0.0
    if family == "score":
        return score_correlation() * first.model.noise * second.model.noise
    slopes = first.model.specific, second.model.specific
    if min(slopes) <= 0:
        return 0.0
    closest = min(each.model.noise / slope for each, slope in zip((first, second), slopes, strict=True))
    return slopes[0] * slopes[1] * closest**2
