"""The plan of a selection: what every whole training costs, what is expected of it, and what fits into the budget."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossgraft.errors import DataError, OutOfMemoryError, UsageError
from crossgraft.models.spec import PRETRAINED, ModelSpec
from crossgraft.rank.expected_order import ExpectedOrder, expected_order
from crossgraft.rank.known_names import weights_of
from crossgraft.rank.known_record import KnownResult
from crossgraft.rank.published.aliases import weights_called
from crossgraft.rank.results_store import published_results
from crossgraft.records.base import Record
from crossgraft.running.jobs import Executor, Job, Work, run_jobs
from crossgraft.select.budget import Budget
from crossgraft.select.record import PlannedModel, SelectionPlanRecord
from crossgraft.select.rule import Candidate, equal_costs, planned, refuse_small_budget, seconds_of_all
from crossgraft.select.study import SelectionStudy
from crossgraft.select.val_error import TYPICAL, standard_error, too_small
from crossgraft.tune.forecast import cost_of_measuring
from crossgraft.tune.measuring.look_cost import num_looks_after
from crossgraft.tune.measuring.selection_metrics import choose_rule
from crossgraft.tune.planning.plan import make_plan
from crossgraft.tune.planning.starting_model import load_start
from crossgraft.tune.record import PlanRecord

SELECTION_PLAN_FILE = "plan.json"
LEAST_LOADING_SECONDS = 0.5
"""Added to every training at least: to read a network from the disk and build it, and to write what was trained."""


class TimedTraining(Record):
    """What was found of one training; ``seconds`` without loading."""

    num_parameters: int
    seconds: float | None = None
    loading_seconds: float = 0.0
    plan: PlanRecord | None = None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class TimingWork(Work[str, TimedTraining]):
    """Makes a few steps of each training, as ``fine_tune`` does for its plan, by as many processes as later train together."""

    study: SelectionStudy

    def do(self, job: Job[str]) -> TimedTraining:
        """Cost of one training with the looks that follow it."""
        start = time.perf_counter()
        prepared = self.study.prepare(job.spec)
        loading, size = time.perf_counter() - start, prepared.backbone.num_parameters
        try:
            plan = make_plan(prepared, run=None, reporter=self.study.reporter).record
        except OutOfMemoryError as error:
            return TimedTraining(num_parameters=size, loading_seconds=loading, reason=" ".join(str(error).split()))
        if plan.expected_seconds is None:
            return TimedTraining(
                num_parameters=size, loading_seconds=loading, reason=plan.expected_reason or "not timed"
            )
        measuring = cost_of_measuring(prepared)
        looks = num_looks_after(self.study.rows.parts[0], adapts=prepared.compares_adapted)
        seconds = plan.expected_seconds + measuring.look * looks + measuring.metrics
        return TimedTraining(num_parameters=size, seconds=seconds, loading_seconds=loading, plan=plan)


def check_weights(study: SelectionStudy) -> None:
    """Load every network once, so that missing weights are named before anything is trained.

    Raises:
        MissingWeightsError: Weights are not on this machine.
        WeightsMismatchError: A checkpoint does not fit its architecture.
    """
    with study.reporter.stage("Checking the weights", total=len(study.requests), unit="models") as stage:
        for request in study.requests.values():
            load_start(request.spec, request.options, scratch=False, reporter=study.reporter)
            stage.advance()


def make_selection_plan(
    study: SelectionStudy, order: ExpectedOrder, budget: Budget, *, num_parallel: int, executor: Executor | None
) -> SelectionPlanRecord:
    """Time every training, and say what fits into the budget.

    Args:
        study: What all trainings share.
        order: What is expected of its models.
        budget: As it was given.
        num_parallel: Trainings at the same time.
        executor: Where they are timed; None: here.

    Raises:
        UsageError: The budget is below one training, or there are no val images.
        DataError: No model can be trained.
    """
    rows = study.rows
    val = rows.dataset.targets[rows.parts[0].val]
    if len(val) == 0:
        raise UsageError("A selection needs val images, which decide between models. Leave out --val-fraction 0.")
    start = time.perf_counter()
    timed = _time_all(study, executor)
    timing_seconds = time.perf_counter() - start
    if all(each.reason for each in timed.values()):
        reasons = "; ".join(f"{model}: {each.reason}" for model, each in timed.items())
        raise DataError(f"No model can be fine-tuned. {reasons}")
    num_classes, task = len(rows.dataset.class_names), rows.dataset.task
    options = next(iter(study.requests.values())).options
    metric = choose_rule(options.select_by, [val], num_classes).metric
    error = standard_error(metric, TYPICAL, val, num_classes, task)
    costs = equal_costs(
        {
            model: each.seconds + max(LEAST_LOADING_SECONDS, each.loading_seconds)
            for model, each in timed.items()
            if each.seconds is not None
        }
    )
    record = SelectionPlanRecord(
        budget=budget.text,
        budget_seconds=0.0,
        seconds_of_all=0.0,
        num_parallel=num_parallel,
        timing_seconds=timing_seconds,
        models=[
            PlannedModel(
                name=model,
                source=study.requests[model].spec.source,
                num_parameters=timed[model].num_parameters,
                seconds=costs.get(model),
                plan=timed[model].plan,
                reason=timed[model].reason,
                expected=float(order.values[place]),
                num_own_targets=int(order.num_own[place]),
                known_from=list(order.spoke[place]),
            )
            for place, model in enumerate(study.models)
        ],
        standard_error=error,
        val_too_small=too_small(metric, error, len(val)),
    )
    candidates = candidates_of(record)
    of_all = seconds_of_all(candidates, num_parallel)
    seconds = budget.seconds(of_all)
    refuse_small_budget(candidates, seconds)
    return record.model_copy(
        update={
            "budget_seconds": seconds,
            "seconds_of_all": of_all,
            "rounds": rounds_in_names(candidates, seconds, record),
        }
    )


def rounds_in_names(candidates: Sequence[Candidate], seconds: float, record: SelectionPlanRecord) -> list[list[str]]:
    """Models that are trained together, round by round, if nothing surprises."""
    rounds = [[each.name for each in some] for some in planned(candidates, seconds, record.num_parallel)]
    return rounds if record.val_too_small is None else [rounds[0][:1]]


def candidates_of(record: SelectionPlanRecord) -> list[Candidate]:
    """The models that can be trained."""
    return [
        Candidate(model.name, model.expected, model.seconds, float(model.num_parameters))
        for model in record.models
        if model.seconds is not None
    ]


def order_of_zoo(
    specs: Sequence[ModelSpec], *, known: Sequence[KnownResult], target: str, metric: str
) -> ExpectedOrder:
    """What is expected of the models of a zoo.

    Args:
        specs: The zoo.
        known: Known results, the shipped ones among them.
        target: Name of the data.
        metric: Metric that counts.
    """
    shipped = {id(row) for row in published_results()}
    called = {row.identity: weights_of(row) for row in known}
    names: list[str] = []
    for spec in specs:
        name = _published_name(spec, called)
        names.append(name if name not in names else f"{spec.source}.{spec.name}")
    if len(set(names)) < len(names):
        names = [spec.name for spec in specs]
    own = [row for row in known if id(row) not in shipped]
    return expected_order(names, own=own, target=target, metric=metric)


def _published_name(spec: ModelSpec, called: Mapping[str, str]) -> str:
    """By what timm, torchvision or the hub call these weights; of a file of one's own, its architecture and its name."""
    if spec.known_as is not None:
        return called.get(spec.known_as) or weights_called(spec.known_as) or spec.known_as
    return spec.source if spec.weights in (None, PRETRAINED) else f"{spec.source}.{spec.name}"


def _time_all(study: SelectionStudy, executor: Executor | None) -> dict[str, TimedTraining]:
    """The training of each model that can be timed, or why it cannot be made."""
    check_weights(study)
    if executor is not None:
        study.refuse_unsendable()
    jobs = [Job(model, model) for model in study.models]
    with study.reporter.stage("Timing a step of each training", total=len(jobs), unit="trainings") as stage:
        work = TimingWork(study.quiet())
        outcomes = run_jobs(jobs, work, keep_going=True, told=lambda _: stage.advance(), executor=executor)
    return {
        outcome.job.spec: outcome.result or TimedTraining(num_parameters=0, reason=outcome.reason)
        for outcome in outcomes
    }
