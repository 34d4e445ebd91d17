"""The answer in a few lines, on top of docs/results/sim.md; every number is of the rows."""

from __future__ import annotations

from collections.abc import Mapping

from sim_pooled import Place, difference_in, places_from_scratch, places_pretrained
from sim_tables import StudyTables, points
from sim_variants import BASELINE, LONGER, PLACEBO, SIM, pieces
from studies import Difference

_KINDS = {"From scratch": places_from_scratch, "Fine-tuning": places_pretrained}


def in_short(found: Mapping[str, StudyTables]) -> str:
    """For both kinds of training ρSIM beside the same without, its placebo, and the epochs that it costs."""
    lines = [line for title, places in _KINDS.items() if (line := _answer(found, title, places()))]
    return "\n".join(["**In short**, in points of accuracy:", "", *lines]) if lines else ""


def _answer(found: Mapping[str, StudyTables], title: str, places: list[Place]) -> str:
    over = difference_in(found, places, "accuracy", "with_sim", "without")
    if over is None:
        return ""
    placebo = difference_in(found, places, "accuracy", "with_sim", "with_placebo")
    said = f"- **{title}**: {_what_shows(over, placebo)}, {points(over)} over the same without ({over.pairs} pairs)"
    if placebo is not None:
        said += f" and {points(placebo)} over the placebo ({placebo.pairs} pairs)"
    longer = difference_in(found, _beside_longer(places), "accuracy", "with_sim", "without")
    if longer is not None:
        said += f"; {points(longer)} over as many more epochs as it costs ({longer.pairs} pairs)"
    return f"{said}."


def _what_shows(over: Difference, placebo: Difference | None) -> str:
    """A gain that the placebo may share is no gain of ρSIM."""
    if over.high < 0:
        return "ρSIM harms"
    if over.low <= 0:
        return "no gain of ρSIM shows"
    return "ρSIM helps" if placebo is not None and placebo.low > 0 else "a gain shows that the placebo may share"


def _beside_longer(places: list[Place]) -> list[Place]:
    """Those where the baseline was trained for longer, too, with it in place of the same without."""
    beside = {name for name, piece in pieces().items() if LONGER in piece.variants}
    return [
        Place(place.piece, place.model, LONGER, SIM, PLACEBO)
        for place in places
        if place.piece in beside and place.without == BASELINE
    ]
