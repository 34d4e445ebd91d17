"""Every score of one model: its value, the values without each block, the values under shuffled labels, the cost."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from pydantic import Field

from crossgraft.compute import measure_cost
from crossgraft.errors import NotApplicable
from crossgraft.progress import Stage
from crossgraft.rank.resampling import Resampling
from crossgraft.records import ModelRecord, Record
from crossgraft.scores import AnyScore, ScoreInputs, ZooScore
from crossgraft.types import LabelMatrix

INTERVAL_COST_LIMIT_SECONDS = 60.0
"""A score that takes longer once has no interval unless asked for: the jackknife would take it twenty times more."""


class RawValue(Record):
    """What one evaluation of a score gave; zoo-level scores have parts and get their value from the whole zoo."""

    value: float | None
    parts: dict[str, float] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)


class Evaluation(Record):
    """One score of one model, before models are compared.

    With several labels an image ``per_label`` has an evaluation of each scored label, and the values are in there.
    """

    score: str
    reason: str | None = None
    full: RawValue | None = None
    blocks: list[RawValue] = Field(default_factory=list)
    shuffled: list[RawValue] = Field(default_factory=list)
    no_interval_reason: str | None = None
    seconds: float = 0.0
    peak_bytes: int = 0
    per_label: dict[str, Evaluation] = Field(default_factory=dict)


class ModelEvaluation(Record):
    """All scores of one model; kept in the run directory, so that a killed run goes on with the next model."""

    key: str
    model: ModelRecord
    evaluations: list[Evaluation]


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
        inputs: Features, labels, groups and source logits of the model; without labels where the resampling has columns of
            them.
        resampling: From ``plan_resampling``.
        all_intervals: Also for scores that take longer than ``INTERVAL_COST_LIMIT_SECONDS`` once.
        stage: Advanced by one for each of 1 + 20 + 5 rounds.

    Raises:
        DataError: The features can not be scored at all (NaN, one class …).
    """
    views = _each_label(inputs, resampling.label_columns)
    runs = [_Run(score, [_evaluate_once(score, view, resampling.seed) for view in views]) for score in scores]
    stage.advance()
    running = [run for run in runs if run.defined]
    for run in running:
        if run.seconds > INTERVAL_COST_LIMIT_SECONDS and not all_intervals:
            run.no_interval = "no interval (cost)"
    for block in resampling.blocks:
        columns = resampling.label_columns
        views = _each_label(inputs.without(block), None if columns is None else np.delete(columns, block, axis=0))
        for run in running:
            run.add_block(views, resampling)
        stage.advance()
    for labels in resampling.shuffled_labels:
        views = [inputs.with_labels(labels)] if labels.ndim == 1 else _each_label(inputs, labels)
        for run in running:
            with suppress(NotApplicable):  # then there is one shuffled value less, and the record shows how many
                run.shuffled.append(run.evaluate(views, resampling.seed))
        stage.advance()
    return [run.finish(resampling) for run in runs]


def _each_label(inputs: ScoreInputs, columns: LabelMatrix | None) -> list[ScoreInputs]:
    """The inputs once for each label, sharing what does not depend on labels; as they are with one class an image."""
    return [inputs] if columns is None else [inputs.with_labels(column) for column in columns.T]


class _Run:
    """One score while it is evaluated: first on all images, then without each block, then with shuffled labels.

    Args:
        score: Which.
        first: Its evaluation on all images; one a label.
    """

    def __init__(self, score: AnyScore, first: Sequence[Evaluation]) -> None:
        self.score = score
        self.first = first
        self.defined = [place for place, evaluation in enumerate(first) if evaluation.full is not None]
        self.seconds = sum(evaluation.seconds for evaluation in first)
        self.no_interval: str | None = None
        self.blocks: list[list[RawValue]] = []
        self.shuffled: list[list[RawValue]] = []

    def evaluate(self, views: Sequence[ScoreInputs], seed: int) -> list[RawValue]:
        """One round: the values of all labels for which the score is defined."""
        return [_raw(self.score, views[place], seed) for place in self.defined]

    def add_block(self, views: Sequence[ScoreInputs], resampling: Resampling) -> None:
        """The values without one block, unless there is no interval anyway."""
        if self.no_interval is None:
            try:
                self.blocks.append(self.evaluate(views, resampling.seed))
            except NotApplicable as answer:
                self.no_interval = f"Not defined when one block of images is left out. {answer.reason}"

    def finish(self, resampling: Resampling) -> Evaluation:
        """All values of this score."""
        no_interval = self.no_interval or resampling.no_blocks_reason
        blocks = [] if self.no_interval else self.blocks
        finished = list(self.first)
        for column, place in enumerate(self.defined):
            values = {
                "blocks": [round_[column] for round_ in blocks],
                "shuffled": [round_[column] for round_ in self.shuffled],
            }
            finished[place] = finished[place].model_copy(update=values)
        finished = [one.model_copy(update={"no_interval_reason": no_interval}) for one in finished]
        if resampling.label_columns is None:
            return finished[0]
        return Evaluation(
            score=self.score.name,
            reason=None if self.defined else finished[0].reason,
            no_interval_reason=no_interval,
            seconds=self.seconds,
            peak_bytes=max(one.peak_bytes for one in finished),
            per_label=dict(zip(resampling.label_names, finished, strict=True)) if self.defined else {},
        )


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
