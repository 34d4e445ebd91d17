"""Every score of every model: one table across scores, then the full ranking by each score."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from crossgraft.rank.record import RankingByScore, RankingRecord, RankRow, ScoreCell
from crossgraft.rank.words import cells_by_model, score_format, score_title
from crossgraft.report.blocks import Block, Figure, Folded, Section
from crossgraft.report.plots.scatter import Interval, Point, is_drawable, scatter_figure
from crossgraft.report.plots.svg import family_marks
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, table_of, whole, words, yes_or_no
from crossgraft.words.formatting import NumberFormat, compress_ranks, counted, joined


def against_primary(record: RankingRecord, other: Mapping[str, Interval], *, last_rank: int) -> list[Point]:
    """One dot for each model of ``other``, in the order of the ranking by the primary score.

    Args:
        record: The ranking.
        other: Model → what goes up the page.
        last_rank: Ranks up to this one are written beside their dots.
    """
    marks = family_marks(model.family for model in record.models if model.role == "candidate")
    primary = cells_by_model(record, record.primary_score)
    return [
        Point(
            x=as_interval(primary[row.model]),
            y=other[row.model],
            mark=marks[record.model(row.model).family] if row.role == "candidate" else None,
            rank=row.rank if row.rank is not None and row.rank <= last_rank else None,
        )
        for row in record.ranking(record.primary_score).rows
        if row.model in other
    ]


def as_interval(cell: ScoreCell) -> Interval:
    """Value and ends of a cell."""
    return Interval(cell.value, cell.low, cell.high)


_BYTES_PER_MEGABYTE = 1e6
_MOST_LABELLED = 3
_ONE_DECIMAL = NumberFormat(decimals=1)


def scores_section(source: Source[RankingRecord]) -> Section:
    """Models by scores, and the primary score against each other one."""
    blocks: list[Block] = [_overview(source.record)]
    figure = _score_against_score(source)
    if figure is not None:
        blocks.append(figure)
    blocks.append(Folded("What each score needs and costs", [_costs(source.record)]))
    return Section(name="scores", title="All scores", part="evidence", blocks=blocks)


def rankings_section(source: Source[RankingRecord]) -> Section:
    """One full table a score; the primary one is open."""
    record = source.record
    others = [ranking.score for ranking in record.rankings if ranking.score != record.primary_score]
    folded = [Folded(f"Ranking by {score_title(record, score)}", [_ranking_table(record, score)]) for score in others]
    return Section(
        name="rankings",
        title="Ranking by each score",
        part="evidence",
        is_first=True,
        blocks=[_ranking_table(record, record.primary_score), *folded],
    )


def _overview(record: RankingRecord) -> Table:
    formats = {score.name: score_format(record, score.name) for score in record.scores}
    cells = {(cell.model, cell.score): cell for cell in record.cells}
    best = {ranking.score: _separable_best(ranking) for ranking in record.rankings}
    order = record.ranking(record.primary_score).rows
    columns = [Column("Model"), *(Column(score.title, numeric=True) for score in record.scores)]
    rows = [
        [
            words(row.model),
            *(
                _value(cells.get((row.model, score.name)), formats[score.name], strong=best.get(score.name) == row.model)
                for score in record.scores
            ),
        ]
        for row in order
    ]
    return Table(
        caption="Value of each score for each model; larger is better in every column",
        columns=columns,
        rows=rows,
        file_name="scores",
        muted_rows=_controls(order),
        notes=[
            "Scales differ: compare within a column. Bold: best, and separable from every other model.",
            *_reasons_without_value(record),
        ],
    )


def _costs(record: RankingRecord) -> Table:
    """What the scores looked at, and what one evaluation of all models took."""
    by_score: defaultdict[str, list[ScoreCell]] = defaultdict(list)
    for cell in record.cells:
        by_score[cell.score].append(cell)
    totals = {name: sum(cell.seconds for cell in cells) for name, cells in by_score.items()}
    seconds = NumberFormat.for_column(totals.values(), digits=3)
    largest = {name: max(cell.peak_bytes for cell in cells) for name, cells in by_score.items()}
    return table_of(
        record.scores,
        [
            (Column("Score"), lambda score: words(score.title)),
            (Column("Needs"), lambda score: words(", ".join(score.inputs).replace("_", " "))),
            (Column("Cost"), lambda score: words(score.cost or None)),
            (Column("Seconds, all models", numeric=True), lambda score: number(totals[score.name], seconds)),
            (
                Column("Largest memory, MB", numeric=True),
                lambda score: number(largest[score.name] / _BYTES_PER_MEGABYTE, _ONE_DECIMAL),
            ),
        ],
        caption="Needs and cost of each score",
        file_name="costs",
        notes=["One evaluation of each model; interval and shuffled labels take 25 more."],
    )


def _value(cell: ScoreCell | None, as_text: NumberFormat, *, strong: bool) -> Cell:
    return number(cell.value if cell else None, as_text, strong=strong)


def _separable_best(ranking: RankingByScore) -> str | None:
    if ranking.num_ranked < 2:
        return None
    return next((row.model for row in ranking.rows if row.rank == 1 and not row.not_separable_from), None)


def _controls(rows: Iterable[RankRow]) -> frozenset[int]:
    return frozenset(index for index, row in enumerate(rows) if row.role != "candidate")


def _reasons_without_value(record: RankingRecord) -> list[str]:
    models: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in record.cells:
        if cell.value is None:
            models[cell.score, cell.reason or "no reason was recorded"].append(cell.model)
    return [
        f"No {score_title(record, score)} for {joined(names)}: {reason.rstrip('.')}." for (score, reason), names in models.items()
    ]


def _ranking_table(record: RankingRecord, score: str) -> Table:
    ranking = record.ranking(score)
    cells = cells_by_model(record, score)
    ordered = [cells[row.model] for row in ranking.rows]
    as_text = score_format(record, score)
    seconds = NumberFormat.for_column([max((cell.seconds for cell in ordered), default=0.0)], digits=2)
    best = _separable_best(ranking)
    columns = [
        Column("Rank", numeric=True),
        Column("Model"),
        Column(score_title(record, score), numeric=True),
        INTERVAL,
        Column("Not separable from", csv_titles=("not separable from ranks",)),
        Column("Largest shuffled", numeric=True, page_only=True),
        Column("Above shuffled"),
        Column("Seconds", numeric=True, page_only=True),
        Column("Memory, MB", numeric=True, page_only=True),
    ]
    rows = [
        [
            whole(row.rank),
            words(row.model),
            number(cell.value, as_text, strong=row.model == best),
            interval(cell.low, cell.high, as_text),
            _separability(row, ranking.num_ranked),
            number(cell.largest_shuffled, as_text),
            yes_or_no(cell.above_shuffled),
            number(cell.seconds, seconds),
            number(cell.peak_bytes / _BYTES_PER_MEGABYTE, _ONE_DECIMAL),
        ]
        for row, cell in zip(ranking.rows, ordered, strict=True)
    ]
    return Table(
        caption=f"Ranking by {score_title(record, score)}",
        columns=columns,
        rows=rows,
        file_name=f"ranking-{score}",
        row_heading=1,
        muted_rows=_controls(ranking.rows),
        notes=_notes(ordered),
    )


def _separability(row: RankRow, num_ranked: int) -> Cell:
    if row.role != "candidate":
        return words("control")
    if row.rank is None:
        return words(None)
    if num_ranked == 1:
        return words("the only model")
    if not row.not_separable_from:
        return Cell("none", ("none: separable from all",))
    return Cell(compress_ranks(row.not_separable_from), (", ".join(map(str, row.not_separable_from)),))


def _notes(cells: Iterable[ScoreCell]) -> list[str]:
    """Why numbers of a ranking table are missing, once for each reason."""
    models: defaultdict[str, list[str]] = defaultdict(list)
    for cell in cells:
        if cell.value is None:
            models[f"No value: {cell.reason or 'no reason was recorded'}"].append(cell.model)
        elif cell.low is None:
            models[f"No interval: {cell.no_interval_reason or 'no reason was recorded'}"].append(cell.model)
    return [f"{reason.rstrip('.')} ({joined(names)})." for reason, names in models.items()]


def _score_against_score(source: Source[RankingRecord]) -> Figure | None:
    """A panel for each other score that has values; None when there is none."""
    record = source.record
    primary = score_title(record, record.primary_score)
    others = [score for score in record.scores if score.name != record.primary_score]
    points = {
        score.name: against_primary(
            record,
            {model: as_interval(cell) for model, cell in cells_by_model(record, score.name).items()},
            last_rank=_MOST_LABELLED,
        )
        for score in others
    }
    others = [score for score in others if any(map(is_drawable, points[score.name]))]
    if not others:
        return None
    drawings = [
        scatter_figure(
            points[score.name],
            x_label=f"{primary} (score)",
            y_label=f"{score.title} (score)",
            identifier=f"{source.prefix}pair-{index}",
        )
        for index, score in enumerate(others)
    ]
    drawn = [sum(map(is_drawable, points[score.name])) for score in others]
    dots = counted(max(drawn), "dot") if len(set(drawn)) == 1 else f"{min(drawn)} to {max(drawn)} dots"
    top = [row.model for row in record.ranking(record.primary_score).rows if row.rank][:_MOST_LABELLED]
    numbered = ", ".join(f"{rank} {name}" for rank, name in enumerate(top, start=1))
    caption = (
        f"{primary} against each other score, {dots} per panel, one per model, with 95 % intervals; colours as in the "
        "ranking, controls hollow, their intervals cut off at the frame. Dots along a rising line: the two scores agree on the "
        "order. Numbers are ranks by "
        f"{primary}: {numbered}."
    )
    return Figure(drawings=drawings, caption=caption)
