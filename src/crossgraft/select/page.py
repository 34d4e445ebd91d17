"""The report of a selection: the model, what val says of those that were trained, and why the others were not taken."""

from __future__ import annotations

from crossgraft.data.describe import describe_classes, describe_groups, known_split
from crossgraft.data.page import unreadable_files
from crossgraft.edit.page import edited_with
from crossgraft.metrics.harms import missed_class_caveat, wrong_risks
from crossgraft.metrics.page import looked_at_before
from crossgraft.metrics.words import doubt_in_words, guessing, metric_in_words, metric_name_in_words
from crossgraft.options.models import CodeOptions
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Heading, Items, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, number, table_of, whole, words
from crossgraft.report.verdict import (
    PREDICT_IMAGES,
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    in_one_line,
    leakage_not_checked,
    provenance_section,
    references_section,
    unsound_data,
    verdict_section,
    warned_of_data,
)
from crossgraft.select.record import CandidateRecord, PlannedModel, SelectionPlanRecord, SelectionRecord
from crossgraft.select.replay.page import REPLAY
from crossgraft.tasks import num_choices, recorded_task
from crossgraft.tune.page import parts_in_words, tuning_checks_section, tuning_data_section
from crossgraft.words.formatting import NumberFormat, count, counted, duration, joined, percent, small_percent
from crossgraft.words.visible import visible


def selected_in_words(record: SelectionRecord) -> str:
    """The answer: the model, what it reaches on test, and among how many it was found."""
    primary = record.metric(record.primary_metric)
    guess = None if primary is None else guessing(primary.metric, num_choices(record.dataset))
    value = "" if primary is None else f" On test: {metric_in_words(primary, guess=guess)}."
    return f"{record.selected} is handed over, fine-tuned.{value} {_why(record)}"


def _why(record: SelectionRecord) -> str:
    number, trained = len(record.candidates), len(record.trained)
    if number == 1:
        return "It was the only model."
    if record.ending == "val tells nothing":
        return f"It is the first of {number} in the order of what is known elsewhere; val decided nothing."
    of_all = f"all {number} models" if trained == number else f"{trained} of {number} models"
    if record.ending == "limit of val":
        smallest = "" if trained == 1 else "; the smallest of those at the limit is handed over"
        name = metric_name_in_words(record.selection_metric)
        return f"Its {name} of val is at its limit, where nothing can be better. The search ended after {of_all}{smallest}."
    if trained == 1:
        return f"It is the only one of {number} that was trained."
    trained_in_words = f"All {number} models were trained" if trained == number else f"Of {number} models {trained} were trained"
    if record.selected != record.leader:
        return f"{trained_in_words}; val does not tell it apart from the best, {record.leader}, and it is lighter."
    return f"{trained_in_words}, and it is the best on val."


def cost_in_words(record: SelectionRecord) -> str:
    """What was booked, of what, beside tuning all."""
    share = record.share_of_all
    of_all = (
        "" if share is None else f", {small_percent(share)} of the {duration(record.plan.seconds_of_all)} to fine-tune all models"
    )
    took = f" It took {duration(record.seconds)} of computing." if record.seconds else ""
    plan = record.plan
    if plan.training_seconds is not None:
        beside = plan.budget_seconds - plan.training_seconds
        timed = f" {duration(beside)} of the budget went to the start, to measuring what trainings cost, and to the page."
    else:
        seconds = plan.timing_seconds
        timed = "" if seconds is None else f" Measuring what everything costs took {duration(seconds)} beside it."
    return f"Cost: {duration(record.booked_seconds)} of a budget of {duration(plan.budget_seconds)}{of_all}.{took}{timed}"


