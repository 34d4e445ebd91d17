"""Walk through the zoo: load a backbone, look at the images once, score, let it go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import astuple, dataclass, field, replace
from typing import TypeVar

import numpy as np

from crossgraft.compute import is_out_of_memory, limit_threads, reuse_freed_memory
from crossgraft.errors import CrossgraftError
from crossgraft.features.extract import foresee_extraction
from crossgraft.features.passes import way_of_resizing
from crossgraft.features.store import FeatureSet
from crossgraft.models import Backbone, ModelSpec
from crossgraft.models.backbone import describe_model
from crossgraft.progress import Piece, Reporter, TypicalClock
from crossgraft.rank.assemble import tell_values
from crossgraft.rank.evaluate import (
    FirstValues,
    Measurements,
    ModelEvaluation,
    Options,
    Resampling,
    Rounds,
    ScoreEvaluation,
    choose_options,
    evaluate_scores,
    measure_rounds,
    without_intervals,
)
from crossgraft.rank.look_ahead import LookAhead, looking_ahead
from crossgraft.rank.options import INTERVAL_SECONDS
from crossgraft.rank.zoo import Member, Zoo, score_inputs, with_controls
from crossgraft.records.base import Record
from crossgraft.running.jobs import Job, Work, num_read_back, results_of, run_jobs
from crossgraft.scores import AnyScore, ScoreInputs
from crossgraft.seeding import generator
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import count, counted

MEASURING, SCORING = "measuring", "scoring"
"""The two walks through the zoo, as parts of the work; in each, a member is a part, and in that one are these three."""
LOADING, LOOKING, ROUNDS = "loading", "looking", "rounds"

KEPT_BYTES, KEPT_A_BYTE = 2**30, 4
"""Features of so many bytes, and what scores computed from them, wait for the intervals: together so many times the features and
logits. Those of further models are read from the cache again, and their values computed again."""

_ROWS_AT_ONCE = 1024  # so that made-up features take no more memory than real ones


@dataclass(frozen=True)
class MemberCost:
    """Expected seconds of one member.

    Attributes:
        loading: Time to load the network.
        looking: Time to look at all images; 0 where its features are kept from an earlier run.
        scoring: Time of all rounds of all scores.
        measuring: Time of all rounds of what depends on the whole zoo.
    """

    loading: float
    looking: float
    scoring: float
    measuring: float


def foresee(zoo: Zoo, members: Sequence[Member], *, with_measuring: bool) -> None:
    """Load every candidate before the long work, time it, and say how long all of it will take.

    Args:
        zoo: What the members are looked at with.
        members: All of them, in their order; a control takes as long as the candidate of its architecture.
        with_measuring: Whether options of scores depend on the whole zoo.

    Raises:
        MissingWeightsError: Weights are not on this machine.
        WeightsMismatchError: A checkpoint does not fit its architecture.

    Cost: of loading all candidates, about 3 % of looking at the images, and 3 of 26 rounds for each width of features.
    """
    stopwatch = _Stopwatch(zoo, with_measuring=with_measuring)
    costs: dict[str, MemberCost] = {}
    candidates = [member.spec for member in members if member.role == "candidate"]
    with (
        limit_threads(zoo.num_threads),
        reuse_freed_memory(),
        zoo.reporter.stage("Checking the weights", total=len(candidates), unit="models") as stage,
    ):
        for spec in candidates:
            now = TypicalClock()
            start = now()
            backbone = zoo.load(spec)
            loading = now() - start
            wanted = zoo.reporter.wants_forecast
            cost = stopwatch.measure(Member(spec, "candidate"), backbone, loading=loading) if wanted else None
            zoo.keep(spec, backbone)
            del backbone
            if cost is not None:
                costs[spec.architecture_key] = cost
            stage.advance()
    if not costs:  # said only where somebody reads it
        zoo.reporter.say("How long all of it takes could not be measured before the start.")
        return
    mean = MemberCost(*np.mean([astuple(cost) for cost in costs.values()], axis=0).tolist())
    known = [(member, costs.get(member.spec.architecture_key, mean)) for member in members]
    zoo.reporter.expect(_pieces(zoo, known, with_measuring=with_measuring), _in_words(zoo, members))


class _Stopwatch:
    """Times one member after the other; the scores once for each width of features."""

    def __init__(self, zoo: Zoo, *, with_measuring: bool) -> None:
        self.zoo, self.with_measuring = zoo, with_measuring
        self._of_width: dict[object, tuple[float, float]] = {}
        self._ways: set[Preprocessing] = set()

    def measure(self, member: Member, backbone: Backbone, *, loading: float) -> MemberCost | None:
        """None where it cannot be measured; the real work will say why."""
        try:
            looking = self._looking(backbone)
            needs_model = any("model" in score.inputs for score in self.zoo.scores)
            width = (backbone.num_features, backbone.num_source_classes, backbone.name if needs_model else None)
            if width not in self._of_width:
                self._of_width[width] = self._rounds(member, backbone)
        except CrossgraftError:
            return None
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return None
        return MemberCost(loading, looking, *self._of_width[width])

    def _looking(self, backbone: Backbone) -> float:
        zoo, options = self.zoo, self.zoo.options
        way = way_of_resizing(backbone.preprocessing)
        images = zoo.images if way in self._ways else zoo.dataset  # the first one resizes; the others read what it made
        self._ways.add(way)
        return foresee_extraction(
            images, backbone, cache_dir=options.cache_dir, batch_size=options.batch_size, reporter=zoo.reporter
        )

    def _rounds(self, member: Member, backbone: Backbone) -> tuple[float, float]:
        """Seconds of all rounds: those of scoring, and those of measuring."""
        zoo = self.zoo
        made_up = _made_up_features(zoo, backbone)

        def timed(scores: Sequence[AnyScore], *, measures: bool) -> float:
            resampling, stage = _shortest(zoo.resampling), _Laps()
            inputs = score_inputs(zoo, backbone, made_up, member.spec, scores)
            if measures:
                measure_rounds(scores, inputs, resampling, stage=stage)
            else:
                evaluate_scores(scores, inputs, resampling, interval_seconds=zoo.options.longest_with_interval, stage=stage)
            return stage.seconds_of(len(resampling.blocks), zoo.resampling, at_the_start=measures)

        with zoo.threads_of_rounds():
            measuring = timed(zoo.adaptive, measures=True) if self.with_measuring else 0.0
            return timed(zoo.scores, measures=False), measuring


class _Laps:
    """A stage that notes when each round is done; in measuring, when it begins."""

    def __init__(self) -> None:
        self._now = TypicalClock()
        self._times = [self._now()]

    def advance(self, amount: int = 1) -> None:
        """A round is done, or begins."""
        self._times.append(self._now())

    def note(self, text: str) -> None:
        """Nothing to tell."""

    def seconds_of(self, num_blocks: int, whole: Resampling, *, at_the_start: bool) -> float:
        """Time of all rounds of ``whole``, from one round of each kind."""
        times = [*self._times[1:], self._now()] if at_the_start else self._times
        first, *rest = np.diff(times).tolist()
        blocks, shuffled = rest[:num_blocks], rest[num_blocks:]
        return first + sum(blocks) * len(whole.blocks) + (shuffled[0] * len(whole.shuffled_labels) if shuffled else 0.0)


def _shortest(resampling: Resampling) -> Resampling:
    """One round of each kind."""
    return replace(resampling, blocks=resampling.blocks[:1], shuffled_labels=resampling.shuffled_labels[:1])


def _made_up_features(zoo: Zoo, backbone: Backbone) -> FeatureSet:
    """As many as the network will give, positive and in clusters, as features of classes are."""
    rng = generator(zoo.options.seed, "made-up features")
    dataset, number, width = zoo.dataset, len(zoo.dataset), backbone.num_features
    centres = rng.standard_normal((len(dataset.class_names), width), dtype=np.float32)
    marks = dataset.task.marks(dataset.targets, len(dataset.class_names)).astype(np.float32)
    features = rng.standard_normal((number, width), dtype=np.float32)
    for start in range(0, number, _ROWS_AT_ONCE):
        some = slice(start, start + _ROWS_AT_ONCE)
        features[some] = np.maximum(features[some] + marks[some] @ centres, 0)
    classes = backbone.num_source_classes
    logits = None if classes is None else rng.standard_normal((number, classes), dtype=np.float32)
    return FeatureSet(features=features, source_logits=logits, seconds=0.0, from_cache=False)


def _pieces(zoo: Zoo, known: Sequence[tuple[Member, MemberCost]], *, with_measuring: bool) -> list[Piece]:
    """In the order of the work, without what an earlier attempt has done: members are done in their order."""
    pieces: list[Piece] = []
    at_first = {member.spec.name: 0.0 if member.spec.name in zoo.loaded else cost.loading for member, cost in known}
    measured, valued, scored = (_num_done(zoo, kind) for kind in (Measurements, FirstValues, ModelEvaluation))
    if with_measuring:
        for member, cost in known[measured:]:
            seconds = {LOADING: at_first[member.spec.name], LOOKING: cost.looking, ROUNDS: cost.measuring}
            pieces += _of_member(MEASURING, member, seconds)
        for member, cost in known[scored:]:
            pieces += _of_member(SCORING, member, {LOADING: cost.loading, LOOKING: 0.0, ROUNDS: cost.scoring})
        return pieces
    for member, cost in known[scored + valued :]:
        if member.role == "candidate":
            pieces += _of_member(SCORING, member, {LOADING: at_first[member.spec.name], LOOKING: cost.looking})
    for member, cost in known[scored:]:
        looking = {LOADING: cost.loading, LOOKING: cost.looking} if member.role != "candidate" else {}
        pieces += _of_member(SCORING, member, {**looking, ROUNDS: cost.scoring})
    return pieces


def _num_done(zoo: Zoo, kind: type[Record]) -> int:
    """Members that an earlier attempt has such a record of."""
    if zoo.run is None:
        return 0
    names = [f"models/{path.name}" for path in (zoo.run.path / "models").glob("*.json")]
    return sum(zoo.run.read_record(name, kind) is not None for name in names)


def _of_member(walk: str, member: Member, seconds: dict[str, float]) -> list[Piece]:
    return [
        Piece((walk, member.spec.name, what), value, f"{walk} {what}" if what == ROUNDS else what)
        for what, value in seconds.items()
    ]


def _in_words(zoo: Zoo, members: Sequence[Member]) -> str:
    number = sum(member.role == "candidate" for member in members)
    parts = [f"{counted(number, 'model')} × {counted(len(zoo.dataset), 'image')}", counted(len(zoo.scores), "score")]
    controls = len(members) - number
    parts += [f"{count(controls)} random control{'s' if controls > 1 else ''}"] if controls else []
    return ", ".join([*parts, f"{count(1 + len(zoo.resampling.blocks) + len(zoo.resampling.shuffled_labels))} rounds each"])


@dataclass(frozen=True)
class Turn:
    """What is done with one member.

    Attributes:
        member: Entry of the zoo.
        position: For messages, for example ``2 of 7``.
        options: Those of scores that depend on the whole zoo.
        measured: What they were chosen by, if there are any.
        first: Values without intervals, if they are known.
        features: What they were computed from, if it is at hand.
        inputs: The same with what the scores computed from it, without the network.
    """

    member: Member
    position: str
    options: Options = field(default_factory=dict[str, Rounds])
    measured: Measurements | None = None
    first: FirstValues | None = None
    features: FeatureSet | None = None
    inputs: ScoreInputs | None = None


Kept = TypeVar("Kept", Measurements, FirstValues, ModelEvaluation)


class _ZooWork(Work[Turn, Kept]):
    """Looks at one backbone at a time, and keeps what it gives as a record with a key."""

    kind: type[Kept]
    walk: str
    ending = ""
    """The end of the file's name, after the key."""

    def __init__(self, zoo: Zoo, ahead: LookAhead) -> None:
        self.zoo = zoo
        self.run = zoo.run
        self.ahead = ahead
        self._backbone: Backbone | None = None
        self._features: FeatureSet | None = None

    @contextmanager
    def around(self, job: Job[Turn]) -> Generator[None]:
        """Load the backbone, which decides the key, and let it go again."""
        reporter = self.zoo.reporter
        with reporter.part(self.walk), reporter.part(job.name):
            with reporter.part(LOADING):
                self._load(job.spec)
            try:
                yield
            finally:
                self._backbone = self._features = None

    def _load(self, turn: Turn) -> None:
        looked = self.ahead.take(turn.member.spec.name)
        if looked is not None:
            self._backbone, self._features = looked
        self._key = self.zoo.key(self.backbone(turn), turn.options)

    def backbone(self, turn: Turn) -> Backbone:
        """That of the member, loaded once it is needed."""
        if self._backbone is None:
            self._backbone = self.zoo.load(turn.member.spec)
        return self._backbone

    def read_back(self, job: Job[Turn]) -> Kept | None:
        """The record in the run directory."""
        finished = self.run.read_record(self._file, self.kind) if self.run else None
        return finished if finished is not None and finished.key == self._key else None

    def do(self, job: Job[Turn]) -> Kept:
        """Make and write the record."""
        record = self._look(job.spec)
        if self.run:
            self.run.write_record(self._file, record)
        return record

    @property
    def _file(self) -> str:
        return f"models/{self._key}{self.ending}.json"

    def inputs(self, turn: Turn, scores: Sequence[AnyScore]) -> tuple[FeatureSet, ScoreInputs]:
        """Features of the member, and what the scores see; where the device is free, the next member is begun with."""
        zoo, backbone = self.zoo, None
        with zoo.reporter.part(LOOKING):
            features = self._features
            if features is None:
                is_known = turn.measured is not None or turn.first is not None
                reporter = Reporter(quiet=True) if is_known else None
                features = zoo.extract(self.backbone(turn), turn.position, reporter=reporter)
        self.ahead.begin()
        if any("model" in score.inputs for score in scores):
            backbone = self.backbone(turn)
        inputs = score_inputs(zoo, backbone, features, turn.member.spec, scores)
        if turn.inputs is not None:
            inputs.share(turn.inputs)
        return features, inputs

    @abstractmethod
    def _look(self, turn: Turn) -> Kept: ...


