"""The order in which models are tried on a target that nothing has looked at yet, from what is known of them elsewhere.

Values are normal scores z of ranks, one per model and target of a table (publication, protocol and metric), the mean over groups
of related targets; the target at hand and its relatives are unknown everywhere. For model m

    f_m = b·x_m + k ρ/(1 + (k − 1) ρ) · r̄_m                                               (1)
    value_m = (n·z̄_m + κ·f_m)/(n + κ)                                                     (2)

with x the ImageNet top-1, (top-1 − 80)/5, r̄ the mean over the k publications with exactly these weights of what each says beyond
b·x, and z̄ the mean over n groups of a user's own targets. b is the slope within publications, ρ the correlation between
publications of what they say beyond it of the same weights; the factor is the reliability of a mean of k (Spearman 1910, Brown
1910): publications that do not agree count for nothing. (2) is the shrunk mean of a one-way random-effects model (Searle, Casella
and McCulloch, Variance components, 1992, sec. 3.6) with κ = 1: the cold start counts as one target of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from crossgraft.errors import DataError
from crossgraft.rank.aggregate import normal_scores
from crossgraft.rank.known_names import full_name, names_of
from crossgraft.rank.model_history import group_of_target
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.rank.results_store import one_metric, published_results
from crossgraft.records import KnownResult

OWN_TARGETS_OF_COLD_START = 1.0
"""κ; fixed, not fitted."""
LEAST_SHARED = 10
"""Weights that pairs of publications have in common at least; below, ρ is not known and taken as 0."""
TOP1_CENTRE_PERCENT, TOP1_UNIT_PERCENT = 80.0, 5.0

PerModel = Float64[np.ndarray, " num_models"]
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


class ExpectedOrder(NamedTuple):
    """What is expected of models on a target.

    Attributes:
        values: Normal scores; larger = better, 0 = middling.
        num_own: Groups of own targets on which each is known.
        spoke: Who has results of exactly these weights: commands for own ones, publications.
        cold: What publications and ImageNet say.
    """

    values: PerModel
    num_own: Int[np.ndarray, " num_models"]
    spoke: tuple[tuple[str, ...], ...]
    cold: ColdStart


def expected_order(
    models: Sequence[str],
    *,
    own: Sequence[KnownResult] = (),
    target: str | None = None,
    metric: str | None = None,
    without: Sequence[str] = (),
) -> ExpectedOrder:
    """What is expected of ``models`` on a target.

    Args:
        models: Names of timm, torchvision or the hub.
        own: The user's own results on any data.
        target: Name of the data; results on it, or on related data, are left out.
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
    group = None if target is None else group_of_target(target, [*mine, *shipped.values()]) or target
    mine = [row for row in mine if group not in (row.target, row.target_group or row.target)]
    cold = cold_start(metric, group, tuple(without))
    own_mean, num_own, who = _own_means(weights, mine)
    shrunk = num_own * own_mean + OWN_TARGETS_OF_COLD_START * _expected_cold(weights, cold)  # eq. 2
    values = shrunk / (num_own + OWN_TARGETS_OF_COLD_START)
    published = [tuple(name for name, beyond in cold.beyond.items() if each in beyond) for each in weights]
    spoke = tuple((*own_, *published_) for own_, published_ in zip(who, published, strict=True))
    return ExpectedOrder(values, num_own, spoke, cold)


@cache
def cold_start(metric: str | None, without_group: str | None, without: tuple[str, ...]) -> ColdStart:
    """b and ρ from the shipped tables without a group of targets and without some publications."""
    tables: dict[tuple[str, str], list[KnownResult]] = {}
    for row in one_metric(published_results(), metric):
        if row.origin not in without and without_group not in (row.target, row.target_group or row.target):
            tables.setdefault((row.origin, row.protocol), []).append(row)
    means: dict[str, list[Means]] = {}
    for (origin, _), rows in tables.items():
        means.setdefault(publication_of(origin), []).append(_mean_scores(rows))
    slope = _slope([each for of_publication in means.values() for each in of_publication])
    beyond = {publication: _beyond(each, slope) for publication, each in means.items()}
    return ColdStart(slope, _agreement(beyond), beyond)


def publication_of(origin: str) -> str:
    """A publication without its table.

    >>> publication_of("thesis, Table 6.5")
    'thesis'
    """
    return origin.partition(",")[0]


def imagenet_top1(weights: Sequence[str]) -> PerModel:
    """ImageNet top-1 in percent, as timm or torchvision publish it; NaN where they do not."""
    found = [imagenet_results().get(name) for name in weights]
    return np.array([np.nan if each is None else each.top1_percent for each in found])


def _standard_top1(weights: Sequence[str]) -> PerModel:
    return (imagenet_top1(weights) - TOP1_CENTRE_PERCENT) / TOP1_UNIT_PERCENT