def separable_in_words(record: SelectionRecord) -> str | None:
    """What val does not tell apart; None where there is nothing to compare."""
    others = [row for row in record.trained if row.name != record.leader]
    if not others or record.ending == "limit of val":
        return None
    if any(row.probability_better is None for row in others if row.name != record.selected):
        return f"Whether chance decided is not known: the error of {metric_name_in_words(record.selection_metric)} on val is not."
    if not record.not_separable:
        return f"Val tells {record.leader} apart from every other model that was trained."
    text = f"Val does not tell {record.leader} apart from {joined(record.not_separable)}."
    if record.expected_regret is not None:
        text += (
            f" Beside the best of those trained, {record.selected} is expected to be worse by "
            f"{_three_decimals(record.expected_regret)} of {metric_name_in_words(record.selection_metric)}."
        )
    sizes = {row.name: row.num_parameters for row in record.candidates}
    smaller = [name for name in record.not_separable if sizes[name] < sizes[record.leader]]
    if record.prefer == "accurate" and smaller:
        text += f" {smaller[0]} is smaller: --prefer small would hand it over."
    return text


def next_hour_in_words(record: SelectionRecord) -> str | None:
    """What another hour would train; None where that is no question."""
    if len(record.candidates) == 1 or record.ending in ("val tells nothing", "all trained"):
        return None
    if record.ending == "limit of val":
        return "More trainings cannot be better on val."
    if not record.next_models:
        return "No further training fits into another hour."
    names = record.next_models
    who = joined(names) if len(names) <= 3 else f"{names[0]} and {counted(len(names) - 1, 'further model')}"
    return f"Another hour would train {who}, in the order of what is known of them elsewhere."


def known_in_words(model: PlannedModel) -> str:
    """On what the place of a model in the order stands."""
    if model.num_own_targets:
        return f"your own results on {counted(model.num_own_targets, 'other target')}"
    if model.known_from:
        return f"ImageNet and {joined(model.known_from)}"
    return "ImageNet top-1, if any"


def _beside(record: SelectionPlanRecord) -> str:
    if record.timing_seconds is None:
        return ""
    took = f" Measuring this took {duration(record.timing_seconds)}"
    if record.training_seconds is None:
        return f"{took} beside it."
    return f"{took}; the budget covers that, too, and leaves {duration(record.training_seconds)} for trainings."


def _all_of_it(record: SelectionPlanRecord) -> str:
    if record.seconds_beside is None:
        return ""
    seconds = {model.name: model.seconds or 0.0 for model in record.models}
    trained = sum(max(seconds[name] for name in names) for names in record.rounds if names)
    return f" The whole command: about {duration(trained + record.seconds_beside)}."


def selection_plan_in_words(record: SelectionPlanRecord) -> str:
    """What ``--plan`` prints."""
    width = max(len(model.name) for model in record.models)
    lines = [
        f"Budget: {duration(record.budget_seconds)} ({record.budget}). To fine-tune all {counted(len(record.models), 'model')}: "
        f"about {duration(record.seconds_of_all)}, {counted(record.num_parallel, 'training')} at a time."
        + _beside(record)
        + _all_of_it(record),
        "",
        "Models, with the time of their whole training, what is expected of them (0 = middling), and by what:",
    ]
    for model in sorted(record.models, key=lambda model: -model.expected):
        time = f"about {duration(model.seconds)}" if model.seconds is not None else f"left out: {model.reason}"
        lines.append(f"  {model.name:<{width}}  {time}, {model.expected:+.2f} ({known_in_words(model)})")
    if record.val_too_small is not None:
        lines += ["", f"{record.val_too_small} Only the first model of the order that fits is trained."]
    names = [name for some in record.rounds for name in some]
    lines += ["", f"Trained within the budget, in this order: {joined(names)}. The best on val is handed over."]
    return "\n".join(map(visible, lines))


def _three_decimals(value: float) -> str:
    return "less than 0.001" if 0 < value < 0.001 else f"{value:.3f}"


def val_tells_nothing(source: Source[SelectionRecord]) -> Caveat | None:
    """The choice stands on what is known elsewhere alone."""
    reason = source.record.plan.val_too_small
    if reason is None:
        return None
    return Caveat(
        f"{reason} Only the first model of the order was trained: what is known of the models elsewhere decided.", Gravity.EMPTY
    )


def may_be_guessing(source: Source[SelectionRecord]) -> Caveat | None:
    """On test the model may be no better than guessing."""
    record = source.record
    primary = record.metric(record.primary_metric)
    doubt = None if primary is None else doubt_in_words(primary, num_choices(record.dataset))
    return None if doubt is None else Caveat(doubt, Gravity.EMPTY)


