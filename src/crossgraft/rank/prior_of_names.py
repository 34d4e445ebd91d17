"""The standing of networks by name: shipped tables, the user's own results, ImageNet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from crossgraft.rank.known_names import names_of
from crossgraft.rank.model_history import group_of_target
from crossgraft.rank.results_store import one_metric, published_results
from crossgraft.rank.standing import Standing, Variances, fit_variances, stand
from crossgraft.rank.table_means import TableMean, table_means
from crossgraft.rank.target_effects import TargetEffects
from crossgraft.records import KnownResult

TARGETS = TargetEffects((0.2, 0.1, 0.1, 0.02, 0.1, 0.05), concentration=20.0, tail=10.0, typical=1.0, freedom=4.0)
START = Variances(family=0.1, architecture=0.1, weights=0.2, table=0.15, slopes=0.1, targets=TARGETS)
"""Where the fit begins; that of targets stays where no table tells of it."""


def prior_of_names(
    names: Sequence[str],
    own: Sequence[KnownResult],
    *,
    target: str | None,
    metric: str | None,
    without: Sequence[str] = (),
) -> tuple[Standing, str | None]:
    """Standing of networks by their full names, and the group of targets that was left out.

    Args:
        names: As ``known_names.full_name`` writes them.
        own: The user's own results; one with the key of a shipped result replaces it.
        target: Target at hand.
        metric: Metric that counts, where one publication has several.
        without: Publications that are left out.
    """
    shipped = [row for row in published_results() if row.origin not in without]
    by_key = {row.key: row for row in shipped}
    mine = {row.key: row for row in own if by_key.get(row.key) != row}
    rows = one_metric([row for row in shipped if row.key not in mine], metric)
    group = None if target is None else group_of_target(target, [*mine.values(), *shipped]) or target
    variances = _variances(metric, group, tuple(without))
    everything = [row for row in [*mine.values(), *rows] if group not in (row.target, row.target_group or row.target)]
    found = names_of(everything)
    spoke: dict[str, list[str]] = {}
    for row in everything:
        who = spoke.setdefault(found[row.key], [])
        if row.origin not in who:
            who.append(row.origin)
    return stand(names, table_means(everything, found, frozenset(mine)), variances, spoke), group


@cache
def _variances(metric: str | None, without_group: str | None, without: tuple[str, ...]) -> Variances:
    """Fitted on the shipped tables without a group of targets and without some publications."""
    return fit_variances(_shipped_means(metric, without_group, without), START)


def _shipped_means(metric: str | None, without_group: str | None, without: tuple[str, ...]) -> list[TableMean]:
    rows = [
        row
        for row in one_metric(published_results(), metric)
        if without_group not in (row.target, row.target_group or row.target) and row.origin not in without
    ]
    return table_means(rows, names_of(rows), frozenset())
