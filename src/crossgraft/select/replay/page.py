"""The report of a replay: regret of ``select`` beside simpler ways, and how well its order foresees results."""

from __future__ import annotations

from crossgraft.rank.published.record import MeanRecord
from crossgraft.report.blocks import Block, Heading, Items, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, table_of, words
from crossgraft.report.verdict import BEGIN, verdict_blocks
from crossgraft.select.replay.record import OrderRow, ReplayRecord, ReplayRow
from crossgraft.select.replay.words import METHOD_TITLES, ORDER_TITLES, REGRET, estimate, regret_in_words
from crossgraft.words.formatting import NumberFormat, counted

_TWO = NumberFormat(decimals=2)


def replay_heading(source: Source[ReplayRecord]) -> Heading:
    """The table, its size, and what the replay supports."""
    record = source.record
    known = "nothing of the table known" if record.is_cold else "its other targets known"
    sizes = f"{counted(record.num_models, 'model')} × {counted(len(record.targets), 'target')}, {known}"
    return Heading(title=f"A selection replayed: {record.title}", summary=sizes, advice=record.conclusion)


def replay_verdict_section(source: Source[ReplayRecord]) -> Section:
    """What the replay supports."""
    blocks = verdict_blocks(
        source.record.conclusion,
        [],
        BEGIN,
    )
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def regrets_section(source: Source[ReplayRecord]) -> Section:
    """Mean and worst regret of every way, one table for each budget."""
    tables: list[Block] = [regret_table(source.record, budget) for budget in chosen_within(source.record)]
    return Section(name="regrets", title="Regret", part="evidence", blocks=tables)


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
            (
                Column("Minus select", numeric=True, csv_titles=("difference", "difference low", "difference high")),
                _beyond,
            ),
            (
                Column("Worst", numeric=True),
                lambda row: Cell(text=REGRET(row.worst_regret), values=(row.worst_regret,)),
            ),
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
    found = row.beyond_select
    if found is None:
        return Cell(text="—", values=(None, None, None))
    return Cell(text=estimate(found), values=(found.value, found.low, found.high))


def _beyond_prior(row: OrderRow) -> Cell:
    return words(None) if row.beyond_static_prior is None else _mean(row.beyond_static_prior)


def _mean(mean: MeanRecord) -> Cell:
    interval = "" if mean.low is None else f" {_TWO.interval(mean.low, mean.high)}"
    return Cell(text=f"{_TWO(mean.value)}{interval}", values=(mean.value,))


REPLAY = Kind(
    ReplayRecord,
    replay_heading,
    (
        replay_verdict_section,
        regrets_section,
        orders_section,
        lacking_section,
        provenance_section,
        references_section,
    ),
    terminal=(regrets_section, orders_section, lacking_section, replay_verdict_section),
)
