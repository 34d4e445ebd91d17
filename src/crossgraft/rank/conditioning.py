"""The arithmetic of ``belief``: a joint normal of general and specific standing, conditioned on observations of many kinds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from crossgraft.rank.kinds import KindModel, kind_model, score_correlation, without_outliers
from crossgraft.rank.published.tables import published_tables
from crossgraft.rank.standing import Standing

FULL = "full"
NUM_SCALES = 25
FREE_LEVEL = 1e5
"""Variance of an unknown level, in squared spreads of its observations."""
SCALE_RESULTS = 4
"""Results that the expected scale counts for, where it is foreseen what further ones will tell; fixed, not fitted."""
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


class _Read(NamedTuple):
    """One kind with what it says and its scale."""

    observed: Observed
    model: KindModel
    values: np.ndarray
    scale: float


def condition(
    prior: Standing, kinds: Sequence[Observed], *, without_group: str | None
) -> tuple[Float64[np.ndarray, " num_models"], Square, bool]:
    """Mean and covariance of the final results; in the metric's unit (True) where a full result is among the observations."""
    models = {each.kind: _model(each.kind, without_group) for each in kinds}
    full = [each for each in kinds if each.kind == FULL]
    cheap = [each for each in kinds if each.kind != FULL and len(each.places) > 1 and models[each.kind].says_something]
    read = [_read(prior, each, models[each.kind]) for each in cheap]
    if not full:
        mean, covariance = _posterior(prior, read, None)
        return mean, covariance, False
    return (*_in_metric(prior, read, full[0]), True)


def _model(kind: str, without_group: str | None) -> KindModel:
    return KindModel(1.0, 1.0, 0.0, 0) if kind == FULL else kind_model(kind, without_group)


def _read(prior: Standing, observed: Observed, model: KindModel) -> _Read:
    values = without_outliers(observed.values)
    scales, logs = _scale_likelihood(prior, observed, values, model)
    weights = np.exp(logs - logs.max())
    scale = float(np.exp(weights @ np.log(scales) / weights.sum()))
    return _Read(observed, model, values, scale)


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
    unit = model.general**2 * prior.general[np.ix_(places, places)]
    unit = unit + (model.specific**2 * prior.specific + model.noise**2 + 1e-9) * np.eye(len(places))
    logs = np.zeros(len(scales))
    for number, scale in enumerate(scales):
        v = scale**2 * unit + np.diag(observed.errors**2)
        left = values - scale * model.general * prior.mean[places]
        logs[number] = _restricted(left, v) if len(places) > 1 else 0.0
    if centre is not None:
        logs += -0.5 * (np.log(scales / centre) / width) ** 2
    return scales, logs


def _restricted(left: np.ndarray, v: Square) -> float:
    """Logarithm of the likelihood of what does not depend on the level."""
    root = np.linalg.cholesky(v)
    white, one = np.linalg.solve(root, np.stack([left, np.ones(len(left))], axis=1)).T
    inside = float(one @ one)
    fit = float(one @ white) / inside
    rest = white - fit * one
    return float(-np.log(np.diag(root)).sum() - 0.5 * np.log(inside) - 0.5 * rest @ rest)


def _in_metric(prior: Standing, read: Sequence[_Read], full: Observed) -> tuple[np.ndarray, Square]:
    """A mixture over the scale of the full results; its first two moments."""
    cut = without_outliers(full.values)
    centre, width = _expected_scale(read)
    model = KindModel(1.0, 1.0, 0.0, 0)
    scales, logs = _scale_likelihood(prior, full, cut, model, centre=centre, width=width)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    kept = weights > 1e-4
    parts = [
        (weight, *_posterior(prior, read, (_Read(full, model, cut, float(scale)))))
        for weight, scale in zip(weights[kept], scales[kept], strict=True)
    ]
    total = sum(weight for weight, _, _ in parts)
    mean = np.sum([weight * m for weight, m, _ in parts], axis=0) / total
    covariance = np.sum([w * (c + np.outer(m - mean, m - mean)) for w, m, c in parts], axis=0) / total
    mean[full.places] += full.values - cut  # how far behind a failed training is decides nothing, but is known
    return mean, covariance


def _expected_scale(read: Sequence[_Read]) -> tuple[float, float]:
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


def _posterior(prior: Standing, read: Sequence[_Read], full: _Read | None) -> tuple[np.ndarray, Square]:
    """Moments of the results given all kinds at their scales: normal scores, or level + scale · score where ``full`` is given."""
    number = len(prior.mean)
    every = [*read, *([full] if full else [])]
    states = 2 * number + 1  # general, specific, and the level of the full results
    mean = np.concatenate([prior.mean, np.zeros(number), np.array([full.values.mean() if full else 0.0])])
    covariance = np.zeros((states, states))
    covariance[:number, :number] = prior.general
    covariance[number : 2 * number, number : 2 * number] = prior.specific * np.eye(number)
    if full:
        covariance[-1, -1] = FREE_LEVEL * (full.scale**2 + float(np.var(full.values)))
    if every:
        h, y, r = _equations(every, number)
        gain = covariance @ h.T
        v = h @ gain + r
        solved = np.linalg.solve(v, gain.T)
        mean = mean + (y - h @ mean) @ solved
        covariance = covariance - gain @ solved
    scale = full.scale if full else 1.0
    out = np.concatenate(
        [scale * np.eye(number), scale * np.eye(number), np.full((number, 1), 1.0 if full else 0.0)], axis=1
    )
    result = out @ covariance @ out.T
    return out @ mean, (result + result.T) / 2


