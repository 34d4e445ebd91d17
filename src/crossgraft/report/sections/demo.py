"""What the demo shows around its ranking: the price of a careless split, and real fine-tuning as a check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from crossgraft.records import DemoRecord, FineTunedRow, RankingRecord
from crossgraft.report.blocks import Block, Figure, Heading, Items, Paragraph, Section
from crossgraft.report.formatting import NumberFormat, counted
from crossgraft.report.plots import Interval, scatter_figure, split_figure
from crossgraft.report.sections._lookup import score_title
from crossgraft.report.sections._points import against_primary
from crossgraft.report.sections.verdict import ranking_heading
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, whole, words

_ACCURACY = NumberFormat(decimals=3)


def of_its_ranking(
    builder: Callable[[Source[RankingRecord]], Section | None],
) -> Callable[[Source[DemoRecord]], Section | None]:
    """Let a section of a ranking read the ranking inside a demo."""
    return lambda source: builder(source.showing(source.record.ranking))


def demo_heading(source: Source[DemoRecord]) -> Heading:
    """The heading of the ranking, marked as a demo."""
    heading = ranking_heading(source.showing(source.record.ranking))
    return replace(heading, title=f"Demo: {heading.title}")


def split_section(source: Source[DemoRecord]) -> Section:
    """The same probe under a shuffled and a grouped split."""
    comparison = source.record.split_comparison
    gap = comparison.shuffled_accuracy - comparison.grouped_accuracy
    caption = (
        f"Test accuracy of {comparison.probe} with 95 % intervals. Shuffled minus grouped: {_ACCURACY(gap)}; what is "
        "above 0 does not carry over to new groups."
    )
    figure = Figure([split_figure(comparison, identifier=f"{source.prefix}split")], caption=caption)
    return Section(
        name="split",
        title="Why the split matters",
        part="evidence",
        blocks=[Paragraph(comparison.explanation), figure],
    )


def fine_tuned_section(source: Source[DemoRecord]) -> Section | None:
    """The primary score against accuracy after real fine-tuning, and what this cannot show."""
    demo = source.record
    blocks: list[Block] = []
    if demo.fine_tuned:
        blocks += [_figure(source), _table(demo.fine_tuned)]
    if demo.limits:
        blocks += [Paragraph("What this demo cannot show:"), Items(demo.limits)]
    if not blocks:
        return None
    return Section(name="fine-tuned", title="Check against real fine-tuning", part="evidence", blocks=blocks)


def _figure(source: Source[DemoRecord]) -> Figure:
    record, rows = source.record.ranking, source.record.fine_tuned
    title = score_title(record, record.primary_score)
    drawings = [
        scatter_figure(
            against_primary(record, {row.model: accuracy(row) for row in rows}, last_rank=len(rows)),
            x_label=f"{title} (score)",
            y_label=f"{what} (fraction)",
            identifier=f"{source.prefix}fine-tuned-{index}",
            width=400,
            height=300,
        )
        for index, (what, accuracy) in enumerate(
            [("Accuracy, whole network tuned", _full), ("Accuracy, linear layer only", _linear)]
        )
    ]
    images = counted(max(row.num_test_images for row in rows), "test image")
    caption = (
        f"Test accuracy of {counted(len(rows), 'model')} on {images} against {title}, with 95 % intervals; colours as "
        "in the ranking, controls hollow. Left the whole network was tuned, right only a linear layer. Numbers are "
        f"ranks by {title}."
    )
    return Figure(drawings, caption=caption)


def _full(row: FineTunedRow) -> Interval:
    return Interval(row.full_accuracy, row.full_low, row.full_high)


def _linear(row: FineTunedRow) -> Interval:
    return Interval(row.linear_accuracy, row.linear_low, row.linear_high)


def _table(rows: Sequence[FineTunedRow]) -> Table:
    columns = [
        Column("Model"),
        Column("Whole network", numeric=True, csv_titles=("full accuracy",)),
        Column("95 % interval", numeric=True, csv_titles=("full low", "full high")),
        Column("Linear layer", numeric=True, csv_titles=("linear accuracy",)),
        Column("95 % interval", numeric=True, csv_titles=("linear low", "linear high")),
        Column("Test images", numeric=True),
        Column("Seeds", numeric=True),
    ]
    return Table(
        caption="Test accuracy after fine-tuning (fraction of test images)",
        columns=columns,
        rows=[_row(row) for row in rows],
        file_name="fine-tuned",
    )


def _row(row: FineTunedRow) -> list[Cell]:
    return [
        words(row.model),
        number(row.full_accuracy, _ACCURACY),
        interval(row.full_low, row.full_high, _ACCURACY),
        number(row.linear_accuracy, _ACCURACY),
        interval(row.linear_low, row.linear_high, _ACCURACY),
        whole(row.num_test_images),
        whole(row.seeds),
    ]
