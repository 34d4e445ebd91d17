"""The answer in a few lines, on top of docs/results/sim.md; every number is of the rows."""

from __future__ import annotations

from collections.abc import Mapping

from sim_pooled import (
    METRICS,
    OVER_LONGER,
    OVER_PLACEBO,
    OVER_WITHOUT,
    Place,
    difference_in,
    places_from_scratch,
    places_pretrained,
)
from sim_tables import StudyTables, excludes_0, gaps, points, values
from sim_variants import BASELINE, DROPOUT, LONGER, REGULARIZERS, pieces
from studies import Difference, difference_of

_KINDS = {"From scratch": places_from_scratch, "Fine-tuning": places_pretrained}


def in_short(found: Mapping[str, StudyTables]) -> str:
    """For both kinds of training ρSIM beside the same without, its placebo, and the epochs that it costs."""
    lines = [line for title, places in _KINDS.items() if (line := _answer(found, title, places()))]
    lines += _how_short(found)
    return "\n".join(["**In short**, in points of accuracy:", "", *lines]) if lines else ""


def _answer(found: Mapping[str, StudyTables], title: str, places: list[Place]) -> str:
    over, placebo, longer = (difference_in(found, places, "accuracy", each) for each in (OVER_WITHOUT, OVER_PLACEBO, OVER_LONGER))
    if over is None:
        return ""
    said = f"- **{title}**: {_what_shows(over, placebo)}. Its difference to the same training without it is {_told(over)}"
    if placebo is not None:
        said += f", to its placebo {_told(placebo)}"
    if longer is not None:
        said += f", to the baseline trained for longer, at about the same cost or less, {_told(longer)}"
    others = {name: difference_in(found, places, name, OVER_WITHOUT) for name in METRICS if "accuracy" not in name}
    clear = [f"{METRICS[name][0]} {points(each)}" for name, each in others.items() if excludes_0(each)]
    said += "." + (f" Also, against the same training without it: {'; '.join(clear)}." if clear else "")
    of_sets = _of_each_set(found, places)
    return f"{said} By set, with intervals that exclude 0: {'; '.join(of_sets)}." if of_sets else said


def _of_each_set(found: Mapping[str, StudyTables], places: list[Place]) -> list[str]:
    """What shows in one of several sets, which may be the contrary of another."""
    sets = dict.fromkeys(place.piece for place in places if pieces()[place.piece].is_pretrained)
    return [
        f"{name}, {comparison.title}, {METRICS[metric][0]} {points(difference)}"
        for name in sets
        for comparison in (OVER_WITHOUT, OVER_PLACEBO, OVER_LONGER)
        for metric in METRICS
        if excludes_0(difference := difference_in(found, [place for place in places if place.piece == name], metric, comparison))
    ]


def _told(found: Difference) -> str:
    return f"{points(found)} ({found.pairs} pairs)"


def _what_shows(over: Difference, placebo: Difference | None) -> str:
    """A gain that the placebo may share is no gain of ρSIM."""
    if over.high < 0:
        return "ρSIM harms"
    if over.low <= 0:
        return "no gain of ρSIM shows"
    return "ρSIM helps" if placebo is not None and placebo.low > 0 else "a gain shows that the placebo may share"


def _how_short(found: Mapping[str, StudyTables]) -> list[str]:
    """What else does to networks that are trained for so few epochs, without which the first answer says too much."""
    core, joined = found["cifar10"], found["cifar10_regularisers"]
    base, over = values(core.table, BASELINE), difference_in(found, places_from_scratch(), "accuracy", OVER_WITHOUT)
    others = {name: values(joined.table, name) for name in REGULARIZERS} | {DROPOUT: values(core.table, DROPOUT)}
    beside = {name: difference_of(gaps(each, base)) for name, each in others.items()}
    longer = difference_of(gaps(values(core.table, LONGER), base))
    told = [f"{name} {points(each)}" for name, each in beside.items() if each is not None]
    if longer is None or over is None or not told:
        return []
    return [
        f"- **Trainings from scratch are short here**: more epochs change the ResNet-20 by {points(longer)}, {', '.join(told)}. "
        f"The paper reports 0.1 to 0.3 points for ρSIM on CIFAR-10, after 200 epochs: less than the ±"
        f"{(over.high - over.low) / 2:.1f} of the interval here, which is too wide to tell such a gain from none."
    ]
