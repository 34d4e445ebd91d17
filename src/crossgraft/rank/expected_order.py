"""The order in which models are tried on a target that nothing has looked at yet, from what is known of them elsewhere.

Values are normal scores of ranks. Where a model has results on other data of the user's own, its value is that of its mean
relative rank there, the static prior. Else it is

    f_m = b·x_m + k ρ/(1 + (k − 1) ρ) · r̄_m                                               (1)

with x the ImageNet top-1, (top-1 − 80)/5, and r̄ the mean over the k publications with exactly these weights of what each says
beyond b·x: the mean normal score of a network over the targets of a table (publication, protocol and metric), related targets
counted once. b is the slope within tables, ρ the correlation between publications of what they say beyond it of the same weights;
the factor is the reliability of a mean of k (Spearman 1910, Brown 1910): publications that do not agree count for nothing. The
target at hand and its relatives are unknown everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float64, Int

from crossgraft.errors import DataError
from crossgraft.rank.aggregate import PerModel, normal_scores, static_prior
from crossgraft.rank.model_history import group_of_target
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import full_name, names_of, one_metric, published_results, targets_of

LEAST_SHARED = 10
"""Weights that pairs of publications have in common at least; below, ρ is not known and taken as 0."""
TOP1_CENTRE_PERCENT, TOP1_UNIT_PERCENT = 80.0, 5.0

Means = Mapping[str, float]
"""Weights → mean normal score."""


class ColdStart(NamedTuple):
    """What publications and ImageNet say of any weights.

    Attributes:
        slope: b, normal scores per five points of top-1; ≥ 0.
        agreement: ρ in [0, 1].
        beyond: Publication → what it says of each of its weights beyond b·x.
    """

    slope: float
    agreement: float
    beyond: Mapping[str, Means]

    def values(self, weights: Sequence[str]) -> PerModel:
        """Eq. 1; a network without ImageNet result counts as the mean of the others at hand."""
        top1 = standard_top1(weights)
        neutral = float(np.nanmean(top1)) if np.isfinite(top1).any() else 0.0
        values = self.slope * np.where(np.isnan(top1), neutral, top1)
        for place, name in enumerate(weights):
            beyond_top1 = [of_publication[name] for of_publication in self.beyond.values() if name in of_publication]
            if beyond_top1:
                reliability = len(beyond_top1) * self.agreement / (1 + (len(beyond_top1) - 1) * self.agreement)
                values[place] += reliability * float(np.mean(beyond_top1))
        return values


class ExpectedOrder(NamedTuple):
    """What is expected of models on a target.

    Attributes:
        values: Normal scores; larger = better, 0 = middling.
        num_own: Own targets on which each is known.
        spoke: Who has results of exactly these weights: commands for own ones, then publications.
    """

    values: PerModel
    num_own: Int[np.ndarray, " num_models"]
    spoke: tuple[tuple[str, ...], ...]


def expected_order(
    models: Sequence[str],
    *,
    own: Sequence[KnownResult] = (),
    target: str | None = None,
    group: str | None = None,
    metric: str | None = None,
    without: Sequence[str] = (),
) -> ExpectedOrder:
    """What is expected of ``models`` on a target.

    Args:
        models: Names of timm, torchvision or the hub.
        own: The user's own results on any data.
        target: Name of the data; results on it, or on related data, are left out.
        group: Group of related targets among ``own`` that it belongs to.
        metric: Where a publication has several metrics, the one that counts.
        without: Publications (``KnownResult.origin``) that are left out.

    Raises:
        DataError: No model, or two of one name.

    Cost: about a second the first time; the published tables are read once.
    """
    if not models or len(set(models)) != len(models):
        raise DataError("An order needs at least one model, and each name once.")
    weights = [full_name(model) for model in models]
    shipped = {row.key: row for row in published_results() if row.origin not in without}
    mine = [row for row in own if shipped.get(row.key) != row]
    related = related_targets(target, group, mine)
    mine = [row for row in mine if not related & {row.target, row.target_group}]
    cold = cold_start(metric, related & _published_groups(), tuple(without))
    history, who = _own_history(weights, mine)
    prior = static_prior(history)
    own_values = scipy.stats.norm.ppf(1 - np.where(prior.num_known > 0, prior.mean_ranks, 0.5))
    values = np.where(prior.num_known > 0, own_values, cold.values(weights))
    published = [tuple(name for name, beyond in cold.beyond.items() if each in beyond) for each in weights]
    return ExpectedOrder(values, prior.num_known, tuple((*a, *b) for a, b in zip(who, published, strict=True)))


def related_targets(target: str | None, group: str | None, own: Sequence[KnownResult]) -> frozenset[str]:
    """Names of targets, and of groups, that tell of a target: itself and its relatives, own and published."""
    if target is None:
        return frozenset()
    of_target = {row.target: row for row in own}
    own_group = group or group_of_target(target, targets_of(of_target.values()))
    relatives = {target, *(name for name, row in of_target.items() if own_group in (name, row.target_group))}
    targets = targets_of(_published_targets())
    published = {group_of_target(name, targets) for name in relatives}
    return frozenset(name for name in (*relatives, own_group, *published) if name is not None)


@cache
def _published_targets() -> tuple[KnownResult, ...]:
    """One published result of each target."""
    return tuple({row.target: row for row in published_results()}.values())


@cache
def _published_groups() -> frozenset[str]:
    return frozenset(row.target_group or row.target for row in _published_targets())


@cache
def cold_start(metric: str | None, without_groups: frozenset[str], without: tuple[str, ...]) -> ColdStart:
    """Slope and agreement from the shipped tables without some groups of targets and without some publications."""
    means: dict[str, list[Means]] = {}
    for origin, of_network in _published_scores(metric):
        kept = {
            name: [value for group, value in of_group.items() if group not in without_groups]
            for name, of_group in of_network.items()
        }
        if origin not in without:
            table = {name: sum(values) / len(values) for name, values in kept.items() if values}
            means.setdefault(publication_of(origin), []).append(table)
    slope = _slope([table for of_publication in means.values() for table in of_publication])
    beyond = {publication: _beyond(of_publication, slope) for publication, of_publication in means.items()}
    return ColdStart(slope, _agreement(beyond), beyond)


@cache
def _published_scores(metric: str | None) -> list[tuple[str, Mapping[str, Means]]]:
    """Origin of each published table with the mean normal score of every network in every group of targets."""
    tables: dict[tuple[str, str], list[KnownResult]] = {}
    for row in one_metric(published_results(), metric):
        tables.setdefault((row.origin, row.protocol), []).append(row)
    return [(origin, _mean_scores(rows)) for (origin, _), rows in tables.items()]


def publication_of(origin: str) -> str:
    """A publication without its table.

    >>> publication_of("thesis, Table 6.5")
    'thesis'
    """
    return origin.partition(",")[0]


def imagenet_top1(weights: Sequence[str]) -> PerModel:
    """ImageNet top-1 in percent, as timm or torchvision publish it; NaN where they do not."""
    results = [imagenet_results().get(name) for name in weights]
    return np.array([np.nan if each is None else each.top1_percent for each in results])


def standard_top1(weights: Sequence[str]) -> PerModel:
    """X of eq. 1; NaN where there is none."""
    return (imagenet_top1(weights) - TOP1_CENTRE_PERCENT) / TOP1_UNIT_PERCENT


def _own_history(
    weights: Sequence[str], rows: Sequence[KnownResult]
) -> tuple[Float64[np.ndarray, "num_known_targets num_models"], list[tuple[str, ...]]]:
    """Own results, one row per target, protocol and metric with at least two of the models, and who measured each model."""
    names = names_of(rows)
    columns: dict[str, list[int]] = {}
    for place, name in enumerate(weights):
        columns.setdefault(name, []).append(place)
    table: dict[tuple[str, str, str], np.ndarray] = {}
    who: list[dict[str, None]] = [{} for _ in weights]
    for row in rows:
        for place in columns.get(names[row.key], ()):
            key = (row.target_fingerprint or row.target, row.protocol, row.metric)
            table.setdefault(key, np.full(len(weights), np.nan))[place] = row.value
            who[place][row.origin] = None
    several = [values for values in table.values() if np.isfinite(values).sum() > 1]
    return np.array(several).reshape(len(several), len(weights)), [tuple(each) for each in who]


def _mean_scores(rows: Sequence[KnownResult]) -> dict[str, Means]:
    """Mean normal score of each network of one table in each group of targets; a target with one network says nothing."""
    names = names_of(rows)
    targets: dict[str, list[KnownResult]] = {}
    for row in rows:
        targets.setdefault(row.target, []).append(row)
    scores: dict[str, dict[str, list[float]]] = {}
    for members in targets.values():
        if len(members) > 1:
            values = normal_scores(np.array([[row.value for row in members]]))[0]
            for row, value in zip(members, values.tolist(), strict=True):
                of_group = scores.setdefault(names[row.key], {})
                of_group.setdefault(row.target_group or row.target, []).append(value)
    return {name: {group: float(np.mean(values)) for group, values in of_group.items()} for name, of_group in scores.items()}


def _slope(tables: Sequence[Means]) -> float:
    """b: regression of the scores on x within tables; 0 where it would fall."""
    products = squares = 0.0
    for means in tables:
        x, z = standard_top1(list(means)), np.array(list(means.values()))
        known = np.isfinite(x)
        if known.sum() > 1:
            centred = x[known] - x[known].mean()
            products, squares = products + float(centred @ z[known]), squares + float(centred @ centred)
    return max(products / squares, 0.0) if squares else 0.0


def _beyond(tables: Sequence[Means], slope: float) -> Means:
    """r: what one publication says of each of its weights beyond b·x, less its level; the mean over its tables."""
    left_of: dict[str, list[float]] = {}
    for means in tables:
        x, z = standard_top1(list(means)), np.array(list(means.values()))
        neutral = float(np.nanmean(x)) if np.isfinite(x).any() else 0.0
        left = z - slope * np.where(np.isnan(x), neutral, x)
        for name, value in zip(means, (left - left.mean()).tolist(), strict=True):
            left_of.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in left_of.items()}


def _agreement(beyond: Mapping[str, Means]) -> float:
    """ρ: correlation over all pairs of publications of what both say of the same weights, each less its mean over these."""
    pairs: list[np.ndarray] = []
    for first, second in combinations(beyond.values(), 2):
        common = sorted(first.keys() & second.keys())
        if len(common) > 1:
            both = np.array([[first[name], second[name]] for name in common])
            pairs.append(both - both.mean(axis=0))
    if sum(map(len, pairs)) < LEAST_SHARED:
        return 0.0
    x, y = np.concatenate(pairs).T
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(np.clip(x @ y / spread, 0.0, 1.0)) if spread > 0 else 0.0
