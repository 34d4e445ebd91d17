"""Every score of one model: its value, the values without each block, the values under shuffled labels, the cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import Field

from crossgraft.compute import measure_cost
from crossgraft.errors import NotApplicable
from crossgraft.models.record import ModelRecord
from crossgraft.progress import Stage
from crossgraft.rank.aggregate import Resampling
from crossgraft.rank.zoo_options import Options, PerView, Rounds, each_label, with_shuffled, without_block
from crossgraft.records.base import Record
from crossgraft.scores import AnyScore, ScoreInputs, ZooScore
from crossgraft.seeding import derive_seed

INTERVAL_COST_LIMIT_SECONDS = 60.0
"""A score that takes longer once has no interval unless asked for: the jackknife would take it twenty times more."""


class RawValue(Record):
    """What one evaluation of a score gave; zoo-level scores have parts and get their value from the whole zoo."""

    value: float | None
    parts: dict[str, float] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)


class ScoreEvaluation(Record):
    """One score of one model, before models are compared.

    With several labels per image ``per_label`` has an evaluation of each scored label, and the values are in there.
    """

    score: str
    reason: str | None = None
    full: RawValue | None = None
    blocks: list[RawValue] = Field(default_factory=list)
    redrawn: list[RawValue] = Field(default_factory=list)
    shuffled: list[RawValue] = Field(default_factory=list)
    no_interval_reason: str | None = None
    seconds: float = 0.0
    peak_bytes: int = 0
    per_label: dict[str, ScoreEvaluation] = Field(default_factory=dict)


class ModelEvaluation(Record):
    """All scores of one model; kept in the run directory, so that a killed run goes on with the next model."""

    key: str
    model: ModelRecord
    evaluations: list[ScoreEvaluation]


class FirstValues(Record):
    """The values of one model, before intervals; the evaluation takes the place of the file."""

    key: str
    model: ModelRecord
    values: list[ScoreEvaluation]


def evaluate_scores(
    scores: Sequence[AnyScore],
    inputs: ScoreInputs,
    resampling: Resampling,
    *,
    all_intervals: bool,
    stage: Stage,
    options: Options | None = None,
    first: Sequence[ScoreEvaluation | None] | None = None,
) -> list[ScoreEvaluation]:
    """Evaluate ``scores`` on one model.

    Args:
        scores: Scores in the order in which they are shown.
        inputs: Features, labels, groups and source logits of the model; without labels where the resampling has columns of
            them.
        resampling: Plan from ``plan_resampling``.
        all_intervals: Whether to compute intervals also for scores that take longer than ``INTERVAL_COST_LIMIT_SECONDS`` once.
        stage: Advanced by one for each of 1 + 20 + 5 rounds.
        options: Those that depend on the whole zoo, from ``choose_options``.
        first: What the same call gave with ``without_intervals(resampling)``, which is not computed again where it is not None.

    Raises:
        DataError: The features cannot be scored at all (NaN, one class …).
    """
    views = each_label(inputs, resampling.label_columns)
    known = [None] * len(scores) if first is None else first
    runs = [
        _Run(
            score,
            views,
            resampling.seed,
            (options or {}).get(score.name),
            first=values,
            left_out=resampling.scores_left_out.get(score.name),
        )
        for score, values in zip(scores, known, strict=True)
    ]
    stage.advance()
    running = [run for run in runs if run.defined]
    for run in running:
        if run.seconds > INTERVAL_COST_LIMIT_SECONDS and not all_intervals:
            run.no_interval = "no interval (cost)"
        elif resampling.blocks:
            run.redraw()
    for number, block in enumerate(resampling.blocks):
        views = without_block(inputs, block, resampling)
        for run in running:
            run.add_block(views, number)
        stage.advance()
    for number, labels in enumerate(resampling.shuffled_labels):
        views = with_shuffled(inputs, labels)
        for run in running:
            run.add_shuffled(views, number)
        stage.advance()
    return [run.finish(resampling) for run in runs]


def without_intervals(resampling: Resampling) -> Resampling:
    """The first round alone: every score on all images."""
    return replace(resampling, blocks=(), shuffled_labels=(), no_blocks_reason="Intervals come later.")


class _Run:
    """One score while it is evaluated: first on all images, then without each block, then with shuffled labels.

    ``views`` are all images, once for each label. ``seed`` is the same for every model and round, so that differences are
    paired; ``options`` are the values of the score's zoo option in every round, and None leaves it alone. ``first`` is what an
    earlier run finished with; ``left_out`` says why nothing is computed.
    """

    def __init__(
        self,
        score: AnyScore,
        views: Sequence[ScoreInputs],
        seed: int,
        options: Rounds | None,
        *,
        first: ScoreEvaluation | None = None,
        left_out: str | None = None,
    ) -> None:
        self.score = score
        self.seed = seed
        self.options = options
        if first is None:
            self.first = [
                ScoreEvaluation(score=score.name, reason=left_out)
                if left_out
                else _evaluate_once(score, view, self._settings(options.full[place] if options else None))
                for place, view in enumerate(views)
            ]
        else:
            self.first = list(first.per_label.values()) or [first] * len(views)
        self.defined = [place for place, evaluation in enumerate(self.first) if evaluation.full is not None]
        self.seconds = sum(evaluation.seconds for evaluation in self.first)
        self.views = views
        self.no_interval: str | None = None
        self.blocks: list[list[RawValue]] = []
        self.redrawn: list[list[RawValue]] = []
        self.shuffled: list[list[RawValue]] = []

    def redraw(self) -> None:
        """The values with other seeds, of a score whose interval needs them; all images, so every statistic is there already."""
        for number in range(self.score.num_redraws):
            seed = derive_seed(self.seed, self.score.name, "redrawn", number)
            self.redrawn.append(self._evaluate(self.views, self.options.full if self.options else None, seed=seed))

    def add_block(self, views: Sequence[ScoreInputs], number: int) -> None:
        """The values without one block, unless there is no interval anyway."""
        if self.no_interval is None:
            try:
                self.blocks.append(self._evaluate(views, self.options.blocks[number] if self.options else None))
            except NotApplicable as answer:
                self.no_interval = f"Not defined when one block of images is left out. {answer.reason}"

    def add_shuffled(self, views: Sequence[ScoreInputs], number: int) -> None:
        """The values with labels shuffled; where there are none the record shows one shuffled value less."""
        with suppress(NotApplicable):
            self.shuffled.append(self._evaluate(views, self.options.shuffled[number] if self.options else None))

    def _evaluate(self, views: Sequence[ScoreInputs], options: PerView | None, *, seed: int | None = None) -> list[RawValue]:
        """One round: the values of all labels for which the score is defined."""
        return [
            _raw(self.score, views[place], self._settings(options[place] if options else None, seed=seed))
            for place in self.defined
        ]

    def _settings(self, option: float | None, *, seed: int | None = None) -> dict[str, Any]:
        settings: dict[str, Any] = (
            {"seed": self.seed if seed is None else seed} if "seed" in self.score.signature.parameters else {}
        )
        if self.score.zoo_option is not None and option is not None:
            settings[self.score.zoo_option.name] = option
        return settings

    def finish(self, resampling: Resampling) -> ScoreEvaluation:
        """All values of this score."""
        no_interval = self.no_interval or resampling.no_blocks_reason
        blocks = [] if self.no_interval else self.blocks
        finished = list(self.first)
        for column, place in enumerate(self.defined):
            values = {
                "blocks": [round_[column] for round_ in blocks],
                "redrawn": [round_[column] for round_ in self.redrawn],
                "shuffled": [round_[column] for round_ in self.shuffled],
            }
            finished[place] = finished[place].model_copy(update=values)
        finished = [one.model_copy(update={"no_interval_reason": no_interval}) for one in finished]
        if resampling.label_columns is None:
            return finished[0]
        return ScoreEvaluation(
            score=self.score.name,
            reason=None if self.defined else finished[0].reason,
            no_interval_reason=no_interval,
            seconds=self.seconds,
            peak_bytes=max(one.peak_bytes for one in finished),
            per_label=dict(zip(resampling.label_names, finished, strict=True)) if self.defined else {},
        )


def _evaluate_once(score: AnyScore, inputs: ScoreInputs, settings: Mapping[str, Any]) -> ScoreEvaluation:
    reason = score.missing_inputs(inputs)
    if reason is not None:
        return ScoreEvaluation(score=score.name, reason=reason)
    with measure_cost() as cost:
        try:
            full = _raw(score, inputs, settings)
        except NotApplicable as answer:
            return ScoreEvaluation(score=score.name, reason=answer.reason)
    return ScoreEvaluation(score=score.name, full=full, seconds=cost.seconds, peak_bytes=cost.peak_bytes)


def _raw(score: AnyScore, inputs: ScoreInputs, settings: Mapping[str, Any]) -> RawValue:
    if isinstance(score, ZooScore):
        parts = score.parts(inputs, **settings)
        return RawValue(value=None, parts=dict(parts), warnings=list(parts.warnings))
    value = score.evaluate(inputs, **settings)
    return RawValue(value=float(value), parts=dict(value.parts), warnings=list(value.warnings))
