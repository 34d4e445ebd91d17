"""Agreement with fine-tuned results that the user gave."""

from __future__ import annotations

from crossgraft.rank.lookup import joined, score_title
from crossgraft.rank.page_points import against_primary
from crossgraft.rank.record import AgreementRecord, GroundTruthRecord, RankingRecord
from crossgraft.report.blocks import Block, Figure, Paragraph, Section
from crossgraft.report.plots.scatter import Interval, is_drawable, scatter_figure
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, whole, words
from crossgraft.words.formatting import NumberFormat, counted

_CORRELATION = NumberFormat(decimals=2)
_P_VALUE = NumberFormat(decimals=3)


def agreement_section(source: Source[RankingRecord]) -> Section | None:
    """How well each score orders the models as fine-tuning does; None without fine-tuned results."""
    record = source.record
    if record.ground_truth is None and not record.agreement:
        return None
    blocks: list[Block] = []
    if record.ground_truth is not None:
        blocks.append(_figure(source, record.ground_truth))
    if record.agreement:
        blocks.append(_table(record))
    if record.ground_truth is not None and record.ground_truth.unmatched:
        names = joined(record.ground_truth.unmatched)
        blocks.append(Paragraph(f"Fine-tuned results without a ranked model of that name: {names}.", tone="quiet"))
    return Section(name="agreement", title="Agreement with fine-tuned results", part="evidence", blocks=blocks)


def _figure(source: Source[RankingRecord], truth: GroundTruthRecord) -> Figure:
    record = source.record
    title = score_title(record, record.primary_score)
    results = {model: Interval(value) for model, value in truth.values.items()}
    points = [point for point in against_primary(record, results, last_rank=len(results)) if point.mark]
    drawing = scatter_figure(
        points,
        x_label=f"{title} (score)",
        y_label=f"{truth.column} (as given)",
        identifier=f"{source.prefix}agreement",
        width=400,
        height=300,
    )
    models = counted(sum(map(is_drawable, points)), "fine-tuned model")
    caption = (
        f"Results of {models} ({truth.column}) against {title} with its 95 % interval. A useful score rises from left to "
        f"right; numbers are ranks by {title}."
    )
    return Figure(drawings=[drawing], caption=caption)


def _table(record: RankingRecord) -> Table:
    columns = [
        Column("Score"),
        Column("Models within"),
        Column("n", numeric=True),
        Column("Weighted Kendall", numeric=True),
        Column("95 % interval", numeric=True, csv_titles=("low", "high")),
        Column("p (permutation)", numeric=True),
    ]
    return Table(
        caption="Rank agreement of each score with the fine-tuned results (1: same order, −1: reversed)",
        columns=columns,
        rows=[_row(record, entry) for entry in record.agreement],
        file_name="agreement",
        notes=[
            f"{score_title(record, entry.score)}, {entry.family or 'all models'}: {entry.reason.rstrip('.')}."
            for entry in record.agreement
            if entry.reason
        ],
    )


def _row(record: RankingRecord, entry: AgreementRecord) -> list[Cell]:
    return [
        words(score_title(record, entry.score)),
        words(entry.family or "all models"),
        whole(entry.num_models),
        number(entry.weighted_kendall, _CORRELATION),
        interval(entry.low, entry.high, _CORRELATION),
        number(entry.p_value, _P_VALUE),
    ]
