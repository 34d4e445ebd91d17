"""Walk through the zoo: load a backbone, look at the images once, score, let it go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from crossgraft.compute import is_out_of_memory, limit_threads, reuse_freed_memory
from crossgraft.errors import CrossgraftError
from crossgraft.features.extract import foresee_extraction
from crossgraft.features.images import way_of_resizing
from crossgraft.features.store import FeatureSet
from crossgraft.models import Backbone, ModelSpec
from crossgraft.models.backbone import describe_model
from crossgraft.models.record import Role
from crossgraft.progress import Piece, TypicalClock
from crossgraft.rank.aggregate import Resampling
from crossgraft.rank.evaluate import ModelEvaluation, evaluate_scores
from crossgraft.rank.zoo import Member, Zoo, score_inputs, with_controls
from crossgraft.rank.zoo_options import Measurements, Options, Rounds, choose_options, measure_rounds
from crossgraft.running.jobs import Job, Work, num_read_back, results_of, run_jobs
from crossgraft.scores import AnyScore
from crossgraft.seeding import generator
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import count, counted

MEASURING, SCORING = "measuring", "scoring"
"""The two walks through the zoo, as parts of the work; in each, a member is a part, and in that one are these three."""
LOADING, LOOKING, ROUNDS = "loading", "looking", "rounds"

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
            del backbone
            if cost is not None:
                costs[spec.architecture_key] = cost
            stage.advance()
    if not costs:  # said only where somebody reads it
        zoo.reporter.say("How long all of it takes could not be measured before the start.")
        return
    rows = [(cost.loading, cost.looking, cost.scoring, cost.measuring) for cost in costs.values()]
    mean = MemberCost(*np.mean(rows, axis=0).tolist())
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
                evaluate_scores(scores, inputs, resampling, all_intervals=zoo.options.all_intervals, stage=stage)
            return stage.seconds_of(len(resampling.blocks), zoo.resampling, at_the_start=measures)

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
    folder = None if zoo.run is None else zoo.run.path / "models"
    measured = {path.name for path in folder.glob("*.measured.json")} if folder else set[str]()
    scored = {path.name for path in folder.glob("*.json")} - measured if folder else set[str]()
    if with_measuring:
        for member, cost in known[len(measured) :]:
            seconds = {LOADING: cost.loading, LOOKING: cost.looking, ROUNDS: cost.measuring}
            pieces += _of_member(MEASURING, member, seconds)
    for member, cost in known[len(scored) :]:
        seconds = {LOADING: cost.loading, LOOKING: 0.0 if with_measuring else cost.looking, ROUNDS: cost.scoring}
        pieces += _of_member(SCORING, member, seconds)
    return pieces


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
    """

    member: Member
    position: str
    options: Options = field(default_factory=dict[str, Rounds])
    measured: Measurements | None = None


Kept = TypeVar("Kept", Measurements, ModelEvaluation)


class _ZooWork(Work[Turn, Kept]):
    """Looks at one backbone at a time, and keeps what it gives as a record with a key."""

    kind: type[Kept]
    walk: str
    ending = ""

    def __init__(self, zoo: Zoo) -> None:
        self.zoo = zoo
        self.run = zoo.run

    @contextmanager
    def around(self, job: Job[Turn]) -> Generator[None]:
        """Load the backbone, which decides the key, and let it go again."""
        reporter = self.zoo.reporter
        with reporter.part(self.walk), reporter.part(job.name):
            with reporter.part(LOADING):
                self._backbone = self.zoo.load(job.spec.member.spec)
                self._key = self.zoo.key(self._backbone, job.spec.options)
            yield
        del self._backbone

    def read_back(self, job: Job[Turn]) -> Kept | None:
        """The record in the run directory."""
        finished = self.run.read_record(self._file, self.kind) if self.run else None
        return finished if finished is not None and finished.key == self._key else None

    def do(self, job: Job[Turn]) -> Kept:
        """Make and write the record."""
        record = self._look(job.spec, self._backbone)
        if self.run:
            self.run.write_record(self._file, record)
        return record

    @property
    def _file(self) -> str:
        return f"models/{self._key}{self.ending}.json"

    @abstractmethod
    def _look(self, turn: Turn, backbone: Backbone) -> Kept: ...


