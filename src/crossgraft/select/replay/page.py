"""The report of a replay: regret of ``select`` beside simpler ways, and how well its order foresees results."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.rank.published.record import MeanRecord
from crossgraft.report.blocks import Block, Heading, Items, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, table_of, words
from crossgraft.report.verdict import BEGIN, provenance_section, references_section, verdict_section
from crossgraft.select.replay.record import OrderRow, ReplayRecord, ReplayRow
from crossgraft.words.formatting import NumberFormat, counted, joined

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
    text = f"At {budget}, select hands over a model with a mean regret of {regret_in_words(row)}"
    if better:
        text += f"; better: {joined([METHOD_TITLES[each.method] for each in better])}"
    if worse:
        text += f"; worse: {joined([METHOD_TITLES[each.method] for each in worse])}"
    return f"{text}."


_TWO = NumberFormat(decimals=2)


def replay_heading(source: Source[ReplayRecord]) -> Heading:
    """The table, its size, and what the replay supports."""
    record = source.record
    known = "nothing of the table known" if record.is_cold else "its other targets known"
    sizes = f"{counted(record.num_models, 'model')} × {counted(len(record.targets), 'target')}, {known}"
    return Heading(title=f"A selection replayed: {record.title}", summary=sizes, advice=record.conclusion)


def replay_verdict_section(source: Source[ReplayRecord]) -> Section:
    """What the replay supports."""
    return verdict_section(source.record.conclusion, [], BEGIN)


def regrets_section(source: Source[ReplayRecord]) -> Section:
    """Mean and worst regret of every way, one table for each budget."""
    tables: list[Block] = [regret_table(source.record, budget) for budget in chosen_within(source.record)]
    return Section(name="regrets", title="Regret", part="evidence", blocks=tables, is_first=True)


def orders_section(source: Source[ReplayRecord]) -> Section:
    """How well the order foresees the results."""
    return Section(name="orders", title="The order", part="evidence", blocks=[order_table(source.record)])


def lacking_section(source: Source[ReplayRecord]) -> Section | None:
    """What the table does not say; None where it says everything."""
    if not source.record.notes:
        return None
    return Section(name="lacking", title="What the table lacks", part="checks", blocks=[Items(source.record.notes)])


def chosen_within(record: ReplayRecord) -> list[str]:
    """Budgets that are not below one training on every target."""
    return [budget for budget in record.budgets if record.row("select", budget).num_targets]


def regret_table(record: ReplayRecord, budget: str) -> Table:
    """One row per way of choosing."""
    rows = [row for row in record.rows if row.budget == budget]
    reasons = dict.fromkeys(row.no_interval_reason for row in rows if row.no_interval_reason is not None)
    return table_of(
        rows,
        [
            (Column("Way"), lambda row: words(METHOD_TITLES[row.method])),
            (Column("Mean regret", numeric=True, csv_titles=("mean", "low", "high")), _regret),
            (Column("Minus select", numeric=True, csv_titles=("difference", "difference low", "difference high")), _beyond),
            (Column("Worst", numeric=True), lambda row: Cell(text=REGRET(row.worst_regret), values=(row.worst_regret,))),
            (Column("Targets", numeric=True), lambda row: Cell(text=str(row.num_targets), values=(row.num_targets,))),
        ],
        caption=f"Regret at {budget}",
        file_name=f"regret-{budget.rstrip('%')}",
        notes=[
            "Best result minus that of the model handed over, in the unit of the table; 95 % intervals over groups of targets.",
            *(f"No interval of a mean regret: {reason}." for reason in reasons),
        ],
    )


def order_table(record: ReplayRecord) -> Table:
    """One row per order."""
    return table_of(
        record.orders,
        [
            (Column("Order"), lambda row: words(ORDER_TITLES[row.order])),
            (Column("Weighted Kendall", numeric=True), lambda row: _mean(row.weighted_kendall)),
            (Column("Minus mean rank", numeric=True), _beyond_prior),
        ],
        caption="How well an order foresees the results",
        file_name="orders",
    )


def _regret(row: ReplayRow) -> Cell:
    return Cell(text=regret_in_words(row), values=(row.mean_regret, row.low, row.high))


def _beyond(row: ReplayRow) -> Cell:
    beyond = row.beyond_select
    if beyond is None:
        return Cell(text="—", values=(None, None, None))
    return Cell(text=estimate(beyond), values=(beyond.value, beyond.low, beyond.high))


def _beyond_prior(row: OrderRow) -> Cell:
    return words(None) if row.beyond_static_prior is None else _mean(row.beyond_static_prior)


def _mean(mean: MeanRecord) -> Cell:
    interval = "" if mean.low is None else f" {_TWO.interval(mean.low, mean.high)}"
    return Cell(text=f"{_TWO(mean.value)}{interval}", values=(mean.value,))


REPLAY = Kind(
    ReplayRecord,
    replay_heading,
    (replay_verdict_section, regrets_section, orders_section, lacking_section, provenance_section, references_section),
    tables_answer=True,
    terminal=(regrets_section, orders_section, lacking_section, replay_verdict_section),
)