def _equations(every: Sequence[_Read], number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of all observations: what they load on, their values, the covariance of their errors with levels and noise."""
    size = sum(len(each.values) for each in every)
    h, y, r = np.zeros((size, 2 * number + 1)), np.zeros(size), np.zeros((size, size))
    starts = np.cumsum([0, *(len(each.values) for each in every)])
    for each, start in zip(every, starts, strict=False):
        rows = np.arange(start, start + len(each.values))
        h[rows, each.observed.places] = each.scale * each.model.general
        h[rows, number + each.observed.places] = each.scale * each.model.specific
        y[rows] = each.values
        if each.observed.kind == FULL:
            h[rows, -1] = 1.0
        else:
            y[rows] -= each.values.mean()
            r[np.ix_(rows, rows)] += FREE_LEVEL * (each.scale**2 + float(np.var(each.values)))
        r[rows, rows] += each.observed.errors**2 + 1e-9 * each.scale**2
        for other, begin in zip(every, starts, strict=False):
            same = each.observed.places[:, None] == other.observed.places[None]
            shared = each.scale * other.scale * _shared_noise(each, other)
            r[start : start + len(each.values), begin : begin + len(other.values)] += shared * same
    return h, y, r


def _shared_noise(first: _Read, second: _Read) -> float:
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


class Foresight:
    """What observations that are still to come will tell, whatever their values, in normal scores.

    Everything is in normal scores, full results too, so that a belief before the first of them and one after it can be compared.
    Only differences between networks mean something: a common level is not known.

    Attributes:
        mean: Expected normal score.
        covariance: Its covariance.
    """

    def __init__(self, prior: Standing, kinds: Sequence[Observed], *, without_group: str | None) -> None:
        self._prior, self._without_group = prior, without_group
        models = {each.kind: _model(each.kind, without_group) for each in kinds}
        several = [each for each in kinds if models[each.kind].says_something and len(each.places) > 1]
        read = [_read(prior, each, models[each.kind]) for each in several]
        centre, width = _expected_scale(read)
        self._scale = centre * float(np.exp(width**2 / 2))  # the mean: where results differ much, more is at stake
        self._read = [self._steadied(each) for each in read]
        alone = [each for each in kinds if models[each.kind].says_something and len(each.places) == 1]
        self._read += [_Read(each, models[each.kind], each.values, self._scale) for each in alone]
        self.mean, self.covariance = _posterior(prior, [_in_scores(each) for each in self._read], None)

    def _steadied(self, read: _Read) -> _Read:
        """With the expected scale as if it had been seen in some results: two that are alike by chance tell little of it."""
        if read.observed.family == "score":
            return read
        number = len(read.values) - 1
        logs = number * np.log(max(read.scale, 1e-12)) + SCALE_RESULTS * np.log(self._scale)
        return read._replace(scale=float(np.exp(logs / (number + SCALE_RESULTS))))

    def says_something(self, kind: str) -> bool:
        """Whether an observation of this kind changes any belief."""
        return _model(kind, self._without_group).says_something

    def covariance_after(self, kind: str, places: Sequence[int], standard_error: float | None) -> Square:
        """Covariance once networks were observed.

        Args:
            kind: Kind of the observations.
            places: Numbers of the networks.
            standard_error: Standard error of each, in the metric's unit; None counts as 0.
        """
        before = next((each for each in self._read if each.observed.kind == kind), None)
        model = _model(kind, self._without_group)
        scale = before.scale if before is not None else 1.0 if kind.startswith("score:") else self._scale
        known = (
            before.observed if before is not None else Observed(kind, np.zeros(0, dtype=np.int64), *2 * [np.zeros(0)])
        )
        more = Observed(
            kind,
            np.concatenate([known.places, np.asarray(places, dtype=np.int64)]),
            np.concatenate([known.values, np.zeros(len(places))]),
            np.concatenate([known.errors, np.full(len(places), standard_error or 0.0)]),
        )
        read = [each for each in self._read if each is not before]
        read.append(_Read(more, model, more.values, scale))
        return _posterior(self._prior, [_in_scores(each) for each in read], None)[1]


def _in_scores(read: _Read) -> _Read:
    """The same with a level of its own, also of full results."""
    return read if read.observed.kind != FULL else read._replace(observed=read.observed._replace(kind=f"{FULL}:"))
