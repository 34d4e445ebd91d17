"""How long the gradient of each building block was from step to step, where that was logged."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.report.blocks import Block, Figure, Folded, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, table_of, whole, words
from crossgraft.tune.gradients_record import GradientNormsRecord
from crossgraft.tune.plot_gradient_norms import MOST_NAMED_BLOCKS, BlockCurve, gradient_norms_figure
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import NumberFormat, counted


def gradients_section(source: Source[TuningRecord]) -> Section | None:
    """One curve per block of the first training that was picked, and numbers of all blocks; None where nothing was logged."""
    records = source.record.gradient_norms
    if not records:
        return None
    first = records[0]
    curves = [BlockCurve(each.block, each.averages) for each in first.blocks]
    wide, narrow = (
        gradient_norms_figure(
            curves,
            first.steps,
            y_label="Norm of the gradient (moving average)",
            identifier=f"{source.prefix}gradients{'' if is_wide else '-narrow'}",
            is_wide=is_wide,
        )
        for is_wide in (True, False)
    )
    blocks: list[Block] = [Figure([wide], caption=_caption(first, others=len(records) - 1), narrow=[narrow])]
    tables = [_table(each, several=len(records) > 1) for each in records]
    blocks.append(Folded("Every block as a table", tables))
    return Section(name="gradients", title="Gradients by block", part="evidence", blocks=blocks)


def _caption(record: GradientNormsRecord, *, others: int) -> str:
    which = f" Of {counted(others + 1, 'training')} that were picked, this is {record.job}." if others else ""
    unnamed = (
        f" Of {len(record.blocks)} blocks, those at regular distances are named."
        if len(record.blocks) > MOST_NAMED_BLOCKS
        else ""
    )
    return (
        "L2 norm of the gradient of the loss with all its terms for the trained parameters of each building block, before "
        "clipping, from the first block (blue) to the last (red). Each curve is an exponential moving average: a step counts "
        f"{record.smoothing:g} times what the step after it counts. Every step is in gradient_norms.csv.{which}{unnamed}"
    )


def _table(record: GradientNormsRecord, *, several: bool) -> Table:
    norms = NumberFormat.for_column([value for row in record.blocks for value in (row.median, row.largest)], digits=3)
    return table_of(
        record.blocks,
        [
            (Column("Block"), lambda row: words(row.block)),
            (Column("Median norm", numeric=True), lambda row: number(row.median, norms)),
            (Column("Largest norm", numeric=True), lambda row: number(row.largest, norms)),
            (Column("Spikes", numeric=True), lambda row: whole(row.num_spikes)),
        ],
        caption=f"Gradients by block{f', {record.job}' if several else ''}",
        file_name=_file_name(record, several=several),
        notes=_notes(record),
    )


def _file_name(record: GradientNormsRecord, *, several: bool) -> str:
    return f"gradients-{record.job}" if several else "gradients"


def _notes(record: GradientNormsRecord) -> Sequence[str]:
    return [
        f"Over {counted(record.num_steps, 'step')}. A spike is a step with more than twice the moving average of the step "
        "before."
    ]