class Measuring(_ZooWork[Measurements]):
    """What the options of scores that depend on the whole zoo are chosen by; features are computed and kept."""

    kind, walk, ending = Measurements, MEASURING, ".measured"

    def _look(self, turn: Turn) -> Measurements:
        zoo, spec = self.zoo, turn.member.spec
        feature_set, inputs = self.inputs(turn, zoo.adaptive)
        titles = ", ".join(score.title for score in zoo.adaptive)
        title = f"Measuring {spec.name} for {titles} ({turn.position})"
        with zoo.reporter.part(ROUNDS), zoo.rounds(title) as stage:
            rounds = measure_rounds(zoo.adaptive, inputs, zoo.resampling, stage=stage)
        return Measurements(key=self._key, features_from_cache=feature_set.from_cache, rounds=rounds)


class Valuing(_ZooWork[FirstValues]):
    """Features and the first round of all scores, so that there is a value of every model before any interval."""

    kind, walk = FirstValues, SCORING

    def __init__(self, zoo: Zoo, ahead: LookAhead) -> None:
        super().__init__(zoo, ahead)
        self.kept: dict[str, tuple[FeatureSet, ScoreInputs]] = {}
        self._room = KEPT_BYTES

    def read_back(self, job: Job[Turn]) -> FirstValues | None:
        """The record in the run directory, or what the whole evaluation holds of it."""
        whole = self.run.read_record(self._file, ModelEvaluation) if self.run else None
        if whole is not None and whole.key == self._key:
            return FirstValues(key=whole.key, model=whole.model, values=whole.evaluations)
        return super().read_back(job)

    def _look(self, turn: Turn) -> FirstValues:
        zoo, member = self.zoo, turn.member
        feature_set, inputs = self.inputs(turn, zoo.scores)
        title = f"First values of {member.spec.name} ({turn.position})"
        with zoo.rounds(title, total=1) as stage:
            values = evaluate_scores(zoo.scores, inputs, without_intervals(zoo.resampling), stage=stage)
        logits = feature_set.source_logits
        num_bytes = KEPT_A_BYTE * (feature_set.features.nbytes + (0 if logits is None else logits.nbytes))
        if self._room >= num_bytes:
            self._room -= num_bytes
            inputs.model = inputs.images = None  # the network is let go
            self.kept[member.spec.name] = feature_set, inputs
        backbone = self.backbone(turn)
        model = describe_model(backbone, member.role, seconds=feature_set.seconds, from_cache=feature_set.from_cache)
        return FirstValues(key=self._key, model=model, values=values)


