"""How well each score orders the models as fine-tuning does: the scores against the results, and rank agreement."""

from __future__ import annotations

from markupsafe import Markup

from crossgraft.rank.page_scores import as_interval
from crossgraft.rank.record import GroundTruthRecord, RankingRecord
from crossgraft.rank.words import cells_by_model, score_title
from crossgraft.report.blocks import Block, Figure, Paragraph, Section, figure_for_screens
from crossgraft.report.plots.scatter import Interval, Point, is_drawable, scatter_figure
from crossgraft.report.plots.svg import family_marks, shortened
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, Table, interval, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, counted, joined

_CORRELATION = NumberFormat(decimals=2)
_P_VALUE = NumberFormat(decimals=3)
_MOST_NAMED, _LONGEST_NAME = 20, 28
_NAMED, _NARROW = (640, 400), (340, 300)  # pixels


def agreement_section(source: Source[RankingRecord]) -> Section | None:
    """How well each score orders the models as fine-tuning does; None without fine-tuned results."""
    record = source.record
    if record.ground_truth is None and not record.agreement:
        return None
    blocks: list[Block] = []
    if record.ground_truth is not None:
        blocks += _figures(source, record.ground_truth)
    if record.agreement:
        blocks.append(_table(record))
    if record.ground_truth is not None and record.ground_truth.unmatched:
        names = joined(record.ground_truth.unmatched)
        blocks.append(Paragraph(f"Fine-tuned results without a ranked model of that name: {names}.", tone="quiet"))
    return Section(name="agreement", title="Agreement with fine-tuned results", part="evidence", blocks=blocks)


def _figures(source: Source[RankingRecord], truth: GroundTruthRecord) -> list[Block]:
    """The primary score against the results, with the names of the models; then the others, with its ranks."""
    record = source.record
    primary = record.primary_score
    title = score_title(record, primary)
    points = _points(record, primary, truth)
    known = sum(map(is_drawable, points))
    are_named = known <= _MOST_NAMED
    caption = (
        f"Results of {counted(known, 'fine-tuned model')} ({truth.column}) against {title} with its 95 % interval. A useful "
        f"score rises from left to right. Numbers in the place of names are ranks by {title}."
    )

    def draw(*, identifier: str, is_wide: bool) -> Markup:
        width, height = _NAMED if is_wide else _NARROW
        named = points if is_wide and are_named else [point._replace(name=None) for point in points]
        return _drawn(record, primary, truth, named, identifier=identifier, width=width, height=height)

    blocks: list[Block] = [figure_for_screens(draw, identifier=f"{source.prefix}agreement", caption=caption)]
    panels = {
        score.name: [point._replace(name=None) for point in _points(record, score.name, truth)]
        for score in record.scores
        if score.name != primary
    }
    drawings = [
        _drawn(record, score, truth, of_score, identifier=f"{source.prefix}agreement-{place}")
        for place, (score, of_score) in enumerate(panels.items())
        if any(map(is_drawable, of_score))
    ]
    if drawings:
        ranked = [row for row in record.ranking(primary).rows if row.rank is not None and row.model in truth.values]
        ranks = "; ".join(f"{row.rank} {row.model}" for row in ranked)
        caption = f"The same for each other score. Numbers are ranks by {title}: {ranks}."
        blocks.append(Figure(drawings=drawings, caption=caption))
    return blocks


def _points(record: RankingRecord, score: str, truth: GroundTruthRecord) -> list[Point]:
    """One dot for each candidate with a result, in the order of the ranking by the primary score."""
    marks = family_marks(model.family for model in record.models if model.role == "candidate")
    cells = cells_by_model(record, score)
    return [
        Point(
            x=as_interval(cells[row.model]),
            y=Interval(truth.values[row.model]),
            mark=marks[record.model(row.model).family],
            rank=row.rank,
            name=shortened(row.model, _LONGEST_NAME),
        )
        for row in record.ranking(record.primary_score).rows
        if row.model in truth.values and row.role == "candidate"
    ]


def _drawn(
    record: RankingRecord,
    score: str,
    truth: GroundTruthRecord,
    points: list[Point],
    *,
    identifier: str,
    width: float = 300,
    height: float = 250,
) -> Markup:
    own = [entry.weighted_kendall for entry in record.agreement if entry.score == score and entry.family is None]
    agreed = "" if not own or own[0] is None else f", weighted Kendall {_CORRELATION(own[0])}"
    return scatter_figure(
        points,
        x_label=f"{score_title(record, score)} (score)",
        y_label=f"{truth.column} (as given){agreed}",
        identifier=identifier,
        width=width,
        height=height,
    )


def _table(record: RankingRecord) -> Table:
    return table_of(
        record.agreement,
        [
            (Column("Score"), lambda entry: words(score_title(record, entry.score))),
            (Column("Models within"), lambda entry: words(entry.family or "all models")),
            (Column("n", numeric=True), lambda entry: whole(entry.num_models)),
            (Column("Weighted Kendall", numeric=True), lambda entry: number(entry.weighted_kendall, _CORRELATION)),
            (INTERVAL, lambda entry: interval(entry.low, entry.high, _CORRELATION)),
            (Column("p (permutation)", numeric=True), lambda entry: number(entry.p_value, _P_VALUE)),
        ],
        caption="Rank agreement of each score with the fine-tuned results (1: same order, −1: reversed)",
        file_name="agreement",
        notes=[
            f"{score_title(record, entry.score)}, {entry.family or 'all models'}: {entry.reason.rstrip('.')}."
            for entry in record.agreement
            if entry.reason
        ],
    )
