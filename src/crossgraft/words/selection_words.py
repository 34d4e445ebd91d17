"""A selection in words: what is tried, what came out, how sure that is, and what it cost."""

from __future__ import annotations

from crossgraft.records import RungRecord, SelectionPlanRecord, SelectionRecord
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import counted, duration, joined, percent, small_percent
from crossgraft.words.metric_words import guessing, metric_in_words, metric_name_in_words
from crossgraft.words.visible import visible

SEPARABLE_PERCENT = 95


def kind_in_words(kind: str) -> str:
    """A kind of trial.

    >>> kind_in_words("curve:epoch=3"), kind_in_words("score:logme")
    ('epoch 3', 'LogME of frozen features')
    """
    family, _, rest = kind.partition(":")
    name, _, value = rest.partition("=")
    if family == "score":
        return f"{'LogME' if rest == 'logme' else rest} of frozen features"
    if family == "curve":
        return f"epoch {value}"
    if family == "low" and name == "size":
        return f"a training at {percent(float(value))} of the resolution"
    if family == "low":
        return f"a training with {percent(float(value))} of the {name}"
    return "the whole training"


def rung_in_words(rung: RungRecord) -> str:
    """What is done in one rung, for how long."""
    time = f"about {duration(rung.booked_seconds)}"
    if rung.is_finish:
        return f"{rung.models[0]}: {kind_in_words(rung.kind)}, {time}"
    return f"{counted(len(rung.models), 'model')}: {kind_in_words(rung.kind)}, {time}"


def selected_in_words(record: SelectionRecord) -> str:
    """The answer: the model, what it reaches on test, and its regret."""
    found = record.metric(record.primary_metric)
    guess = None if found is None else guessing(found.metric, num_choices(record))
    value = "" if found is None else f" On test: {metric_in_words(found, guess=guess)}."
    alone = " It was the only model." if len(record.candidates) == 1 else f" {regret_in_words(record)}"
    return f"{record.selected} is handed over, fine-tuned.{value}{alone}"


def num_choices(record: SelectionRecord) -> int:
    """Among how many answers guessing chooses: classes, or yes and no of each label."""
    return len(record.dataset.class_names) if recorded_task(record.dataset).partitions else 2


def regret_in_words(record: SelectionRecord) -> str:
    """How much better the best of all is expected to be."""
    best = record.candidate(record.selected).probability_best
    chance = f"it is the best of {len(record.candidates)} with a chance of {percent(best)}"
    if record.unit == "metric" and record.selection_metric != "loss":
        name = metric_name_in_words(record.selection_metric)
        return f"Expected regret: {_three_decimals(record.expected_regret)} of {name}; {chance}."
    if record.unit == "metric":
        return f"Expected regret: {_three_decimals(record.expected_regret)} of the loss; {chance}."
    return f"Expected regret: {record.expected_regret:.2f} standard deviations between models; {chance}."


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


def preference_in_words(record: SelectionRecord) -> str | None:
    """What could not be told apart, and what decided; None where there was nothing to decide."""
    if not record.not_separable:
        return (
            None
            if len(record.candidates) == 1
            else f"Every other model that fits into the budget is worse with a chance of {SEPARABLE_PERCENT} % or more."
        )
    apart = f"Of what fits into the budget, {record.leader} cannot be told apart from {joined(record.not_separable)}"
    if record.selected != record.leader:
        lighter = {"small": "smallest", "fast": "fastest to train", "cost": "cheapest to train"}[record.preferred_by]
        return f"{apart}. {record.selected} is the {lighter} of these, so it is handed over."
    sizes = {row.name: row.num_parameters for row in record.candidates}
    smaller = [name for name in record.not_separable if sizes[name] < sizes[record.leader]]
    if record.prefer != "accurate" or not smaller:
        return f"{apart}; none of these is preferable."
    return f"{apart}. {smaller[0]} is smaller: --prefer small would hand it over."


def next_hour_in_words(record: SelectionRecord) -> str:
    """What another hour would buy."""
    hour = record.next_hour
    if hour is None:
        return "Another hour would not be expected to find a better model."
    unit = (
        "standard deviations between models"
        if record.unit == "normal score"
        else metric_name_in_words(record.selection_metric)
    )
    who = joined(hour.models) if len(hour.models) <= 3 else counted(len(hour.models), "model")
    return (
        f"Another hour would best begin with {kind_in_words(hour.kind)} of {who} ({duration(hour.booked_seconds)}), "
        f"which is expected to improve the model that is handed over by {_three_decimals(hour.gain)} of {unit}."
    )


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
        "Models, with the time of their whole training and their expected standing (0 = middling):",
    ]
    for model in record.models:
        seconds = model.seconds("full")
        time = f"about {duration(seconds)}" if seconds is not None else f"left out: {model.reason}"
        standing = f"{model.prior_mean:+.1f} ± {model.prior_deviation:.1f}"
        known = f" ({joined(model.known_from)})" if model.known_from else " (no results of these weights are known)"
        lines.append(f"  {model.name:<{width}}  {time}, {standing}{known}")
    if record.val_too_small is not None:
        lines += ["", f"{record.val_too_small} Nothing is tried: prior and cost decide."]
    lines += [
        "",
        "Rungs, if nothing surprises:",
        *(f"  {n}. {rung_in_words(rung)}" for n, rung in enumerate(record.rungs, 1)),
    ]
    lines += [f"Expected to be handed over: {record.expected_winner}."] if record.expected_winner else []
    lines += ["", *(f"Note: {note}" for note in record.notes)] if record.notes else []
    return "\n".join(map(visible, lines))


def _three_decimals(value: float) -> str:
    return "less than 0.001" if 0 < value < 0.001 else f"{value:.3f}"
