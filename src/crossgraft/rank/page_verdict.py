"""The verdict of a ranking: its advice with what limits it, what it rests on, and the ranking figure."""

from __future__ import annotations

from functools import partial

from crossgraft.data.describe import describe_data
from crossgraft.options.command import DATA
from crossgraft.rank.model_history import joined, score_title
from crossgraft.rank.plots import ranking_figure
from crossgraft.rank.record import RankingRecord
from crossgraft.report.blocks import Figure, Heading, Paragraph, Section, figure_for_screens
from crossgraft.report.source import Source
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    caveats_of,
    found_by_checks,
    in_one_line,
    of_check,
    unsound_data,
    verdict_blocks,
)
from crossgraft.words.formatting import counted


def verdict_section(source: Source[RankingRecord]) -> Section:
    """The advice with its biggest caveat and what to type next, what is known from other targets, and one figure."""
    record = source.record
    return Section(
        name="verdict",
        title="Verdict",
        part="verdict",
        blocks=[
            *verdict_blocks(record.advice, caveats_of(source, RANKING_CAVEATS), after_ranking(source)),
            Paragraph(f"Ordered by {score_title(record, record.primary_score)}: {_sentence(record.primary_reason)}"),
            *([Paragraph(record.prior.summary, tone="quiet")] if record.prior else []),
            _figure(source),
        ],
    )


def _speaks_against_the_best(source: Source[RankingRecord]) -> Caveat | None:
    """A control that does as well as the best model."""
    return None if source.record.caution is None else Caveat(source.record.caution)


def _warned(source: Source[RankingRecord]) -> Caveat | None:
    """The first warning of the checks that the advice does not say itself."""
    unsaid = [check for check in source.record.checks if check.title not in _SAID_BY_THE_ADVICE]
    return of_check(found_by_checks(unsaid, "warning"))


def _not_assessed(source: Source[RankingRecord]) -> Caveat | None:
    """Patient leakage that was not looked for."""
    return of_check(
        next((check for check in source.record.checks if check.title == _LEAKAGE and check.severity == "not assessed"), None)
    )


_SAID_BY_THE_ADVICE = ("Random weights", "Shuffled labels")
_LEAKAGE = "Patient leakage"
RANKING_CAVEATS: tuple[CaveatOf[RankingRecord], ...] = (unsound_data, _speaks_against_the_best, _warned, _not_assessed)
"""The most severe first, in the order of ``report.verdict``."""


def after_ranking(source: Source[RankingRecord]) -> Following:
    """To fine-tune the best model; to look at the data where nothing speaks for any."""
    record, typed = source.record, source.typed
    data = typed.data if typed.verb == "rank" else DATA
    ranked = [row.model for row in record.ranking(record.primary_score).rows if row.rank is not None]
    advised = ranked if record.advised is None else record.advised
    if not advised:
        return Following(typed.then("check", data), "to look for what is wrong with the images")
    best = typed.model_called(advised[0], among=[model.name for model in record.models])
    line = typed.then("tune", data, flags=[("--model", best)])
    return Following(line, f"to fine-tune {advised[0]}")


def ranking_heading(source: Source[RankingRecord]) -> Heading:
    """Name of the data, and what was ranked on how much."""
    record = source.record
    candidates = sum(model.role == "candidate" for model in record.models)
    controls = len(record.models) - candidates
    data = describe_data(record.dataset, labels_left_out=len(record.labels_left_out))
    summary = f"{data} · {counted(candidates, 'model')}, {counted(controls, 'control')} · {counted(len(record.scores), 'score')}"
    return Heading(
        title=record.dataset.name, summary=summary, advice=in_one_line(record.advice, caveats_of(source, RANKING_CAVEATS))
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."


def _figure(source: Source[RankingRecord]) -> Figure:
    record = source.record
    ranking = record.ranking(record.primary_score)
    candidates = sum(row.role == "candidate" for row in ranking.rows)
    valueless = [row.model for row in ranking.rows if record.cell(row.model, ranking.score).value is None]
    controls = len(ranking.rows) - candidates
    caption = [
        f"{counted(candidates, 'model')} on {counted(record.dataset.num_images, 'image')}.",
        "Each dot is a value, the line through it its 95 % jackknife interval.",
        "Brackets on the right join models that the images cannot tell apart.",
    ]
    if controls:
        caption.append(f"Hollow: {counted(controls, 'control')} with random weights.")
        caption.append("An interval of a control that leaves the frame is cut off.")
    if ranking.best_shuffled is not None:
        caption.append(
            "Dashed: the best value of any of them with shuffled labels; the table of scores says which are above their own."
        )
    if valueless:
        caption.append(f"Without a value: {joined(valueless)}.")
    draw = partial(ranking_figure, record, ranking.score)
    return figure_for_screens(draw, identifier=f"{source.prefix}ranking", caption=" ".join(caption))