class Evaluating(_ZooWork[ModelEvaluation]):
    """Features and scores; the seconds of each member are kept in ``run.json``."""

    kind, walk = ModelEvaluation, SCORING

    @contextmanager
    def around(self, job: Job[Turn]) -> Generator[None]:
        """As of all, measured."""
        with self.run.stage(job.name) if self.run else nullcontext(), super().around(job):
            yield

    def _load(self, turn: Turn) -> None:
        if turn.first is None:
            super()._load(turn)
        else:  # what decides the key was seen already
            self._key, self._features = turn.first.key, turn.features

    def _look(self, turn: Turn) -> ModelEvaluation:
        zoo, member, measured, first = self.zoo, turn.member, turn.measured, turn.first
        feature_set, inputs = self.inputs(turn, zoo.scores)
        with zoo.reporter.part(ROUNDS), zoo.rounds(f"Scoring {member.spec.name} ({turn.position})") as stage:
            evaluations = evaluate_scores(
                zoo.scores,
                inputs,
                zoo.resampling,
                interval_seconds=zoo.options.longest_with_interval,
                stage=stage,
                options=turn.options,
                first=self._known(turn),
            )
        if first is not None:
            return ModelEvaluation(key=self._key, model=first.model, evaluations=evaluations)
        from_cache = measured.features_from_cache if measured else feature_set.from_cache
        model = describe_model(self.backbone(turn), member.role, seconds=feature_set.seconds, from_cache=from_cache)
        return ModelEvaluation(key=self._key, model=model, evaluations=evaluations)

    def _known(self, turn: Turn) -> list[ScoreEvaluation | None] | None:
        """Values of all images; None of those to compute anew, from which values without a block start (lists of neighbours)."""
        if turn.first is None or turn.inputs is not None:
            return turn.first and list[ScoreEvaluation | None](turn.first.values)
        return [
            None if values.seconds <= INTERVAL_SECONDS and "images" not in score.inputs else values  # passes leave nothing
            for score, values in zip(self.zoo.scores, turn.first.values, strict=True)
        ]