def nothing_known(source: Source[SelectionRecord]) -> Caveat | None:
    """Nobody has results of these weights, and not all were trained."""
    candidates = source.record.candidates
    if any(row.known_from for row in candidates) or not any(row.state == "not trained" for row in candidates):
        return None
    if len({row.expected for row in candidates}) == 1:
        return Caveat(
            "Nothing is known of these models elsewhere, so that they were tried in the order of their size.", Gravity.LIMITED
        )
    return Caveat(
        "No results of exactly these weights on other data are known, so that their order is that of ImageNet top-1, which "
        "foresees little.",
        Gravity.LIMITED,
    )


def missed_class(source: Source[SelectionRecord]) -> Caveat | None:
    """A class that the selected model misses, or takes for another, more often than the others."""
    record = source.record
    return missed_class_caveat(recorded_task(record.dataset), record.confusion, record.of_classes, splits=("test",))


def probabilities_are_off(source: Source[SelectionRecord]) -> Caveat | None:
    """The calibration error of the selected model is larger than chance makes it."""
    return wrong_risks(source.record.calibration, recorded_task(source.record.dataset))


def failed_models(source: Source[SelectionRecord]) -> Caveat | None:
    """Some were not compared."""
    failed = [row for row in source.record.candidates if row.state == "failed"]
    if not failed:
        return None
    return Caveat(
        f"{counted(len(failed), 'model')} failed and took no further part: {joined([row.name for row in failed])}.", Gravity.HARM
    )


def val_does_not_tell_apart(source: Source[SelectionRecord]) -> Caveat | None:
    """Another one that was trained may be the better one."""
    record = source.record
    others = [row for row in record.trained if row.probability_better is not None and row.probability_better > 0.05]
    if not others or record.ending == "limit of val":
        return None
    first = max(others, key=lambda row: row.probability_better or 0.0)
    return Caveat(
        f"{first.name} may be better than {record.selected} with a chance of {percent(first.probability_better or 0.0)}"
        + (f", and {counted(len(others) - 1, 'other model')} with more than 5 %." if len(others) > 1 else "."),
        Gravity.FLATTERED,
    )


def not_all_were_trained(source: Source[SelectionRecord]) -> Caveat | None:
    """Some models did not fit into the budget."""
    number = sum(row.state == "not trained" for row in source.record.candidates)
    if number == 0 or source.record.ending != "budget":
        return None
    return Caveat(f"{counted(number, 'model')} did not fit into the budget and may be better.", Gravity.LIMITED)


SELECTION_CAVEATS: tuple[CaveatOf[SelectionRecord], ...] = (
    unsound_data,
    val_tells_nothing,
    may_be_guessing,
    missed_class,
    probabilities_are_off,
    nothing_known,
    failed_models,
    unreadable_files,
    warned_of_data,
    looked_at_before,
    val_does_not_tell_apart,
    not_all_were_trained,
    leakage_not_checked,
)
"""The most severe first, in the order of ``report.verdict``."""


def after_selection(source: Source[SelectionRecord]) -> Following:
    """To predict with the model."""
    typed = source.typed
    line = typed.then("predict", typed.out, PREDICT_IMAGES, carried=[CodeOptions])
    return Following(line, "to use it")


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
    texts = [cost_in_words(record), separable_in_words(record), next_hour_in_words(record)]
    more = [Paragraph(text) for text in texts if text is not None]
    return verdict_section(selected_in_words(record), caveats_of(source, SELECTION_CAVEATS), after_selection(source), *more)


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
    return Section("val", "What was trained", part="evidence", blocks=[Figure([figure], caption=caption)], is_first=True)


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
            (Column("±", numeric=True, csv_titles=("standard error",)), lambda row: number(row.standard_error, _NUMBERS)),
            (Column("Better than it", numeric=True), lambda row: _chance(row.probability_better)),
            (
                Column("Parameters", numeric=True, page_only=True),
                lambda row: whole(row.num_parameters, count(row.num_parameters)),
            ),
            (Column("Booked", numeric=True), lambda row: words(duration(row.booked_seconds) if row.booked_seconds else None)),
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
