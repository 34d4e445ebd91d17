"""Every score of one model: its value, the values without each block, the values under shuffled labels, the cost.

Options of scores that depend on the whole zoo are measured on every model first, then chosen for all models together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pydantic import Field

from crossgraft.compute import measure_cost
from crossgraft.errors import DataError, NotApplicable
from crossgraft.models.record import ModelRecord, Role
from crossgraft.progress import Stage
from crossgraft.rank.options import INTERVAL_SECONDS
from crossgraft.records.base import Record
from crossgraft.scores import AnyScore, ScoreInputs, ZooOption, ZooScore
from crossgraft.seeding import derive_seed, generator
from crossgraft.statistics import jackknife_blocks, shuffle_labels
from crossgraft.statistics.jackknife import Block
from crossgraft.tasks import task_of
from crossgraft.types import ClassIndices, Groups, LabelMatrix, Targets

NUM_SHUFFLES = 5
FEWEST_IMAGES_OF_LABEL = 10
"""A label is scored with at least this many images that have it, and as many that have not."""


@dataclass(frozen=True)
class Resampling:
    """Blocks to leave out, shuffled labels and the seed of scores; the same for every model, so that differences are paired.

    With several labels per image, scores see one label at a time.

    Attributes:
        blocks: Rows that are left out together.
        no_blocks_reason: Reason why there are no blocks.
        shuffled_labels: (n,), or (n, K) of the K scored labels; whole label sets move together.
        seed: Random seed of the scores.
        label_columns: (n, K) of 0 and 1 of the scored labels; None with one class per image.
        label_names: Names of those columns.
        labels_left_out: Other labels, and why they are not scored.
        scores_left_out: Names of scores that are not computed, and why.
    """

    blocks: tuple[Block, ...]
    no_blocks_reason: str | None
    shuffled_labels: tuple[Targets, ...]
    seed: int
    label_columns: LabelMatrix | None = None
    label_names: tuple[str, ...] = ()
    labels_left_out: dict[str, str] = field(default_factory=dict)
    scores_left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def plan_resampling(
    targets: Targets, groups: Groups | None, *, seed: int, label_names: Sequence[str] | None = None
) -> Resampling:
    """Choose jackknife blocks and label permutations once for the whole zoo.

    Args:
        targets: Class of each row, or (n, L) of 0 and 1.
        groups: Stay together in blocks and permutations.
        seed: Random seed.
        label_names: Names of the L labels.

    Raises:
        DataError: There are labels, and none has enough images with it and without it.
    """
    if task_of(targets).classes_of_scores(targets) is None:
        names = [f"label {label}" for label in range(targets.shape[1])] if label_names is None else label_names
        return _plan_label_sets(targets, names, groups, seed)
    blocks, reason = _blocks(targets, groups, seed)
    if any(len(np.unique(np.delete(targets, block))) < 2 for block in blocks):
        blocks, reason = (), "One jackknife block holds all images of all classes but one."
    return Resampling(blocks, reason, _shuffles(targets, groups, seed), seed)


def _plan_label_sets(targets: LabelMatrix, names: Sequence[str], groups: Groups | None, seed: int) -> Resampling:
    """Blocks are drawn, and labels shuffled, as if each set of labels that occurs were a class."""
    sets, set_of_row = np.unique(targets, axis=0, return_inverse=True)
    set_of_row = set_of_row.ravel()
    blocks, reason = _blocks(set_of_row, groups, seed)
    why_not = [_why_not_scored(targets[:, label], blocks) for label in range(len(names))]
    scored = [label for label, why in enumerate(why_not) if why is None]
    left_out = {name: why for name, why in zip(names, why_not, strict=True) if why is not None}
    if not scored:
        first, why = next(iter(left_out.items()))
        raise DataError(
            f"None of the {len(names)} labels can be scored; the first is {first}: {why} Bring more images, or choose other "
            "labels (--label-column)."
        )
    return Resampling(
        blocks,
        reason,
        tuple(sets[shuffled][:, scored] for shuffled in _shuffles(set_of_row, groups, seed)),
        seed,
        label_columns=targets[:, scored],
        label_names=tuple(names[label] for label in scored),
        labels_left_out=left_out,
    )


def _why_not_scored(column: ClassIndices, blocks: Sequence[Block]) -> str | None:
    """Why a label cannot be scored, or None: it needs images with and without it, in every jackknife round."""
    for value, how in ((1, "with it"), (0, "without it")):
        is_value = column == value
        count = int(is_value.sum())
        if count < FEWEST_IMAGES_OF_LABEL:
            images = "image" if count == 1 else "images"
            return f"{count} {images} {how}, where at least {FEWEST_IMAGES_OF_LABEL} are needed."
        if any(is_value[block].sum() == count for block in blocks):
            return f"all {count} images {how} are of groups that one jackknife block leaves out together."
    return None


def _blocks(targets: ClassIndices, groups: Groups | None, seed: int) -> tuple[tuple[Block, ...], str | None]:
    try:
        return tuple(jackknife_blocks(targets, groups, seed=seed)), None
    except DataError as error:
        return (), str(error)


def _shuffles(targets: ClassIndices, groups: Groups | None, seed: int) -> tuple[ClassIndices, ...]:
    return tuple(shuffle_labels(targets, groups, generator(seed, "shuffled labels", i)) for i in range(NUM_SHUFFLES))


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
    interval_seconds: float = INTERVAL_SECONDS,
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
        interval_seconds: Longest time that a score may take once and still have an interval.
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
    of_images = sum(run.seconds for run in running if "images" in run.score.inputs)  # whoever comes first pays for the others
    for run in running:
        seconds = of_images if "images" in run.score.inputs else run.seconds
        if seconds > interval_seconds:
            run.no_interval = f"no interval (--interval-seconds {interval_seconds:g})"
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
