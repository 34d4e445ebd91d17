"""Options of scores that depend on the whole zoo: measured on every model first, then chosen for all models together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crossgraft.models.record import Role
from crossgraft.progress import Stage
from crossgraft.rank.aggregate import Resampling
from crossgraft.records.base import Record
from crossgraft.scores import AnyScore, ScoreInputs, ZooOption
from crossgraft.tasks import task_of
from crossgraft.types import LabelMatrix

PerView = list[float]
"""One number per scored label; a single one with one class per image."""


class Rounds(Record):
    """One number for every evaluation of one score: on all images, without each block, with shuffled labels."""

    full: PerView
    blocks: list[PerView]
    shuffled: list[PerView]


class Measurements(Record):
    """What was measured on one model before the scoring; kept in the run directory."""

    key: str
    features_from_cache: bool
    rounds: dict[str, Rounds]


Options = Mapping[str, Rounds]
"""Score → value of its zoo option in every round, of one model."""


def each_label(inputs: ScoreInputs, columns: LabelMatrix | None) -> list[ScoreInputs]:
    """The inputs once for each label, sharing what does not depend on labels; as they are with one class per image."""
    return [inputs] if columns is None else with_shuffled(inputs, columns)


def without_block(inputs: ScoreInputs, block: np.ndarray, resampling: Resampling) -> list[ScoreInputs]:
    """The inputs without one jackknife block, once for each label."""
    columns = resampling.label_columns
    return each_label(inputs.without(block), None if columns is None else np.delete(columns, block, axis=0))


def with_shuffled(inputs: ScoreInputs, labels: np.ndarray) -> list[ScoreInputs]:
    """The inputs with shuffled labels, once for each label."""
    return [inputs.with_labels(view) for view in task_of(labels).views(labels)]


def measure_rounds(scores: Sequence[AnyScore], inputs: ScoreInputs, resampling: Resampling, *, stage: Stage) -> dict[str, Rounds]:
    """What every score with a zoo option measures on one model, in each round that will be evaluated."""
    full = _measure(scores, each_label(inputs, resampling.label_columns), stage)
    blocks = [_measure(scores, without_block(inputs, block, resampling), stage) for block in resampling.blocks]
    shuffled = [_measure(scores, with_shuffled(inputs, labels), stage) for labels in resampling.shuffled_labels]
    return {
        score.name: Rounds(
            full=full[score.name],
            blocks=[round_[score.name] for round_ in blocks],
            shuffled=[round_[score.name] for round_ in shuffled],
        )
        for score in scores
    }


def _measure(scores: Sequence[AnyScore], views: Sequence[ScoreInputs], stage: Stage) -> dict[str, PerView]:
    stage.advance()
    return {
        score.name: [score.zoo_option.measure(view.features, view.labels) for view in views]
        for score in scores
        if score.zoo_option is not None
    }


def choose_options(scores: Sequence[AnyScore], measured: Sequence[Mapping[str, Rounds]], roles: Sequence[Role]) -> list[Options]:
    """The options of every model, in the order of ``measured``; none where a single candidate has nothing to adapt to.

    As with zoo-level scores, candidates are seen among themselves, a control as one more member, and a model with shuffled
    labels among the others with their own.
    """
    candidates = [place for place, role in enumerate(roles) if role == "candidate"]
    if len(candidates) < 2:
        return [{} for _ in measured]
    return [
        {
            score.name: _choose(score.zoo_option, [one[score.name] for one in measured], place, candidates)
            for score in scores
            if score.zoo_option is not None
        }
        for place in range(len(measured))
    ]


def _choose(option: ZooOption, measured: Sequence[Rounds], place: int, candidates: Sequence[int]) -> Rounds:
    own = measured[place]
    others = [measured[other] for other in candidates if other != place]

    def among(values: PerView, seen: Callable[[Rounds], PerView]) -> PerView:
        return [option.choose([*(seen(other)[view] for other in others), value])[-1] for view, value in enumerate(values)]

    return Rounds(
        full=among(own.full, lambda other: other.full),
        blocks=[among(values, lambda other, b=block: other.blocks[b]) for block, values in enumerate(own.blocks)],
        shuffled=[among(values, lambda other: other.full) for values in own.shuffled],
    )
