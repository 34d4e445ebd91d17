"""A replay of a table in words."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.rank.published.record import MeanRecord
from crossgraft.select.replay.record import ReplayRecord, ReplayRow
from crossgraft.words.formatting import NumberFormat, joined

METHOD_TITLES: Mapping[str, str] = {
    "select": "select",
    "prior": "first of the order",
    "prior_order_best_val": "in the order, best on val",
    "imagenet": "highest ImageNet top-1",
    "halving": "successive halving, random order",
    "random": "random order, best on val",
    "all_trained": "all trained, best on val",
}
ORDER_TITLES: Mapping[str, str] = {
    "prior": "order of select",
    "static_prior": "mean rank on the other targets",
    "imagenet": "ImageNet top-1",
}
REGRET = NumberFormat(decimals=4)


def regret_in_words(row: ReplayRow) -> str:
    """Mean regret with its interval, where there is one."""
    return estimate(MeanRecord(value=row.mean_regret, low=row.low, high=row.high, num_targets=row.num_targets))


def estimate(mean: MeanRecord) -> str:
    """A mean with its interval, where there is one.

    >>> estimate(MeanRecord(value=0.02, low=0.01, high=0.03, num_targets=9))
    '0.0200 [0.0100, 0.0300]'
    """
    interval = "" if mean.low is None else f" {REGRET.interval(mean.low, mean.high)}"
    return f"{REGRET(mean.value)}{interval}"


def conclusion_in_words(record: ReplayRecord) -> str:
    """What ``select`` gives within each budget, and which simpler ways do better or worse."""
    return " ".join(_of_budget(record, budget) for budget in record.budgets)


def _of_budget(record: ReplayRecord, budget: str) -> str:
    row = record.row("select", budget)
    if row.mean_regret is None:
        return f"At {budget}, the budget is below one training."
    others = [each for each in record.rows if each.budget == budget and each.beyond_select is not None]
    better = [each for each in others if each.beyond_select and (each.beyond_select.high or 0.0) < 0]
    worse = [each for each in others if each.beyond_select and (each.beyond_select.low or 0.0) > 0]
    said = f"At {budget}, select hands over a model with a mean regret of {regret_in_words(row)}"
    if better:
        said += f"; better: {joined([METHOD_TITLES[each.method] for each in better])}"
    if worse:
        said += f"; worse: {joined([METHOD_TITLES[each.method] for each in worse])}"
    return f"{said}."