class Measuring(_ZooWork[Measurements]):
    """What the options of scores that depend on the whole zoo are chosen by; features are computed and kept."""

    kind, walk, ending = Measurements, MEASURING, ".measured"

    def _look(self, turn: Turn, backbone: Backbone) -> Measurements:
        zoo, spec = self.zoo, turn.member.spec
        with zoo.reporter.part(LOOKING):
            feature_set = zoo.extract(backbone, turn.position)
        inputs = score_inputs(zoo, backbone, feature_set, spec, zoo.adaptive)
        titles = ", ".join(score.title for score in zoo.adaptive)
        title = f"Measuring {spec.name} for {titles} ({turn.position})"
        with zoo.reporter.part(ROUNDS), zoo.rounds(title) as stage:
            rounds = measure_rounds(zoo.adaptive, inputs, zoo.resampling, stage=stage)
        return Measurements(key=self._key, features_from_cache=feature_set.from_cache, rounds=rounds)


class Evaluating(_ZooWork[ModelEvaluation]):
    """Features and scores; the seconds of each member are kept in ``run.json``."""

    kind, walk = ModelEvaluation, SCORING

    @contextmanager
    def around(self, job: Job[Turn]) -> Generator[None]:
        """As of all, measured."""
        with self.run.stage(job.name) if self.run else nullcontext(), super().around(job):
            yield

    def _look(self, turn: Turn, backbone: Backbone) -> ModelEvaluation:
        zoo, member, measured = self.zoo, turn.member, turn.measured
        with zoo.reporter.part(LOOKING):
            feature_set = zoo.extract(backbone, turn.position, quiet=measured is not None)
        inputs = score_inputs(zoo, backbone, feature_set, member.spec, zoo.scores)
        with zoo.reporter.part(ROUNDS), zoo.rounds(f"Scoring {member.spec.name} ({turn.position})") as stage:
            evaluations = evaluate_scores(
                zoo.scores, inputs, zoo.resampling, all_intervals=zoo.options.all_intervals, stage=stage, options=turn.options
            )
        from_cache = measured.features_from_cache if measured else feature_set.from_cache
        model = describe_model(backbone, member.role, seconds=feature_set.seconds, from_cache=from_cache)
        return ModelEvaluation(key=self._key, model=model, evaluations=evaluations)


def evaluate_zoo(zoo: Zoo, specs: Sequence[ModelSpec]) -> list[ModelEvaluation]:
    """Features and scores of every model and of its control; what an earlier attempt of the same run finished is read back.

    Raises:
        MissingWeightsError: Weights are not on this machine.
        WeightsMismatchError: A checkpoint does not fit its architecture.
    """
    members = with_controls(specs)
    with_measuring = bool(zoo.adaptive) and sum(member.role == "candidate" for member in members) > 1
    foresee(zoo, members, with_measuring=with_measuring)
    turns = [Turn(member, f"{number} of {len(members)}") for number, member in enumerate(members, start=1)]
    roles: list[Role] = [member.role for member in members]
    if with_measuring:
        with zoo.run.stage("options of scores") if zoo.run else nullcontext():
            measured = results_of(run_jobs(_jobs(turns), Measuring(zoo), keep_going=False))
        options = choose_options(zoo.adaptive, [one.rounds for one in measured], roles)
        turns = [replace(turn, options=o, measured=m) for turn, o, m in zip(turns, options, measured, strict=True)]
    outcomes = run_jobs(_jobs(turns), Evaluating(zoo), keep_going=False)
    if num_read_back(outcomes):
        zoo.reporter.say(f"{num_read_back(outcomes)} of {len(members)} models were read back from the run directory.")
    return results_of(outcomes)


def _jobs(turns: Sequence[Turn]) -> list[Job[Turn]]:
    return [Job(turn.member.spec.name, turn) for turn in turns]