def evaluate_zoo(zoo: Zoo, specs: Sequence[ModelSpec]) -> list[ModelEvaluation]:
    """Features and scores of every model and of its control; what an earlier attempt of the same run finished is read back.

    The values of all models come first, and are told; intervals and controls follow. Options that depend on the whole zoo come
    before all of that.

    Raises:
        MissingWeightsError: Weights are not on this machine.
        WeightsMismatchError: A checkpoint does not fit its architecture.
    """
    members = with_controls(specs)
    with_measuring = bool(zoo.adaptive) and sum(member.role == "candidate" for member in members) > 1
    foresee(zoo, members, with_measuring=with_measuring)
    turns = [Turn(member, f"{number} of {len(members)}") for number, member in enumerate(members, start=1)]
    positions = [(turn.member, turn.position) for turn in turns]
    with limit_threads(zoo.num_threads), reuse_freed_memory(), looking_ahead(zoo, positions) as ahead:
        turns = _measured(zoo, turns, ahead) if with_measuring else _valued(zoo, turns, ahead)
        outcomes = run_jobs(_jobs(turns), Evaluating(zoo, ahead), keep_going=False)
    if num_read_back(outcomes):
        zoo.reporter.say(f"{num_read_back(outcomes)} of {len(members)} models were read back from the run directory.")
    return results_of(outcomes)


