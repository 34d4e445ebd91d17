"""A ranking as it ends in the terminal: at most 100 columns, answer last, no colour needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import (
    STATIC_PRIOR,
    AgreementRecord,
    PriorRecord,
    RankingByScore,
    RankingRecord,
    RankRow,
    ScoreCell,
)
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import MISSING, NumberFormat, counted, describe_classes, duration, joined

MAX_MODEL_NAME = 38
MAX_NAME_BESIDE_PRIOR = 28
MAX_CLASSES_SHOWN = 8


def ranking_text(record: RankingRecord, report: Path | None) -> str:
    """Data and zoo, the table by the primary score, known results, warnings, the advice, the path of the report."""
    ranking = record.ranking(record.primary_score)
    end = wrap(record.advice) + ("\n" + place("Report", report) if report else "")
    known = [_prior(record.prior)] if record.prior else []
    parts = [_heading(record), _table(record, ranking), *known, *_notes(record, ranking), *_warnings(record), end]
    return "\n\n".join(parts)


def _heading(record: RankingRecord) -> str:
    data = record.dataset
    groups = (
        "patient leakage not checked (no group column)"
        if data.num_groups is None
        else f"{counted(data.num_groups, 'group')} by {data.group_column}"
    )
    classes = describe_classes(data, labels_left_out=len(record.labels_left_out))
    if recorded_task(data).partitions and len(data.class_counts) <= MAX_CLASSES_SHOWN:
        classes += f" ({' / '.join(map(str, data.class_counts))})"
    first = " · ".join([data.name, f"{counted(data.num_images, 'image')}, {data.rows_used}", classes, groups])
    candidates = sum(model.role == "candidate" for model in record.models)
    title = _title(record, record.primary_score)
    second = " · ".join(
        [
            counted(candidates, "model"),
            counted(len(record.models) - candidates, "random-weight control"),
            f"ordered by {title} ({record.primary_reason})",
        ]
    )
    return f"{wrap(first)}\n{wrap(second)}"


def _table(record: RankingRecord, ranking: RankingByScore) -> str:
    cells = [record.cell(row.model, record.primary_score) for row in ranking.rows]
    as_text = NumberFormat.for_column(
        [cell.value for cell in cells],
        interval_widths=[cell.high - cell.low for cell in cells if cell.high is not None and cell.low is not None],
    )
    title = _title(record, record.primary_score)
    header = ["rank", "model", title, "95 % interval", "not separable from", "cost"]
    rows = [_row(record, row, cell, as_text, ranking.num_ranked) for row, cell in zip(ranking.rows, cells, strict=True)]
    if ranking.best_shuffled is not None:
        label = f"shuffled labels (best of {ranking.num_shuffled})"
        rows.append([MISSING, label, as_text(ranking.best_shuffled), "", "control", ""])
    return text_table(header, rows, right=["rank", title, "95 % interval", "cost"])


def _title(record: RankingRecord, name: str) -> str:
    return next(score.title for score in record.scores if score.name == name)


def _row(record: RankingRecord, row: RankRow, cell: ScoreCell, as_text: NumberFormat, num_ranked: int) -> list[str]:
    model = record.model(row.model)
    seconds = model.feature_seconds + sum(c.seconds for c in record.cells if c.model == row.model)
    interval = as_text.interval(cell.low, cell.high)
    if cell.value is not None and cell.low is None:
        interval = "none"
    none = "separable" if num_ranked > 1 else "the only model"
    note = "control" if row.role != "candidate" else compress_ranks(row.not_separable_from) or none
    if cell.value is None:
        note = "no value"
    elif row.role == "candidate" and cell.above_shuffled is False:
        note += " (not above shuffled)"
    name = shorten(row.model, MAX_MODEL_NAME)
    return [str(row.rank or MISSING), name, as_text(cell.value), interval, note, duration(seconds)]


def _prior(prior: PriorRecord) -> str:
    """The static prior as a control, beside what it and the scores say together."""
    header = ["model", "targets", "static prior", "with scores", "probability best", "95 % of ranks"]
    rows = [
        [
            shorten(row.model, MAX_NAME_BESIDE_PRIOR),
            str(row.num_targets),
            str(row.prior_rank or MISSING),
            str(row.posterior_rank),
            f"{row.probability_best:.2f}",
            f"{row.rank_low}–{row.rank_high}",
        ]
        for row in prior.rows
    ]
    return f"{text_table(header, rows, right=header[1:])}\n{wrap(prior.summary)}"


def _warnings(record: RankingRecord) -> list[str]:
    """Which scores warned: the sentences stand in the report."""
    warned = {cell.score for cell in record.cells if cell.warnings}
    titles = [score.title for score in record.scores if score.name in warned]
    if not titles:
        return []
    which = joined(titles)
    return [wrap(f"Warnings of {which}: see “Warnings of scores” in the report (--json: cells[].warnings).")]


def _notes(record: RankingRecord, ranking: RankingByScore) -> list[str]:
    reasons = {row.model: record.cell(row.model, ranking.score).reason for row in ranking.rows}
    without = [wrap(f"{model}: {reason}", indent="  ") for model, reason in reasons.items() if reason]
    truth = record.ground_truth
    rows = [row for row in record.agreement if row.score in (ranking.score, STATIC_PRIOR)]
    titles = {ranking.score: _title(record, ranking.score), STATIC_PRIOR: "the static prior"}
    agreement = [_agreement_line(titles[row.score], row, truth.column) for row in rows] if truth else []
    return ["\n".join(lines) for lines in (without, agreement) if lines]


def _agreement_line(title: str, row: AgreementRecord, column: str) -> str:
    among = counted(row.num_models, "model") + (f" of family {row.family}" if row.family else "")
    start = f"Agreement of {title} with {column} over {among}: "
    if row.weighted_kendall is None:
        return wrap(f"{start}{row.reason}", indent="  ")
    as_text = NumberFormat(decimals=2)
    interval = "" if row.low is None else f" {as_text.interval(row.low, row.high)}"
    measured = f"weighted Kendall {as_text(row.weighted_kendall)}{interval}, p = {row.p_value:.2g}"
    return wrap(start + measured, indent="  ")


def compress_ranks(ranks: Sequence[int]) -> str:
    """Ranks with runs joined.

    >>> compress_ranks([1, 3, 4, 5, 8])
    '1, 3–5, 8'
    """
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def shorten(text: str, width: int) -> str:
    """Cut the middle of a long name.

    >>> shorten("mobilenetv2_100.imagenet", 12)
    'mobile…genet'
    """
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"
