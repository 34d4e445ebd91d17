"""With several labels per image: what the primary score says about each model for each label."""

from __future__ import annotations

from crossgraft.rank.lookup import cells_by_model, score_title
from crossgraft.rank.record import RankingRecord
from crossgraft.report.blocks import Block, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, whole, words
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import NumberFormat


def labels_section(source: Source[RankingRecord]) -> Section | None:
    """One row per label, one column per model in the order of the ranking; None with one class per image."""
    record = source.record
    if recorded_task(record.dataset).partitions:
        return None
    title = score_title(record, record.primary_score)
    blocks: list[Block] = [
        Paragraph(
            f"{title} of each model for one label at a time; the ranking is by the mean. Single labels have no intervals "
            "here, so small differences say nothing."
        ),
        _table(record),
    ]
    return Section(name="labels", title="Each label by itself", part="evidence", blocks=blocks)


def _table(record: RankingRecord) -> Table:
    cells = cells_by_model(record, record.primary_score)
    ordered = [cells[row.model] for row in record.ranking(record.primary_score).rows if cells[row.model].per_label]
    counts = dict(zip(record.dataset.class_names, record.dataset.class_counts, strict=True))
    scored = [label for label in counts if any(label in cell.per_label for cell in ordered)]
    as_text = NumberFormat.for_column([value for cell in ordered for value in cell.per_label.values()])
    rows: list[list[Cell]] = [
        [
            words(label),
            whole(counts[label]),
            *(number(cell.per_label.get(label), as_text) for cell in ordered),
        ]
        for label in scored
    ]
    left_out = [f"{label}: {why}" for label, why in record.labels_left_out.items()]
    return Table(
        caption=f"{score_title(record, record.primary_score)} of each model for each label",
        columns=[
            Column("Label"),
            Column("Images with it", numeric=True),
            *(Column(cell.model, numeric=True) for cell in ordered),
        ],
        rows=rows,
        file_name=f"labels-{record.primary_score}",
        notes=[f"Not scored: {text}" for text in left_out],
    )
