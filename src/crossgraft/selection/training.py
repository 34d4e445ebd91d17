"""Trials that train: each is a job of the resumable sweep, in this process or in several beside it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crossgraft.errors import DataError
from crossgraft.features import extract_features
from crossgraft.rank.shared_images import shared_share
from crossgraft.records import SelectionPlanRecord
from crossgraft.runs.jobs import Executor, Job, Outcome, Work, run_jobs
from crossgraft.scores import logme
from crossgraft.selection.costs import SCORE
from crossgraft.selection.study import SelectionStudy
from crossgraft.selection.trials import FULL, Action, Trial, TrialPlan, epoch_of, goes_on
from crossgraft.selection.val_error import standard_error
from crossgraft.tune.jobs import TrainingWork
from crossgraft.tune.planning.starting_model import load_start


@dataclass(frozen=True)
class TrialJob:
    """An action, with the side of the input where it is another than that of the whole training."""

    action: Action
    image_size: int | None = None


@dataclass(frozen=True, eq=False)
class TrialWork(Work[TrialJob, Trial]):
    """Does one action; what of it was done before is read back from its folder."""

    study: SelectionStudy

    def do(self, job: Job[TrialJob]) -> Trial:
        """What is seen on val.

        Raises:
            CrossgraftError: A training failed, or the metric that picks the model is not defined.
        """
        start, action = time.perf_counter(), job.spec.action
        if action.kind == SCORE:
            return Trial(action, self._score(action.model), seconds=time.perf_counter() - start)
        work = self.study.work(action.model, job.spec.image_size)
        values = self._values(work, action.kind)
        finite = [value for value in values if not math.isnan(value)]
        if not finite:
            raise DataError(f"The metric that picks the model ({work.prepared.rule.metric}) is not defined on val.")
        rule = work.prepared.rule
        best = min(finite) if rule.direction == "min" else max(finite)
        rows, targets = self.study.rows, self.study.rows.dataset.targets[self.study.rows.parts[0].val]
        error = standard_error(rule.metric, best, targets, len(rows.dataset.class_names), rows.dataset.task)
        seconds = time.perf_counter() - start
        return Trial(action, -best if rule.direction == "min" else best, error, seconds=seconds)

    def _values(self, work: TrainingWork, kind: str) -> list[float]:
        """The metric that picks the model after every epoch so far."""
        job = work.job({})
        found = work.read_back(job)
        if found is None and goes_on(kind) and kind != FULL:
            rows = work.go_on(job, until_epoch=epoch_of(kind))
            return [work.prepared.rule.value(row.metrics) for row in rows]
        trained = work.do(job) if found is None else found
        value = trained.record.point.val_metric
        return [] if value is None else [value]

    def _score(self, model: str) -> float:
        """LogME of the features of the training rows."""
        study, request = self.study, self.study.requests[model]
        rows = study.rows.dataset.take(study.rows.parts[0].train)
        backbone = load_start(request.spec, request.options, scratch=False, reporter=study.reporter)
        features = extract_features(rows, backbone, num_threads=request.options.workers, is_announced=True)
        labels = rows.task.classes_of_scores(rows.targets)
        if labels is None:
            raise DataError("A score of frozen features looks at one class per image.")
        return float(logme(features=features.features, labels=labels))


@dataclass(frozen=True, eq=False)
class TrainingTrials:
    """Trials that train.

    Attributes:
        study: What all trainings share.
        record: Costs and budget.
        executor: Where trainings are done; None: one after the other in this process.
        told: Called in this process with each trial as it comes.
    """

    study: SelectionStudy
    record: SelectionPlanRecord
    executor: Executor | None
    told: Callable[[Trial], object]

    def plan(self) -> TrialPlan:
        """The costs that were measured when the selection was planned."""
        return trial_plan(self.record)

    def run(self, actions: Sequence[Action]) -> list[Trial]:
        """Do all actions, as many at a time as there are workers; one that fails has a reason."""
        sizes = {
            Action(model.name, cost.kind): cost.size_pixels for model in self.record.models for cost in model.costs
        }
        jobs = [
            Job(f"{action.model} {action.kind}", TrialJob(action, sizes[action] if _is_smaller(action) else None))
            for action in actions
        ]
        study = self.study if self.executor is None else self.study.quiet()
        outcomes = run_jobs(
            jobs,
            TrialWork(study),
            keep_going=True,
            told=lambda outcome: self.told(_trial(outcome)),
            executor=self.executor,
        )
        return [_trial(outcome) for outcome in outcomes]


def trial_plan(record: SelectionPlanRecord) -> TrialPlan:
    """Costs of everything that can be done."""
    seconds = {
        Action(model.name, cost.kind): cost.seconds
        for model in record.models
        if model.reason is None
        for cost in model.costs
    }
    error = record.standard_error
    errors = {action.kind: error for action in seconds if action.kind != SCORE} if error is not None else {}
    going_on = {model.name: model.loading_seconds for model in record.models}
    return TrialPlan(seconds, errors, record.num_parallel, shared_share(), going_on)


def _is_smaller(action: Action) -> bool:
    return action.kind.startswith("low:size=")


def _trial(outcome: Outcome[TrialJob, Trial]) -> Trial:
    if outcome.result is not None:
        return outcome.result
    return Trial(outcome.job.spec.action, None, reason=outcome.reason, seconds=outcome.seconds)
