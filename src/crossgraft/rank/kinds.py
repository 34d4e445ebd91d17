"""How much one kind of cheap evidence says of the final result, learned from the published tables.

In the unit of one target's spread, kind k of network m is

    g_mk = level + scale · (c_k · ω_m + d_k · e_m + ε_mk),    ε_mk ~ N(0, ν_k²),    z_m = ω_m + e_m + η_m

with ω what the network brings to every target, z its final result (normal scores) and η what another seed would not repeat of
it, the share 1 − ρ_k of the variance of z − ω. c, d, ν and ρ are learned from the targets of the tables that have the kind:
each target against the prior of the other groups.

A score of frozen features (``_fit_score``) has slopes by least squares, each shrunk by its uncertainty, the jackknife over
groups, to 0 where it says nothing. It says nothing until two publications show that it does, and the jackknife over publications
counts too: what ranks one zoo on one set of targets has failed outright on others. Training at low fidelity is a noisy
measurement of the same thing, so its slopes are those of errors in variables (``kind_slopes``), for the metric at hand as far
as metrics differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from crossgraft.rank.aggregate import normal_scores
from crossgraft.rank.kind_slopes import CheapTraining, jackknife_variance, training_slopes
from crossgraft.rank.published.benchmark import Results
from crossgraft.rank.published.sources import REVERSED
from crossgraft.rank.published.tables import PublishedTable, published_tables
from crossgraft.seeding import generator

OUTLIER = 3.0
"""Robust standard deviations below the median at which a value is cut: a training that went wrong is last, however far."""
NUM_REDRAWN = 200
"""Draws of other seeds, from which the error of published normal scores is computed."""
_SHARE = re.compile(r"(size|epochs|images)=([0-9.]+)")


class KindModel(NamedTuple):
    """What one kind says.

    Attributes:
        general: c: slope on what the network brings to every target.
        specific: d: slope on what it does on this target beyond that.
        noise: ν: standard deviation of all else.
        num_groups: Groups of targets it was learned from; 0 = none has the kind, and it counts as the least that is known.
        repeatable: ρ: share of the variance of a result on one target that it can tell of; 1 where seeds are not known apart.
    """

    general: float
    specific: float
    noise: float
    num_groups: int
    repeatable: float = 1.0

    @property
    def says_something(self) -> bool:
        """Whether it changes any belief."""
        return self.general > 0 or self.specific > 0


NOTHING = KindModel(0.0, 0.0, 1.0, 0)


def without_outliers(values: np.ndarray) -> np.ndarray:
    """Values far below the others are cut; fewer than five stay."""
    known = values[np.isfinite(values)]
    if len(known) < 5:
        return values
    median = np.median(known)
    spread = 1.4826 * np.median(np.abs(known - median))
    return np.maximum(values, median - OUTLIER * spread) if spread > 0 else values


@cache
def kind_model(kind: str, without_group: str | None = None, metric: str | None = None) -> KindModel:
    """What ``kind`` says of results in ``metric``, learned from all targets but those of a group.

    A share between two that were published (``low:size=0.4``) is read off the line between them; a low fidelity of another sort,
    or an epoch of a learning curve, counts as the smallest published share; a score that no table has says nothing.
    """
    learned = _learned(without_group, metric if metric in _metrics() else None)
    if kind in learned:
        return learned[kind]
    family = kind.partition(":")[0]
    if family not in ("low", "curve"):
        return NOTHING
    sizes = sorted((share, learned[name]) for name in learned if (share := _share_of(name)) is not None)
    if not sizes:
        return NOTHING
    share = _share_of(kind)
    if share is None or "epochs" in kind or "images" in kind:
        return sizes[0][1]._replace(num_groups=0)
    positions = np.log([each for each, _ in sizes])
    rows = np.array([[*model[:3], model.repeatable] for _, model in sizes])
    *slopes, noise, repeatable = (float(np.interp(np.log(share), positions, column)) for column in rows.T)
    return KindModel(slopes[0], slopes[1], noise, sizes[0][1].num_groups, repeatable)


def score_correlation() -> float:
    """Mean correlation between what two scores of one network leave unexplained: several scores are not several witnesses."""
    return _score_correlation()


def _share_of(kind: str) -> float | None:
    shares = [float(value) for _, value in _SHARE.findall(kind)]
    return float(np.prod(shares)) if shares else None


class _Pairs(NamedTuple):
    """One kind on one target: standardised values, the prior of the other groups, and what that leaves."""

    table: str
    publication: str
    group: str
    metric: str
    values: np.ndarray
    prior: np.ndarray
    residual: np.ndarray
    num_known: float
    error: float
    result_error: float

    @property
    def measured(self) -> CheapTraining:
        """The networks that have the kind."""
        known = np.isfinite(self.values)
        z = self.prior + self.residual
        shown = self.values[known], self.prior[known], z[known]
        return CheapTraining(self.group, self.metric, *shown, self.num_known, self.error, self.result_error)


@cache
def _pairs() -> dict[str, list[_Pairs]]:
    found: dict[str, list[_Pairs]] = {}
    for table in published_tables():
        kinds = dict(_usable_kinds(table))
        if not kinds:
            continue
        z = normal_scores(table.results)
        prior = _held_out(z, table.groups)
        num_known = len(set(table.groups)) - 1
        for kind, matrix in kinds.items():
            deviations = table.kind_deviations.get(kind)
            for target, group in enumerate(table.groups):
                values = without_outliers(matrix[target])
                both = np.isfinite(values) & np.isfinite(z[target]) & np.isfinite(prior[target])
                if both.sum() < 4 or np.ptp(values[both]) == 0:
                    continue
                g = (values - values[both].mean()) / values[both].std()
                ends = np.where(both, g, np.nan), prior[target], z[target] - prior[target]
                of_mean = (
                    0.0 if deviations is None else float(np.nanmean(deviations[target, both] ** 2)) / table.num_seeds
                )
                errors = min(of_mean / float(values[both].var()), 1.0), _error_of_scores(table, target)
                labels = table.name, table.origin, group, table.metric
                found.setdefault(kind, []).append(_Pairs(*labels, *ends, num_known, *errors))
    return found


def _usable_kinds(table: PublishedTable) -> Iterator[tuple[str, Results]]:
    for kind, matrix in table.kinds.items():
        score = kind.removeprefix("score:")
        if table.name == "thesis-architectures":
            if score == "ours":  # another formula than elsewhere
                continue
            yield (
                kind,
                -matrix if score in REVERSED else matrix,
            )  # turned round after the results were known; here nothing is
        else:
            yield kind, matrix


def _held_out(z: Results, groups: Sequence[str]) -> Results:
    """Mean over the other groups of targets, drawn to the middle as if one more middling target were known."""
    names = np.asarray(groups)
    prior = np.full_like(z, np.nan)
    for group in dict.fromkeys(groups):
        others = z[names != group]
        number = np.isfinite(others).sum(axis=0)
        prior[names == group] = np.nansum(others, axis=0) / (number + 1)
    return prior


def _error_of_scores(table: PublishedTable, target: int) -> float:
    """Variance of the normal scores of a target between means over other seeds; 0 where no standard deviations are printed."""
    if table.standard_deviations is None:
        return 0.0
    known = np.isfinite(table.results[target]) & np.isfinite(table.standard_deviations[target])
    error = table.standard_deviations[target, known] / np.sqrt(table.num_seeds)
    drawn = generator(0, "seeds", table.name, target).standard_normal((NUM_REDRAWN, int(known.sum())))
    return float(normal_scores(table.results[target, known] + error * drawn).var(axis=0).mean())


@cache
def _metrics() -> frozenset[str]:
    return frozenset(pair.metric for pairs in _pairs().values() for pair in pairs)


@cache
def _learned(without_group: str | None, metric: str | None = None) -> dict[str, KindModel]:
    found: dict[str, KindModel] = {}
    for kind, pairs in _pairs().items():
        kept = [pair for pair in pairs if pair.group != without_group]
        num_groups = len({pair.group for pair in kept})
        if num_groups >= 4 and kind.startswith("score:"):
            found[kind] = _fit_score(kept)
        elif num_groups >= 4:
            general, specific, noise, repeatable = training_slopes([pair.measured for pair in kept], metric)
            found[kind] = KindModel(general, specific, noise, num_groups, repeatable)
    return found


def _fit_score(pairs: Sequence[_Pairs]) -> KindModel:
    """Both slopes by least squares, each shrunk by the jackknife over groups and over publications, not below 0."""
    design = [np.stack([pair.prior, pair.residual], axis=1)[np.isfinite(pair.values)] for pair in pairs]
    design = [rows - rows.mean(axis=0) for rows in design]
    values = [pair.values[np.isfinite(pair.values)] for pair in pairs]
    values = [rows - rows.mean() for rows in values]
    labels = [[pair.group for pair in pairs], [pair.publication for pair in pairs]]
    num_groups = len(set(labels[0]))
    if len(set(labels[1])) < 2:
        return NOTHING._replace(num_groups=num_groups)

    def slopes(kept: Sequence[int]) -> np.ndarray:
        x, y = np.concatenate([design[i] for i in kept]), np.concatenate([values[i] for i in kept])
        return np.linalg.lstsq(x, y, rcond=None)[0]

    whole = slopes(range(len(pairs)))
    variance = np.max([jackknife_variance(slopes, each) for each in labels], axis=0)
    shrunk = np.where(whole > 0, whole * np.maximum(0.0, 1 - variance / np.maximum(whole**2, 1e-12)), 0.0)
    x, y = np.concatenate(design), np.concatenate(values)
    noise = float(np.sqrt(np.mean((y - x @ shrunk) ** 2)))
    return KindModel(float(shrunk[0]), float(shrunk[1]), noise, num_groups)


@cache
def _score_correlation() -> float:
    """From the tables with several scores."""
    residuals: dict[tuple[str, int], dict[str, np.ndarray]] = {}
    for kind, pairs in _pairs().items():
        if not kind.startswith("score:") or "@" in kind:
            continue
        model = _learned(None).get(kind, NOTHING)
        for number, pair in enumerate(pairs):
            left = pair.values - model.general * pair.prior - model.specific * pair.residual
            residuals.setdefault((pair.table, number), {})[kind] = left
    found: list[float] = []
    for rows in residuals.values():
        matrix = np.array(list(rows.values()))
        complete = matrix[:, np.isfinite(matrix).all(axis=0)]
        if len(complete) > 1 and complete.shape[1] > 3:
            correlation = np.corrcoef(complete)
            found.append(float(correlation[np.triu_indices(len(complete), 1)].mean()))
    return float(np.clip(np.mean(found), 0.0, 0.95)) if found else 0.5
