"""Every score of every model: one table, the full ranking by each, and how well each orders as fine-tuning does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from markupsafe import Markup

from crossgraft.rank.record import GroundTruthRecord, RankingByScore, RankingRecord, RankRow, ScoreCell
from crossgraft.report.blocks import Block, Figure, Folded, Paragraph, Section, figure_for_screens
from crossgraft.report.plots.scatter import Interval, Point, is_drawable, scatter_figure
from crossgraft.report.plots.svg import family_marks, shortened
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, table_of, whole, words, yes_or_no
from crossgraft.words.formatting import NumberFormat, compress_ranks, counted, joined

_BYTES_PER_MEGABYTE = 1e6
_MOST_LABELLED = 3
_ONE_DECIMAL = NumberFormat(decimals=1)
_CORRELATION = NumberFormat(decimals=2)
_P_VALUE = NumberFormat(decimals=3)
_MOST_NAMED, _LONGEST_NAME = 20, 28
_NAMED, _NARROW = (640, 400), (340, 300)  # pixels


def dots(record: RankingRecord, x: Mapping[str, Interval], y: Mapping[str, Interval], *, last_rank: int) -> dict[str, Point]:
    """One dot for each model of ``y``, in the order of the ranking by the primary score.

    Args:
        record: The ranking.
        x: Model → what goes across the page.
        y: Model → what goes up the page.
        last_rank: Ranks up to this one are written beside their dots.
    """
    marks = family_marks(model.family for model in record.models if model.role == "candidate")
    return {
        row.model: Point(
            x=x[row.model],
            y=y[row.model],
            mark=marks[record.model(row.model).family] if row.role == "candidate" else None,
            rank=row.rank if row.rank is not None and row.rank <= last_rank else None,
        )
        for row in record.primary_ranking.rows
        if row.model in y
    }


def intervals_by_model(record: RankingRecord, score: str) -> dict[str, Interval]:
    """Value and ends of each cell of one score."""
    return {model: Interval.of(cell) for model, cell in record.cells_by_model(score).items()}


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
    folded = [Folded(f"Ranking by {record.title(score)}", [_ranking_table(record, score)]) for score in others]
    return Section(
        name="rankings",
        title="Ranking by each score",
        part="evidence",
        is_first=True,
        blocks=[_ranking_table(record, record.primary_score), *folded],
    )


def _overview(record: RankingRecord) -> Table:
    formats = {score.name: record.number_format(score.name) for score in record.scores}
    cells = {(cell.model, cell.score): cell for cell in record.cells}
    best = {ranking.score: _separable_best(ranking) for ranking in record.rankings}
    order = record.primary_ranking.rows
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
    return [f"No {record.title(score)} for {joined(names)}: {reason.rstrip('.')}." for (score, reason), names in models.items()]


def _ranking_table(record: RankingRecord, score: str) -> Table:
    ranking = record.ranking(score)
    cells = record.cells_by_model(score)
    ordered = [cells[row.model] for row in ranking.rows]
    as_text = record.number_format(score)
    seconds = NumberFormat.for_column([max((cell.seconds for cell in ordered), default=0.0)], digits=2)
    best = _separable_best(ranking)
    columns = [
        Column("Rank", numeric=True),
        Column("Model"),
        Column(record.title(score), numeric=True),
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
        caption=f"Ranking by {record.title(score)}",
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
    primary, own = record.primary_title, intervals_by_model(record, record.primary_score)
    others = {score.name: intervals_by_model(record, score.name) for score in record.scores if score.name != record.primary_score}
    points = {score: [*dots(record, own, other, last_rank=_MOST_LABELLED).values()] for score, other in others.items()}
    drawn = {score: number for score, of_score in points.items() if (number := sum(map(is_drawable, of_score)))}
    if not drawn:
        return None
    drawings = [
        scatter_figure(
            points[score],
            x_label=f"{primary} (score)",
            y_label=f"{record.title(score)} (score)",
            identifier=f"{source.prefix}pair-{index}",
        )
        for index, score in enumerate(drawn)
    ]
    least, most = min(drawn.values()), max(drawn.values())
    per_panel = counted(most, "dot") if least == most else f"{least} to {most} dots"
    top = [row.model for row in record.primary_ranking.rows if row.rank][:_MOST_LABELLED]
    numbered = ", ".join(f"{rank} {name}" for rank, name in enumerate(top, start=1))
    caption = (
        f"{primary} against each other score, {per_panel} per panel, one per model, with 95 % intervals; colours as in the "
        "ranking, controls hollow, their intervals cut off at the frame. Dots along a rising line: the two scores agree on the "
        "order. Numbers are ranks by "
        f"{primary}: {numbered}."
    )
    return Figure(drawings=drawings, caption=caption)


def agreement_section(source: Source[RankingRecord]) -> Section | None:
    """How well each score orders the models as fine-tuning does; None without fine-tuned results."""
    record = source.record
    if record.ground_truth is None and not record.agreement:
        return None
    blocks: list[Block] = []
    if record.ground_truth is not None:
        blocks += _agreement_figures(source, record.ground_truth)
    if record.agreement:
        blocks.append(_agreement_table(record))
    if record.ground_truth is not None and record.ground_truth.unmatched:
        names = joined(record.ground_truth.unmatched)
        blocks.append(Paragraph(f"Fine-tuned results without a ranked model of that name: {names}.", tone="quiet"))
    return Section(name="agreement", title="Agreement with fine-tuned results", part="evidence", blocks=blocks)


def _agreement_figures(source: Source[RankingRecord], truth: GroundTruthRecord) -> list[Block]:
    """The primary score against the results, with the names of the models; then the others, with its ranks."""
    record, title, rows = source.record, source.record.primary_title, source.record.primary_ranking.rows
    results = {
        row.model: Interval(truth.values[row.model]) for row in rows if row.role == "candidate" and row.model in truth.values
    }
    points = {
        score.name: dots(record, intervals_by_model(record, score.name), results, last_rank=len(rows)) for score in record.scores
    }
    of_primary = points.pop(record.primary_score)
    named = [point._replace(name=shortened(model, _LONGEST_NAME)) for model, point in of_primary.items()]
    known = sum(map(is_drawable, named))
    caption = (
        f"Results of {counted(known, 'fine-tuned model')} ({truth.column}) against {title} with its 95 % interval. A useful "
        f"score rises from left to right. Numbers in the place of names are ranks by {title}."
    )

    def draw(*, identifier: str, is_wide: bool) -> Markup:
        width, height = _NAMED if is_wide else _NARROW
        shown = named if is_wide and known <= _MOST_NAMED else [*of_primary.values()]
        return _agreement_figure(record, record.primary_score, truth, shown, identifier=identifier, width=width, height=height)

    blocks: list[Block] = [figure_for_screens(draw, identifier=f"{source.prefix}agreement", caption=caption)]
    drawings = [
        _agreement_figure(record, score, truth, [*of_score.values()], identifier=f"{source.prefix}agreement-{place}")
        for place, (score, of_score) in enumerate(points.items())
        if any(map(is_drawable, of_score.values()))
    ]
    if drawings:
        ranks = "; ".join(f"{row.rank} {row.model}" for row in rows if row.rank is not None and row.model in truth.values)
        caption = f"The same for each other score. Numbers are ranks by {title}: {ranks}."
        blocks.append(Figure(drawings=drawings, caption=caption))
    return blocks


def _agreement_figure(
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
        x_label=f"{record.title(score)} (score)",
        y_label=f"{truth.column} (as given){agreed}",
        identifier=identifier,
        width=width,
        height=height,
    )


def _agreement_table(record: RankingRecord) -> Table:
    return table_of(
        record.agreement,
        [
            (Column("Score"), lambda entry: words(record.title(entry.score))),
            (Column("Models within"), lambda entry: words(entry.family or "all models")),
            (Column("n", numeric=True), lambda entry: whole(entry.num_models)),
            (Column("Weighted Kendall", numeric=True), lambda entry: number(entry.weighted_kendall, _CORRELATION)),
            (INTERVAL, lambda entry: interval(entry.low, entry.high, _CORRELATION)),
            (Column("p (permutation)", numeric=True), lambda entry: number(entry.p_value, _P_VALUE)),
        ],
        caption="Rank agreement of each score with the fine-tuned results (1: same order, −1: reversed)",
        file_name="agreement",
        notes=[
            f"{record.title(entry.score)}, {entry.family or 'all models'}: {entry.reason.rstrip('.')}."
            for entry in record.agreement
            if entry.reason
        ],
    )
