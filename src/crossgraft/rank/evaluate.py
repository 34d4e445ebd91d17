"""Every score of one model: its value, the values without each block, the values under shuffled labels, the cost."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from crossgraft.compute import measure_cost
from crossgraft.errors import DataError, NotApplicable
from crossgraft.progress import Stage
from crossgraft.records import ModelRecord, Record
from crossgraft.scores import AnyScore, ScoreInputs, ZooScore
from crossgraft.seeding import generator
from crossgraft.statistics import jackknife_blocks, shuffle_labels
from crossgraft.statistics.jackknife import Block
from crossgraft.types import ClassIndices, Groups

NUM_SHUFFLES = 5
INTERVAL_COST_LIMIT_SECONDS = 60.0
"""A score that takes longer once has no interval unless asked for: the jackknife would take it twenty times more."""


class RawValue(Record):
    """What one evaluation of a score gave; zoo-level scores have parts and get their value from the whole zoo."""

    value: float | None
    parts: dict[str, float] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)


class Evaluation(Record):
    """One score of one model, before models are compared."""

    score: str
    reason: str | None = None
    full: RawValue | None = None
    blocks: list[RawValue] = Field(default_factory=list)
    shuffled: list[RawValue] = Field(default_factory=list)
    no_interval_reason: str | None = None
    seconds: float = 0.0
    peak_bytes: int = 0


class ModelEvaluation(Record):
    """All scores of one model; kept in the run directory, so that a killed run goes on with the next model."""

    key: str
    model: ModelRecord
    evaluations: list[Evaluation]


@dataclass(frozen=True)
class Resampling:
    """Blocks to leave out, shuffled labels and the seed of scores; the same for every model, so that differences are paired."""

    blocks: tuple[Block, ...]
    no_blocks_reason: str | None
    shuffled_labels: tuple[ClassIndices, ...]
    seed: int


def plan_resampling(targets: ClassIndices, groups: Groups | None, *, seed: int) -> Resampling:
    """Choose jackknife blocks and label permutations once for the whole zoo."""
    try:
        blocks, reason = tuple(jackknife_blocks(targets, groups, seed=seed)), None
    except DataError as error:
        blocks, reason = (), str(error)
    if any(len(np.unique(np.delete(targets, block))) < 2 for block in blocks):
        blocks, reason = (), "One jackknife block holds all images of all classes but one."
    shuffled = tuple(
        shuffle_labels(targets, groups, generator(seed, "shuffled labels", i)) for i in range(NUM_SHUFFLES)
    )
    return Resampling(blocks, reason, shuffled, seed)


def evaluate_scores(
    scores: Sequence[AnyScore],
    inputs: ScoreInputs,
    resampling: Resampling,
    *,
    all_intervals: bool,
    stage: Stage,
) -> list[Evaluation]:
    """Evaluate ``scores`` on one model.

    Args:
        scores: In the order in which they are shown.
        inputs: Features, labels, groups and source logits of the model.
        resampling: From ``plan_resampling``.
        all_intervals: Also for scores that take longer than ``INTERVAL_COST_LIMIT_SECONDS`` once.
        stage: Advanced by one for each of 1 + 20 + 5 rounds.

    Raises:
        DataError: The features can not be scored at all (NaN, one class …).
    """
    first = [_evaluate_once(score, inputs, resampling.seed) for score in scores]
    stage.advance()
    running = [score for score, evaluation in zip(scores, first, strict=True) if evaluation.full is not None]
    no_interval = {
        evaluation.score: "no interval (cost)"
        for evaluation in first
        if evaluation.seconds > INTERVAL_COST_LIMIT_SECONDS and not all_intervals
    }
    blocks: dict[str, list[RawValue]] = {score.name: [] for score in running}
    for block in resampling.blocks:
        without = inputs.without(block)
        for score in running:
            if score.name not in no_interval:
                try:
                    blocks[score.name].append(_raw(score, without, resampling.seed))
                except NotApplicable as answer:
                    no_interval[score.name] = f"Not defined when one block of images is left out. {answer.reason}"
        stage.advance()
    shuffled: dict[str, list[RawValue]] = {score.name: [] for score in running}
    for labels in resampling.shuffled_labels:
        with_shuffled = inputs.with_labels(labels)
        for score in running:
            with suppress(NotApplicable):  # then there is one shuffled value less, and the record shows how many
                shuffled[score.name].append(_raw(score, with_shuffled, resampling.seed))
        stage.advance()
    return [
        evaluation.model_copy(
            update={
                "blocks": [] if evaluation.score in no_interval else blocks.get(evaluation.score, []),
                "shuffled": shuffled.get(evaluation.score, []),
                "no_interval_reason": no_interval.get(evaluation.score, resampling.no_blocks_reason),
            }
        )
        for evaluation in first
    ]


def _evaluate_once(score: AnyScore, inputs: ScoreInputs, seed: int) -> Evaluation:
    reason = score.missing_inputs(inputs)
    if reason is not None:
        return Evaluation(score=score.name, reason=reason)
    with measure_cost() as cost:
        try:
            full = _raw(score, inputs, seed)
        except NotApplicable as answer:
            return Evaluation(score=score.name, reason=answer.reason)
    return Evaluation(score=score.name, full=full, seconds=cost.seconds, peak_bytes=cost.peak_bytes)


def _raw(score: AnyScore, inputs: ScoreInputs, seed: int) -> RawValue:
    options = {"seed": seed} if "seed" in score.signature.parameters else {}
    if isinstance(score, ZooScore):
        return RawValue(value=None, parts=score.parts(inputs, **options))
    value = score.evaluate(inputs, **options)
    return RawValue(value=float(value), parts=dict(value.parts), warnings=list(value.warnings))
