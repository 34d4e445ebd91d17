"""Walk through the zoo: load a backbone, look at the images once, score, let it go."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeVar

from crossgraft.models import Backbone, ModelSpec
from crossgraft.models.describe import describe_model
from crossgraft.models.record import Role
from crossgraft.rank.evaluate import ModelEvaluation, evaluate_scores
from crossgraft.rank.forecast import LOADING, LOOKING, MEASURING, ROUNDS, SCORING, foresee
from crossgraft.rank.zoo import Member, Zoo, score_inputs, with_controls
from crossgraft.rank.zoo_options import Measurements, Options, Rounds, choose_options, measure_rounds
from crossgraft.running.jobs import Job, Work, num_read_back, results_of, run_jobs


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
        inputs = score_inputs(zoo.dataset, backbone, feature_set, spec, zoo.adaptive)
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
        inputs = score_inputs(zoo.dataset, backbone, feature_set, member.spec, zoo.scores)
        with zoo.reporter.part(ROUNDS), zoo.rounds(f"Scoring {member.spec.name} ({turn.position})") as stage:
            evaluations = evaluate_scores(
                zoo.scores,
                inputs,
                zoo.resampling,
                all_intervals=zoo.options.all_intervals,
                stage=stage,
                options=turn.options,
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
