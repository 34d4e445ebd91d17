"""The report of a selection: the model, what val says of those that were trained, and why the others were not taken."""

from __future__ import annotations

from crossgraft.data.summary import describe_classes, describe_groups, known_split
from crossgraft.edit.page_edits import edited_with
from crossgraft.metrics.words import metric_name_in_words
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Heading, Items, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, number, table_of, whole, words
from crossgraft.report.verdict import caveats_of, in_one_line, verdict_blocks
from crossgraft.select.caveats import SELECTION_CAVEATS, after_selection
from crossgraft.select.record import CandidateRecord, SelectionRecord
from crossgraft.select.replay.page import REPLAY
from crossgraft.select.words import (
    cost_in_words,
    known_in_words,
    next_hour_in_words,
    selected_in_words,
    separable_in_words,
)
from crossgraft.tune.page_data import parts_in_words, tuning_checks_section, tuning_data_section
from crossgraft.words.formatting import NumberFormat, count, counted, duration, percent

_NUMBERS = NumberFormat(decimals=3)
_EXPECTED = NumberFormat(decimals=2)
_MOST_ROWS = 30
_NORMAL_95 = 1.96


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
    """The answer, its cost, what val does not tell apart, and what another hour would train."""
    record = source.record
    blocks = verdict_blocks(selected_in_words(record), caveats_of(source, SELECTION_CAVEATS), after_selection(source))
    said = [cost_in_words(record), separable_in_words(record), next_hour_in_words(record)]
    blocks += [Paragraph(text) for text in said if text is not None]
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def val_section(source: Source[SelectionRecord]) -> Section | None:
    """What val says of every model that was trained; None where it was one alone."""
    record = source.record
    rows = [row for row in record.trained if row.val is not None][:_MOST_ROWS]
    if len(rows) < 2:
        return None
    figure = intervals_figure(
        [IntervalRow(row.name, _val_interval(row), is_overall=row.name == record.selected) for row in rows],
        x_label=f"{metric_name_in_words(record.selection_metric)} of val",
        identifier=f"{source.prefix}val",
    )
    has_errors = any(row.standard_error is not None for row in rows)
    more = len(record.trained) - len(rows)
    caption = (
        "Val of the models that were trained; the one that is handed over is the square. "
        + (
            "Lines: ± 1.96 standard errors of one value; differences are known better, since all see the same images."
            if has_errors
            else "How exactly val measures it is not known."
        )
        + (f" {counted(more, 'further model')} not drawn." if more > 0 else "")
    )
    return Section(name="val", title="What was trained", part="evidence", blocks=[Figure([figure], caption=caption)])


def models_of_selection_section(source: Source[SelectionRecord]) -> Section:
    """Every model with what became of it, and why."""
    record = source.record
    table = table_of(
        record.candidates,
        [
            (Column("Model"), lambda row: _name(source, row)),
            (Column("Order", numeric=True), lambda row: whole(row.place)),
            (Column("Expected", numeric=True, page_only=True), lambda row: number(row.expected, _EXPECTED)),
            (Column("Became"), lambda row: words(_STATES.get(row.state, row.state))),
            (Column("Val", numeric=True), lambda row: number(row.val, _NUMBERS)),
            (
                Column("±", numeric=True, csv_titles=("standard error",)),
                lambda row: number(row.standard_error, _NUMBERS),
            ),
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
            "Order: in which models are tried; expected, a normal score (0 = middling), is what is known of them elsewhere. "
            f"Val: {metric_name_in_words(record.selection_metric)} and its standard error. Better than it: chance of being "
            f"better than {record.selected}, by val. Of models that were not trained nothing is said."
        ],
    )
    reasons = Items([f"{row.name}: {row.reason}." for row in record.candidates])
    known = [f"{model.name}: {known_in_words(model)}." for model in record.plan.models]
    blocks: list[Block] = [table, reasons, Folded("What their order stands on", [Items(known)])]
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
    return Section(name="budget", title="Budget", part="how it was made", blocks=[facts, fine, own])


def _val_interval(row: CandidateRecord) -> Interval:
    if row.val is None or row.standard_error is None:
        return Interval(row.val)
    half = _NORMAL_95 * row.standard_error
    return Interval(row.val, max(row.val - half, 0.0), min(row.val + half, 1.0))  # only shares have an error


def _name(source: Source[SelectionRecord], row: CandidateRecord) -> Cell:
    is_selected = row.name == source.record.selected
    page = f"{source.record.training}/report.html" if is_selected and source.is_at_home else None
    return words(row.name, strong=is_selected and page is None, href=page)


def _chance(value: float | None) -> Cell:
    return Cell(text="—" if value is None else percent(value), values=(value,))


_STATES = {"selected": "handed over", "trained": "trained"}

SELECTION = Kind(
    SelectionRecord,
    selection_heading,
    (
        selection_verdict_section,
        val_section,
        models_of_selection_section,
        tuning_checks_section,
        tuning_data_section,
        how_selected_section,
        provenance_section,
        references_section,
    ),
    terminal=(models_of_selection_section, selection_verdict_section),
)
REPORT = (SELECTION, REPLAY)