def _expected_cold(weights: Sequence[str], cold: ColdStart) -> PerModel:
    """Eq. 1; a network without ImageNet result is taken as the mean of the others."""
    top1 = _standard_top1(weights)
    neutral = float(np.nanmean(top1)) if np.isfinite(top1).any() else 0.0
    values = cold.slope * np.where(np.isnan(top1), neutral, top1)
    for place, name in enumerate(weights):
        said = [beyond[name] for beyond in cold.beyond.values() if name in beyond]
        if said:
            number, rho = len(said), cold.agreement
            values[place] += number * rho / (1 + (number - 1) * rho) * float(np.mean(said))
    return values


def _own_means(
    weights: Sequence[str], rows: Sequence[KnownResult]
) -> tuple[PerModel, Int[np.ndarray, " num_models"], list[tuple[str, ...]]]:
    """Mean normal score among the models at hand over groups of own targets, of how many, and who measured it."""
    names, wanted = names_of(rows), set(weights)
    kept = [row for row in rows if names[row.key] in wanted]
    of_group: dict[str, dict[str, list[float]]] = {name: {} for name in weights}
    tables: dict[tuple[str, str], list[KnownResult]] = {}
    for row in kept:
        tables.setdefault((row.protocol, row.metric), []).append(row)
    for members in tables.values():
        for name, group, value in _scores(members):
            of_group[name].setdefault(group, []).append(value)
    means = [[float(np.mean(values)) for values in of_group[name].values()] for name in weights]
    who = {name: dict.fromkeys(row.origin for row in kept if names[row.key] == name) for name in weights}
    return (
        np.array([float(np.mean(each)) if each else 0.0 for each in means]),
        np.array([len(each) for each in means]),
        [tuple(who[name]) for name in weights],
    )


def _mean_scores(rows: Sequence[KnownResult]) -> Means:
    """Mean normal score of each network of one table, related targets counted once."""
    found: dict[str, dict[str, list[float]]] = {}
    for name, group, value in _scores(rows):
        found.setdefault(name, {}).setdefault(group, []).append(value)
    return {
        name: float(np.mean([np.mean(each) for each in of_group.values()])) for name, of_group in found.items()
    }


def _scores(rows: Sequence[KnownResult]) -> list[tuple[str, str, float]]:
    """Weights, group of targets and normal score of every result of one table; a target with one network says nothing."""
    names = names_of(rows)
    targets: dict[str, list[KnownResult]] = {}
    for row in rows:
        targets.setdefault(row.target_fingerprint or row.target, []).append(row)
    found: list[tuple[str, str, float]] = []
    for members in targets.values():
        if len(members) > 1:
            values = normal_scores(np.array([[row.value for row in members]]))[0]
            found += [
                (names[row.key], row.target_group or row.target, float(value))
                for row, value in zip(members, values, strict=True)
            ]
    return found


def _slope(tables: Sequence[Means]) -> float:
    """Regression of the scores on x within tables; 0 where it would fall."""
    products = squares = 0.0
    for means in tables:
        x, z = _standard_top1(list(means)), np.array(list(means.values()))
        known = np.isfinite(x)
        if known.sum() > 1:
            centred = x[known] - x[known].mean()
            products, squares = products + float(centred @ z[known]), squares + float(centred @ centred)
    return max(products / squares, 0.0) if squares else 0.0


def _beyond(tables: Sequence[Means], slope: float) -> Means:
    """What one publication says of each of its weights beyond b·x, less its level; the mean over its tables."""
    found: dict[str, list[float]] = {}
    for means in tables:
        x, z = _standard_top1(list(means)), np.array(list(means.values()))
        left = z - slope * np.where(np.isnan(x), np.nanmean(x) if np.isfinite(x).any() else 0.0, x)
        for name, value in zip(means, left - left.mean(), strict=True):
            found.setdefault(name, []).append(float(value))
    return {name: float(np.mean(values)) for name, values in found.items()}


def _agreement(beyond: Mapping[str, Means]) -> float:
    """ρ: correlation over all pairs of publications of what both say of the same weights, each less its mean over these."""
    products, squares, shared = 0.0, np.zeros(2), 0
    for first, second in combinations(beyond.values(), 2):
        common = sorted(first.keys() & second.keys())
        if len(common) > 1:
            both = np.array([[first[name], second[name]] for name in common])
            both -= both.mean(axis=0)
            products, squares, shared = products + float(both[:, 0] @ both[:, 1]), squares + (both**2).sum(axis=0), shared + len(common)
    if shared < LEAST_SHARED or not squares.all():
        return 0.0
    return float(np.clip(products / np.sqrt(squares.prod()), 0.0, 1.0))
