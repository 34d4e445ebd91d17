"""Whole trainings: each is a job of the resumable sweep, in this process or in several beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.errors import DataError
from crossgraft.running.jobs import Job, Outcome, Work, run_jobs
from crossgraft.select.planning import SelectionStudy
from crossgraft.select.rule import Trial
from crossgraft.select.val_error import standard_error
from crossgraft.tune.measuring.selection_metrics import choose_rule


@dataclass(frozen=True, eq=False)
class WholeTraining(Work[str, Trial]):
    """Trains one model as ``fine_tune`` does; what of it was done before is read back from its folder."""

    study: SelectionStudy

    def do(self, job: Job[str]) -> Trial:
        """What is seen on val.

        Raises:
            CrossgraftError: The training failed, or the metric that picks the model is not defined.
        """
        start, model = time.perf_counter(), job.spec
        work = self.study.work(model)
        training = work.job({})
        with limit_threads(work.prepared.num_threads), reuse_freed_memory():
            trained = work.read_back(training) or work.do(training)
        value, rule = trained.record.point.val_metric, work.prepared.rule
        if value is None or value != value:
            raise DataError(f"The metric that picks the model ({rule.metric}) is not defined on val.")
        rows, targets = self.study.rows, self.study.rows.dataset.targets[self.study.rows.parts[0].val]
        error = standard_error(rule.metric, value, targets, len(rows.dataset.class_names), rows.dataset.task)
        seconds = time.perf_counter() - start
        return Trial(model, -value if rule.direction == "min" else value, error, seconds=seconds)


def train_models(
    study: SelectionStudy, models: Sequence[str], executor: Executor | None, on_trial: Callable[[Trial], object]
) -> list[Trial]:
    """Train models wholly, as many at a time as there are workers; one that fails has a reason.

    Args:
        study: What all trainings share.
        models: Their names.
        executor: Where trainings are done; None: one after the other in this process.
        on_trial: Called in this process with each trial as it comes.
    """
    return [
        _trial(outcome)
        for outcome in run_jobs(
            [Job(f"{model} full", model) for model in models],
            WholeTraining(study if executor is None else study.quiet()),
            keep_going=True,
            told=lambda outcome: on_trial(_trial(outcome)),
            executor=executor,
        )
    ]


def limit_of_val(study: SelectionStudy) -> float | None:
    """Largest value that val can show; None for a loss."""
    rows, options = study.rows, next(iter(study.requests.values())).options
    rule = choose_rule(options.select_by, [rows.dataset.targets[rows.parts[0].val]], len(rows.dataset.class_names))
    return None if rule.direction == "min" else 1.0


def _trial(outcome: Outcome[str, Trial]) -> Trial:
    if outcome.result is not None:
        return outcome.result
    return Trial(outcome.job.spec, None, reason=outcome.reason, seconds=outcome.seconds)
