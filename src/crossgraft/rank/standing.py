"""What is known of any network before anything looks at a target: a random-effects model over all known results.

In the unit of ``aggregate``, the normal score of a rank, the result of network m on target t of table T is

    z_mt = a_T + ω_m + v_mT + e_mt,    ω_m = w₁·top-1 + w₂·log size + family + architecture + weights

with ImageNet top-1 of timm or torchvision, independent normal effects and a free level a_T of each table. v_mT is what a network
brings to one way of training and testing, with slopes on top-1 and size of its own: under one fixed learning rate the networks
that are best on ImageNet came out last. A user's own results share v with the target at hand, published ones do not, so own
results outweigh. A network that no table knows stands where its top-1, size and relatives put it; one that timm does not know
either stands at the middle, with the variance of all.

Variances are fitted by maximum likelihood (Searle, Casella and McCulloch, Variance components, 1992, ch. 6) to the means of each
network over the targets of a table; that of e, which differs between tables, by ``target_variance``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import optimize

from crossgraft.models.spec import TORCHVISION_PREFIX, family_of
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.rank.table_means import OWN, TableMean
from crossgraft.rank.target_variance import typical_variance, variance_at_hand, variance_of_tables

TOP1_CENTRE_PERCENT, TOP1_UNIT_PERCENT = 80.0, 5.0
SIZE_CENTRE_MILLIONS = 25.0
FREE_LEVEL = 25.0
"""Variance of what is not known at all, the level of a table; large beside 1, the spread of ranks."""
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
        target: Variance of one network between the targets of a table, typical of tables.
        target_freedom: Degrees of freedom that ``target`` counts for, beside those of a table's own variance.
    """

    family: float
    architecture: float
    weights: float
    table: float
    slopes: float
    target: float
    target_freedom: float


class Described(NamedTuple):
    """What the model takes from the name of a network."""

    name: str
    architecture: str
    family: str
    top1: float
    size: float
    is_known_to_imagenet: bool


class Standing(NamedTuple):
    """Prior over networks on a new target.

    Attributes:
        mean: Expected normal score.
        general: Covariance of what they bring to every target.
        specific: Variance of each on one target beyond that.
        spoke: Publications, or commands, whose results are of exactly these weights; empty where none are.
    """

    mean: Float64[np.ndarray, " num_models"]
    general: Square
    specific: float
    spoke: tuple[tuple[str, ...], ...]


@cache
def described(name: str) -> Described:
    """Architecture, family, top-1 and size that a name stands for.

    A name without a tag has the ImageNet result of its architecture's best-known weights only where there is one.
    """
    architecture = name.removeprefix(TORCHVISION_PREFIX).rpartition("/")[2].partition(".")[0]
    result = imagenet_results().get(name) or imagenet_results().get(f"{TORCHVISION_PREFIX}{name}")
    family = family_of(architecture)
    if result is None:
        return Described(name, architecture, family, 0.0, 0.0, False)
    top1 = (result.top1_percent - TOP1_CENTRE_PERCENT) / TOP1_UNIT_PERCENT
    size = float(np.log10(result.parameters_millions / SIZE_CENTRE_MILLIONS))
    return Described(name, architecture, family, top1, size, True)


def fit_variances(means: Sequence[TableMean], start: Variances) -> Variances:
    """Maximum likelihood of all variances but that between targets, from networks with an ImageNet result."""
    target, freedom = typical_variance(means, (start.target, start.target_freedom))
    start = start._replace(target=target, target_freedom=freedom)
    kept = [mean for mean in means if described(mean.network).is_known_to_imagenet]
    if len(kept) < 10:
        return start
    between = variance_of_tables(means, target, freedom)
    networks, tables = [described(mean.network) for mean in kept], _tables(kept)
    same_table = (tables[:, None] == tables[None]).astype(np.float64)
    y = np.array([mean.value for mean in kept])
    products, same = _parts(networks, networks)
    fixed = (
        SLOPE * sum(products)
        + FREE_LEVEL * same_table
        + np.diag([between[mean.table] / mean.num_groups for mean in kept])
    )
    fitted = np.stack([*same, *(same_table * part for part in (same[-1], sum(products)))])

    def negative_likelihood(logs: np.ndarray) -> float:
        root = np.linalg.cholesky(fixed + np.tensordot(np.exp(logs), fitted, axes=1))
        white = np.linalg.solve(root, y)
        return float(np.log(np.diag(root)).sum() + 0.5 * white @ white)

    bounds = [(np.log(1e-3), np.log(4.0))] * len(fitted)
    found = optimize.minimize(negative_likelihood, np.log(np.array(start[:-2])), method="L-BFGS-B", bounds=bounds)
    return Variances._make([*np.exp(found.x).tolist(), *start[-2:]])


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
        between = variance_of_tables(means, variances.target, variances.target_freedom)
        v[np.diag_indices(len(known))] += [between[mean.table] / mean.num_groups for mean in means]
        cross = _covariance(at_hand, known, here, tables, variances)
        solved = np.linalg.solve(v, cross.T)
        mean, covariance = np.array([each.value for each in means]) @ solved, covariance - cross @ solved
    spoken = tuple(tuple(spoke.get(model, ())) for model in models)
    return Standing(
        mean,
        (covariance + covariance.T) / 2,
        variance_at_hand(means, variances.target, variances.target_freedom),
        spoken,
    )


def _tables(means: Sequence[TableMean]) -> np.ndarray:
    return np.array([mean.table for mean in means])


def _world(mean: TableMean) -> str:
    """Own tables are of one world, that of the target at hand, whatever their protocols."""
    return OWN if mean.table.startswith(OWN) else mean.table


def _parts(first: Sequence[Described], second: Sequence[Described]) -> tuple[list[Between], list[Between]]:
    """Products of top-1 and of size; whether family, architecture and weights are the same."""

    def ends(name: str) -> tuple[np.ndarray, np.ndarray]:
        return np.array([getattr(x, name) for x in first])[:, None], np.array([getattr(x, name) for x in second])[None]

    products = [np.multiply(*ends(name)) for name in ("top1", "size")]
    return products, [np.equal(*ends(name)).astype(np.float64) for name in ("family", "architecture", "name")]


def _covariance(
    first: Sequence[Described],
    second: Sequence[Described],
    of_first: np.ndarray,
    of_second: np.ndarray,
    variances: Variances,
) -> Between:
    """Covariance of ω + v of networks in tables; one that ImageNet does not know may be anywhere in top-1 and size."""
    products, same = _parts(first, second)
    unknown = same[-1] * ~np.array([x.is_known_to_imagenet for x in first], dtype=bool)[:, None]
    products = [product + spread * unknown for product, spread in zip(products, (1.0, 0.25), strict=True)]
    everywhere = sum(v * part for v, part in zip(variances[:3], same, strict=True)) + SLOPE * sum(products)
    in_one = variances.table * same[-1] + variances.slopes * sum(products)
    return everywhere + in_one * (of_first[:, None] == of_second[None])
