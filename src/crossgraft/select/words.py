"""A selection in words: what is trained, what came out, what val tells apart, and what it cost."""

from __future__ import annotations

from crossgraft.metrics.words import guessing, metric_in_words, metric_name_in_words
from crossgraft.select.record import PlannedModel, SelectionPlanRecord, SelectionRecord
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import counted, duration, joined, small_percent
from crossgraft.words.visible import visible


def selected_in_words(record: SelectionRecord) -> str:
    """The answer: the model, what it reaches on test, and among how many it was found."""
    found = record.metric(record.primary_metric)
    guess = None if found is None else guessing(found.metric, num_choices(record))
    value = "" if found is None else f" On test: {metric_in_words(found, guess=guess)}."
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
    trained_in_words = (
        f"All {number} models were trained" if trained == number else f"Of {number} models {trained} were trained"
    )
    if record.selected != record.leader:
        return f"{trained_in_words}; val does not tell it apart from the best, {record.leader}, and it is lighter."
    return f"{trained_in_words}, and it is the best on val."


def num_choices(record: SelectionRecord) -> int:
    """Among how many answers guessing chooses: classes, or yes and no of each label."""
    return len(record.dataset.class_names) if recorded_task(record.dataset).partitions else 2


def cost_in_words(record: SelectionRecord) -> str:
    """What was booked, of what, beside tuning all."""
    share = record.share_of_all
    of_all = (
        ""
        if share is None
        else f", {small_percent(share)} of the {duration(record.plan.seconds_of_all)} to fine-tune all models"
    )
    took = f" It took {duration(record.seconds)} of computing." if record.seconds else ""
    seconds = record.plan.timing_seconds
    timed = "" if seconds is None else f" Measuring what everything costs took {duration(seconds)} beside it."
    return f"Cost: {duration(record.booked_seconds)} of a budget of {duration(record.plan.budget_seconds)}{of_all}.{took}{timed}"


def separable_in_words(record: SelectionRecord) -> str | None:
    """What val does not tell apart; None where there is nothing to compare."""
    others = [row for row in record.trained if row.name != record.leader]
    if not others or record.ending == "limit of val":
        return None
    if any(row.probability_better is None for row in others if row.name != record.selected):
        return f"Whether chance decided is not known: the error of {metric_name_in_words(record.selection_metric)} on val is not."
    if not record.not_separable:
        return f"Val tells {record.leader} apart from every other model that was trained."
    said = f"Val does not tell {record.leader} apart from {joined(record.not_separable)}."
    if record.expected_regret is not None:
        said += (
            f" Beside the best of those trained, {record.selected} is expected to be worse by "
            f"{_three_decimals(record.expected_regret)} of {metric_name_in_words(record.selection_metric)}."
        )
    sizes = {row.name: row.num_parameters for row in record.candidates}
    smaller = [name for name in record.not_separable if sizes[name] < sizes[record.leader]]
    if record.prefer == "accurate" and smaller:
        said += f" {smaller[0]} is smaller: --prefer small would hand it over."
    return said


def next_hour_in_words(record: SelectionRecord) -> str | None:
    """What another hour would train; None where that is no question."""
    if len(record.candidates) == 1 or record.ending == "val tells nothing":
        return None
    if record.ending == "limit of val":
        return "More trainings cannot be better on val."
    if record.ending == "all trained":
        return "All models were trained."
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


def selection_plan_in_words(record: SelectionPlanRecord) -> str:
    """What ``--plan`` prints."""
    width = max(len(model.name) for model in record.models)
    lines = [
        f"Budget: {duration(record.budget_seconds)} ({record.budget}). To fine-tune all {counted(len(record.models), 'model')}: "
        f"about {duration(record.seconds_of_all)}, {counted(record.num_parallel, 'training')} at a time."
        + (
            ""
            if record.timing_seconds is None
            else f" Measuring this took {duration(record.timing_seconds)} beside it."
        ),
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
