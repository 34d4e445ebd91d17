"""What is known of any network before anything looks at a target: a random-effects model over all known results.

In the unit of ``aggregate``, the normal score of a rank, the result of network m on target t of table T is

    z_mt = a_T + ω_m + v_mT + e_mt,    ω_m = w₁·top-1 + w₂·log size + family + architecture + weights

with ImageNet top-1 of timm or torchvision, independent normal effects and a free level a_T of each table. v_mT is what a network
brings to one way of training and testing, with slopes on top-1 and size of its own: under one fixed learning rate the networks
that are best on ImageNet came out last. A user's own results share v with the target at hand, published ones do not, so own
results outweigh. A network that no table knows stands where its top-1, size and relatives put it; one that timm does not know
either stands at the middle, with the variance of all. e_mt is what it does on one target beyond that, and goes together between
relatives (``relatives``, ``target_effects``); which do on a user's own targets, these say too (``own_targets``).

Variances of ω and v are fitted by maximum likelihood (Searle, Casella and McCulloch, Variance components, 1992, ch. 6) to the
means of each network over the targets of a table; those of e before, to what the targets of a table differ by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import optimize

from crossgraft.rank.described import Described, described
from crossgraft.rank.own_targets import FREE_LEVEL, learned_covariance
from crossgraft.rank.relatives import likeness
from crossgraft.rank.table_means import OWN, Deviations, TableMean, deviations_of
from crossgraft.rank.target_effects import TargetEffects, fit_target_effects, spreads
from crossgraft.rank.target_variance import TableSpread, freedom_of_product, table_variance, variance_at_hand

SLOPE = 0.25
"""Prior variance of w₁ and w₂: half a normal score for 5 points of top-1, or a factor of ten in size."""
Square = Float64[np.ndarray, "num_models num_models"]
Between = Float64[np.ndarray, "num_first num_second"]


class Variances(NamedTuple):
    """Variances of the effects, in squared normal scores; all that is fitted.

    Attributes:
        family: Variance of what networks of one family share.
        architecture: Variance of what those of one architecture share beyond that.
        weights: Variance of what one network has beyond that.
        table: Variance of one network between tables.
        slopes: Variance between tables of both slopes, on 5 points of ImageNet top-1 and on a factor of ten in parameters.
        targets: How networks vary between the targets of a table.
    """

    family: float
    architecture: float
    weights: float
    table: float
    slopes: float
    targets: TargetEffects


class Standing(NamedTuple):
    """Prior over networks on a new target.

    Attributes:
        mean: Expected normal score.
        general: Covariance of what they bring to every target.
        specific: Expected covariance of what they bring to one target beyond that, λ times which holds.
        freedom: Degrees of freedom of λ: 1/λ ~ χ²/(freedom − 2); infinite = it is known.
        spoke: Publications, or commands, whose results are of exactly these weights; empty where none are.
    """

    mean: Float64[np.ndarray, " num_models"]
    general: Square
    specific: Square
    freedom: float
    spoke: tuple[tuple[str, ...], ...]


def fit_variances(means: Sequence[TableMean], start: Variances) -> Variances:
    """Maximum likelihood of all variances; those of ω and v from networks with an ImageNet result."""
    start = start._replace(targets=fit_target_effects(deviations_of(means), start.targets))
    kept = [mean for mean in means if described(mean.network).is_known_to_imagenet]
    if len(kept) < 10:
        return start
    networks, tables = [described(mean.network) for mean in kept], _tables(kept)
    same_table = (tables[:, None] == tables[None]).astype(np.float64)
    y = np.array([mean.value for mean in kept])
    products, same = _parts(networks, networks)
    fixed = SLOPE * sum(products) + FREE_LEVEL * same_table + _errors_of_means(means, start.targets, kept)
    fitted = np.stack([*same, *(same_table * part for part in (same[-1], sum(products)))])

    def negative_likelihood(logs: np.ndarray) -> float:
        root = np.linalg.cholesky(fixed + np.tensordot(np.exp(logs), fitted, axes=1))
        white = np.linalg.solve(root, y)
        return float(np.log(np.diag(root)).sum() + 0.5 * white @ white)

    bounds = [(np.log(1e-3), np.log(4.0))] * len(fitted)
    found = optimize.minimize(negative_likelihood, np.log(np.array(start[:-1])), method="L-BFGS-B", bounds=bounds)
    return Variances._make([*np.exp(found.x).tolist(), start.targets])


def stand(
    models: Sequence[str], means: Sequence[TableMean], variances: Variances, spoke: Mapping[str, Sequence[str]]
) -> Standing:
    """Prior of ``models`` on a new target, given what is known of all networks."""
    at_hand, known = [described(name) for name in models], [described(mean.network) for mean in means]
    here, tables = np.array([OWN] * len(models)), np.array([_world(mean) for mean in means], dtype=object)
    mean, covariance = np.zeros(len(models)), _covariance(at_hand, at_hand, here, here, variances)
    if means:
        levels = _tables(means)
        v = _covariance(known, known, tables, tables, variances) + FREE_LEVEL * (levels[:, None] == levels[None])
        v += _errors_of_means(means, variances.targets, means)
        cross = _covariance(at_hand, known, here, tables, variances)
        solved = np.linalg.solve(v, cross.T)
        mean, covariance = np.array([each.value for each in means]) @ solved, covariance - cross @ solved
    spoken = tuple(tuple(spoke.get(model, ())) for model in models)
    at_hand_alone, freedom = _target_at_hand(models, mean, deviations_of(means), variances.targets)
    return Standing(mean, (covariance + covariance.T) / 2, at_hand_alone, freedom, spoken)


def _target_at_hand(
    models: Sequence[str], mean: np.ndarray, tables: Sequence[Deviations], effects: TargetEffects
) -> tuple[Square, float]:
    """Covariance of what networks bring to the target alone, from relatives and own targets, and freedom of its factor."""
    own = [table for table in tables if table.table.startswith(OWN)]
    order = {name: float(value) for table in own for name, value in zip(table.networks, table.means, strict=True)}
    order |= dict(zip(models, mean.tolist(), strict=True))
    factor = variance_at_hand(spreads(own, effects), effects.typical, effects.freedom)
    names = list(order)
    prior = factor.square * effects.covariance(names, np.array(list(order.values())))
    learned = learned_covariance(names, prior, own, effects.concentration)
    place = {name: number for number, name in enumerate(names)}
    places = [place[model] for model in models]
    return learned[np.ix_(places, places)], freedom_of_product(factor.freedom, effects.tail)


def _errors_of_means(means: Sequence[TableMean], effects: TargetEffects, kept: Sequence[TableMean]) -> Square:
    """Covariance of means over groups of targets: that of e, by the groups that two networks share; no slope on the order."""
    tables = deviations_of(means)
    factors = {each.table: _factor(each, effects) for each in spreads(tables, effects)}
    found, labels = np.zeros((len(kept), len(kept))), _tables(kept)
    for table in tables:
        rows = np.flatnonzero(labels == table.table).tolist()
        if not rows:
            continue
        at = [table.networks.index(kept[row].network) for row in rows]
        known = np.isfinite(table.values[:, at]).astype(np.float64)
        shared = known.T @ known / np.outer(known.sum(axis=0), known.sum(axis=0))
        names = [kept[row].network for row in rows]
        found[np.ix_(rows, rows)] = factors[table.table] * shared * effects.covariance(names, np.zeros(len(names)))
    return found


def _factor(spread: TableSpread, effects: TargetEffects) -> float:
    return table_variance(spread, effects.typical, effects.freedom)


def _tables(means: Sequence[TableMean]) -> np.ndarray:
    return np.array([mean.table for mean in means])


def _world(mean: TableMean) -> str:
    """Own tables are of one world, that of the target at hand, whatever their protocols."""
    return OWN if mean.table.startswith(OWN) else mean.table


def _parts(first: Sequence[Described], second: Sequence[Described]) -> tuple[list[Between], list[Between]]:
    """Products of top-1 and of size; whether family, architecture and weights are the same."""
    parts = likeness(first, second)
    return [parts["top1"], parts["size"]], [parts["family"], parts["architecture"], parts["own"]]


def _covariance(
    first: Sequence[Described],
    second: Sequence[Described],
    of_first: np.ndarray,
    of_second: np.ndarray,
    variances: Variances,
) -> Between:
    """Covariance of ω + v of networks in tables; one that ImageNet does not know may be anywhere in top-1 and size."""
    products, same = _parts(first, second)
    everywhere = sum(v * part for v, part in zip(variances[:3], same, strict=True)) + SLOPE * sum(products)
    in_one = variances.table * same[-1] + variances.slopes * sum(products)
    return everywhere + in_one * (of_first[:, None] == of_second[None])
