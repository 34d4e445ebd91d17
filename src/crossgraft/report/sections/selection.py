"""The report of a selection: the model, its regret, what was tried for what, and why the others were not taken."""

from __future__ import annotations

import math

from markupsafe import Markup

from crossgraft.records import CandidateRecord, SelectionRecord, TrialRecord
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Heading, Items, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots import ClimbingModel, RungColumn, rungs_figure
from crossgraft.report.sections._edits import edited_with
from crossgraft.report.sections._verdict import caveats_of, in_one_line, verdict_blocks
from crossgraft.report.sections.provenance import provenance_section
from crossgraft.report.sections.references import references_section
from crossgraft.report.sections.selection_caveats import SELECTION_CAVEATS, after_selection
from crossgraft.report.sections.tuning_data import parts_in_words, tuning_checks_section, tuning_data_section
from crossgraft.report.sections.verdict import describe_groups, known_split
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, count, counted, describe_classes, duration, joined, percent
from crossgraft.words.metric_words import metric_name_in_words
from crossgraft.words.selection_words import (
    cost_in_words,
    kind_in_words,
    next_hour_in_words,
    preference_in_words,
    selected_in_words,
)

_NUMBERS = NumberFormat(decimals=3)
_WIDE, _NARROW = 680, 350
_MOST_COLUMNS_NARROW = 4
_MOST_ROWS = 30


def selection_heading(source: Source[SelectionRecord]) -> Heading:
    """The model that is handed over, and from how many it was selected."""
    record = source.record
    data = record.dataset
    images = f"{counted(data.num_images, 'image')} ({parts_in_words(record)})"
    about = [*known_split(data), describe_classes(data), describe_groups(data)]
    models = f"selected from {counted(len(record.candidates), 'model')}, budget {duration(record.plan.budget_seconds)}"
    return Heading(
        title=f"{record.selected} for {data.name}",
        summary=" · ".join([images, *about, models, *edited_with(record.edits)]),
        advice=in_one_line(selected_in_words(record), caveats_of(source, SELECTION_CAVEATS)),
    )


def selection_verdict_section(source: Source[SelectionRecord]) -> Section:
    """The answer, its cost, what could not be told apart, and what another hour would buy."""
    record = source.record
    blocks = verdict_blocks(selected_in_words(record), caveats_of(source, SELECTION_CAVEATS), after_selection(source))
    said = [cost_in_words(record), preference_in_words(record), next_hour_in_words(record)]
    blocks += [Paragraph(text) for text in said if text is not None]
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def rungs_section(source: Source[SelectionRecord]) -> Section:
    """What was tried, rung by rung, as a picture and as a table."""
    record = source.record
    blocks: list[Block] = [_figure(source), _rungs_table(record)]
    failed = [trial for rung in record.rungs for trial in rung.trials or [] if trial.value is None]
    if failed:
        blocks.append(Items([f"{trial.model}, {kind_in_words(trial.kind)}: {trial.reason}" for trial in failed]))
    return Section(name="rungs", title="What was tried", part="evidence", blocks=blocks)


def rungs_text_section(source: Source[SelectionRecord]) -> Section:
    """The same without the picture."""
    return Section(name="rungs", title="What was tried", part="evidence", blocks=[_rungs_table(source.record)])


def models_of_selection_section(source: Source[SelectionRecord]) -> Section:
    """Every model with what became of it, and why."""
    record = source.record
    unit = _unit(record)
    table = table_of(
        record.candidates,
        [
            (Column("Model"), lambda row: _name(source, row)),
            (Column("Became"), lambda row: words(_state(row))),
            (Column(f"Expected {unit}", numeric=True), lambda row: _finite(row.expected)),
            (Column("±", numeric=True, csv_titles=("deviation",)), lambda row: _finite(row.deviation)),
            (Column("Best of all", numeric=True), lambda row: _chance(row.probability_best)),
            (Column("Better than it", numeric=True), lambda row: _chance(row.probability_better)),
            (
                Column("Parameters", numeric=True, page_only=True),
                lambda row: whole(row.num_parameters, count(row.num_parameters)),
            ),
            (
                Column("Booked", numeric=True),
                lambda row: words(duration(row.booked_seconds) if row.booked_seconds else None),
            ),
        ],
        caption="Models, the one that is handed over first",
        file_name="models",
        notes=[
            f"Expected {unit} and its standard deviation follow from everything that is known and was tried. Best of all: chance "
            f"of being the best. Better than it: chance of being better than {record.selected}.",
        ],
    )
    reasons = Items([f"{row.name}: {row.reason}." for row in record.candidates])
    known = [f"{row.name}: {joined(row.known_from)}." for row in record.candidates if row.known_from]
    unknown = [row.name for row in record.candidates if not row.known_from]
    if unknown:
        known.append(
            f"No results of exactly these weights: {joined(unknown)}. Relatives and ImageNet speak for them, if any."
        )
    blocks: list[Block] = [table, reasons, Folded("Whose results spoke for them beforehand", [Items(known)])]
    return Section(name="models", title="Why this one", part="evidence", blocks=blocks)