def _measured(zoo: Zoo, turns: Sequence[Turn], ahead: LookAhead) -> list[Turn]:
    """With the options that depend on all of them."""
    with zoo.run.stage("options of scores") if zoo.run else nullcontext():
        measured = results_of(run_jobs(_jobs(turns), Measuring(zoo, ahead), keep_going=False))
    options = choose_options(zoo.adaptive, [one.rounds for one in measured], [turn.member.role for turn in turns])
    return [replace(turn, options=o, measured=m) for turn, o, m in zip(turns, options, measured, strict=True)]


def _valued(zoo: Zoo, turns: Sequence[Turn], ahead: LookAhead) -> list[Turn]:
    """With the values of the candidates, which are told."""
    candidates = [turn for turn in turns if turn.member.role == "candidate"]
    work = Valuing(zoo, ahead)
    outcomes = run_jobs(_jobs(candidates), work, keep_going=False)
    values = {outcome.job.name: first for outcome, first in zip(outcomes, results_of(outcomes), strict=True)}
    if len(values) > 1 and num_read_back(outcomes) < len(values):
        primary = zoo.primary or zoo.scores[0].name
        tell_values(list(values.values()), zoo.scores, primary, zoo.reporter, scenario=zoo.options.scenario)
    names = [turn.member.spec.name for turn in turns]
    kept = [work.kept.get(name, (None, None)) for name in names]
    return [
        replace(turn, first=values.get(name), features=features, inputs=inputs)
        for turn, name, (features, inputs) in zip(turns, names, kept, strict=True)
    ]


def _jobs(turns: Sequence[Turn]) -> list[Job[Turn]]:
    return [Job(turn.member.spec.name, turn) for turn in turns]