def how_selected_section(source: Source[SelectionRecord]) -> Section:
    """Budget, costs and what a seed of val decides."""
    record, plan = source.record, source.record.plan
    error = plan.standard_error
    facts = Facts(
        [
            ("Budget", f"{plan.budget} ({duration(plan.budget_seconds)})"),
            ("Booked", duration(record.booked_seconds)),
            ("To fine-tune all models", duration(plan.seconds_of_all)),
            ("Trainings at a time", str(plan.num_parallel)),
            ("Preferred", record.prefer),
            ("Metric on val", metric_name_in_words(record.selection_metric)),
            *([] if error is None else [("Its standard error on val", f"about {error:.3f}")]),
        ]
    )
    fine = Paragraph("The fine-tuning of the model has a page of its own, with curves, calibration and every metric.")
    own = Facts([("Its run directory", record.training)])
    return Section(
        name="budget", title="Budget", part="how it was made", blocks=[facts, fine, own, Items(record.notes)]
    )


def _figure(source: Source[SelectionRecord]) -> Figure:
    record = source.record
    columns = [RungColumn(_short(rung.kind), duration(rung.booked_seconds)) for rung in record.rungs]
    found = {(number, t.model): t for number, rung in enumerate(record.rungs) for t in rung.trials or []}
    models = [
        ClimbingModel(
            row.name,
            [_value(found.get((number, row.name))) for number in range(len(columns))],
            is_selected=row.name == record.selected,
        )
        for row in record.candidates[:_MOST_ROWS]
    ]
    more = len(record.candidates) - len(models)
    caption = (
        f"Rungs from left to right with what each cost, and what val said ({metric_name_in_words(record.selection_metric)}; "
        f"LogME where features were scored). The model that is handed over is the square."
        + (f" {counted(more, 'further model')} not drawn." if more > 0 else "")
    )
    wide = rungs_figure(columns, models, identifier=f"{source.prefix}rungs", width=_WIDE)
    narrow: list[Markup] = []
    for start in range(0, len(columns), _MOST_COLUMNS_NARROW):
        part = [model._replace(values=model.values[start : start + _MOST_COLUMNS_NARROW]) for model in models]
        some = [model for model in part if any(value is not None for value in model.values)]
        identifier = f"{source.prefix}rungs-narrow-{start}"
        narrow.append(
            rungs_figure(columns[start : start + _MOST_COLUMNS_NARROW], some, identifier=identifier, width=_NARROW)
        )
    return Figure([wide], caption=caption, narrow=narrow)


def _rungs_table(record: SelectionRecord) -> Table:
    return Table(
        caption="Rungs in their order",
        columns=[
            Column("Rung", numeric=True),
            Column("What"),
            Column("Models"),
            Column("Booked", numeric=True),
            Column("Best on val"),
        ],
        rows=[
            [
                whole(number_),
                words(f"{kind_in_words(rung.kind)}{' (finish)' if rung.is_finish else ''}"),
                words(joined(rung.models) if len(rung.models) <= 3 else counted(len(rung.models), "model")),
                words(duration(rung.booked_seconds)),
                words(_leader(rung.trials or [])),
            ]
            for number_, rung in enumerate(record.rungs, start=1)
        ],
        file_name="rungs",
        notes=[
            "Each rung is what was expected to improve the result most per second. Booked: by the costs that were measured "
            "before the first trial."
        ],
    )


def _leader(trials: list[TrialRecord]) -> str | None:
    done = [trial for trial in trials if trial.value is not None]
    if not done:
        return None
    best = max(done, key=lambda trial: trial.value or -math.inf)
    error = "" if best.standard_error is None else f" ± {_NUMBERS(best.standard_error)}"
    return f"{_NUMBERS(best.value)}{error}, {best.model}"


def _short(kind: str) -> str:
    """A kind of trial in two short lines."""
    family, _, rest = kind.partition(":")
    name, _, value = rest.partition("=")
    if family == "score":
        return "frozen\nfeatures"
    if family == "curve":
        return f"epoch {value},\npaused"
    if family == "low":
        return f"{percent(float(value))} of\n{'resolution' if name == 'size' else name}"
    return "whole\ntraining"


def _value(trial: TrialRecord | None) -> float | None:
    if trial is None:
        return None
    return math.nan if trial.value is None else trial.value


def _name(source: Source[SelectionRecord], row: CandidateRecord) -> Cell:
    is_selected = row.name == source.record.selected
    page = f"{source.record.training}/report.html" if is_selected and source.is_at_home else None
    return words(row.name, strong=is_selected and page is None, href=page)


def _state(row: CandidateRecord) -> str:
    return {"selected": "handed over", "finished": "trained to the end"}.get(row.state, row.state)


def _finite(value: float) -> Cell:
    return number(value if math.isfinite(value) else None, _NUMBERS)


def _chance(value: float | None) -> Cell:
    return Cell(text="—" if value is None else percent(value), values=(value,))


def _unit(record: SelectionRecord) -> str:
    return metric_name_in_words(record.selection_metric) if record.unit == "metric" else "standing"


SELECTION = Kind(
    SelectionRecord,
    selection_heading,
    (
        selection_verdict_section,
        rungs_section,
        models_of_selection_section,
        tuning_checks_section,
        tuning_data_section,
        how_selected_section,
        provenance_section,
        references_section,
    ),
    terminal=(rungs_text_section, models_of_selection_section, selection_verdict_section),
)
