"""The plan of a selection: what every whole training costs, what is expected of it, and what fits into the budget."""

from __future__ import annotations

import math
import pickle
import re
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from crossgraft.errors import DataError, OutOfMemoryError, UsageError
from crossgraft.models import ModelSpec
from crossgraft.models.spec import PRETRAINED
from crossgraft.options._option import Options, from_mapping, options_of
from crossgraft.progress import Reporter
from crossgraft.rank.expected_order import ExpectedOrder, expected_order
from crossgraft.rank.published.tables import weights_called
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import published_results, weights_of
from crossgraft.records.base import CheckRecord, Record
from crossgraft.running.command_line import portable_names
from crossgraft.running.jobs import Job, Outcome, Work, run_jobs
from crossgraft.running.run_directory import RunDirectory
from crossgraft.select.record import PlannedModel, SelectionPlanRecord
from crossgraft.select.rule import Candidate, equal_costs, planned, refuse_small_budget, refuse_spent_budget, seconds_of_all
from crossgraft.select.val_error import TYPICAL, standard_error, too_small
from crossgraft.tune.forecast import cost_of_measuring, num_looks_after
from crossgraft.tune.jobs import TrainingWork
from crossgraft.tune.measuring.selection_metrics import choose_rule
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.fold_networks import load_start
from crossgraft.tune.planning.plan import make_plan
from crossgraft.tune.planning.preparation import Preparation, Request, prepare
from crossgraft.tune.record import PlanRecord

_SECONDS = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TEXT = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>[a-z%]+)", re.IGNORECASE)
_EXAMPLES = "Examples: --budget 30min, --budget 2h, --budget 25% (of the time to fine-tune all models)."


@dataclass(frozen=True)
class Budget:
    """A budget as it was given.

    Attributes:
        text: As typed.
        fixed_seconds: Seconds; None for a share.
        share: Share of the time to fine-tune all models, in (0, 1]; None for a time.
    """

    text: str
    fixed_seconds: float | None = None
    share: float | None = None

    def seconds(self, seconds_of_all: float) -> float:
        """In seconds, where fine-tuning all models takes ``seconds_of_all``."""
        return self.fixed_seconds if self.fixed_seconds is not None else (self.share or 0.0) * seconds_of_all


def parse_budget(text: str) -> Budget:
    """Read a budget.

    Raises:
        UsageError: It is no time and no share; the message has examples.

    >>> parse_budget("30min").fixed_seconds, parse_budget("25%").share
    (1800.0, 0.25)
    """
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--budget {text}: this is no time and no share. {_EXAMPLES}")
    number, unit = float(match["number"]), match["unit"].lower()
    if unit == "%":
        if not 0 < number <= 100:
            raise UsageError(f"--budget {text}: a share lies above 0% and at most at 100%. {_EXAMPLES}")
        return Budget(text.strip(), share=number / 100)
    if unit not in _SECONDS:
        raise UsageError(f"--budget {text}: the unit {unit} is not known; it is s, min, h, d or %. {_EXAMPLES}")
    if number == 0 or math.isinf(number * _SECONDS[unit]):
        raise UsageError(f"--budget {text}: a budget is longer than nothing. {_EXAMPLES}")
    return Budget(text.strip(), fixed_seconds=number * _SECONDS[unit])


TRAININGS_FOLDER = "trainings"
"""In the run directory: one folder per model, with its training at full resolution."""


def tune_options(options: Options, spec: ModelSpec) -> TuneOptions:
    """Those of ``select`` that ``fine_tune`` has, for one model; it can be sent to another process."""
    known = {name: getattr(options, name) for name in options_of(TuneOptions) if hasattr(options, name)}
    return from_mapping(TuneOptions, {**known, "model": spec, "reporter": None, "plan": False})


@dataclass(frozen=True, eq=False)
class SelectionStudy:
    """What all trainings of a selection share; goes with its jobs to other processes.

    Attributes:
        rows: Opened once, with one split for all.
        checks: Findings about them.
        requests: What is asked for of each model, by its name.
        run: Run directory of the selection.
        reporter: Reporter of what a training finds.
    """

    rows: TuningRows
    checks: list[CheckRecord]
    requests: Mapping[str, Request]
    run: RunDirectory
    reporter: Reporter

    @property
    def models(self) -> list[str]:
        """Names, in the order of the zoo."""
        return list(self.requests)

    def prepare(self, model: str, *, run: RunDirectory | None = None) -> Preparation:
        """Everything before the first step of one training."""
        return prepare(self.rows, self.requests[model], run=run, reporter=self.reporter, checks=list(self.checks))

    def work(self, model: str) -> TrainingWork:
        """The training of one model."""
        prepared = self.prepare(model)
        return TrainingWork(prepared, prepared.fold_data(self.rows.parts[0]), self.inside(self.folder(model)))

    def folder(self, model: str) -> str:
        """Where the training of one model lies in the run directory; two models never share it."""
        return f"{TRAININGS_FOLDER}/{portable_names(self.requests)[list(self.requests).index(model)]}"

    def inside(self, folder: str) -> RunDirectory:
        """A folder of the run as a run directory of its own, guarded by the lock of the selection."""
        path = self.run.path / folder
        path.mkdir(parents=True, exist_ok=True)
        record = self.run.record.model_copy(update={"machine": {}, "stages": []})
        return RunDirectory(path, record, earlier=record)

    def quiet(self) -> SelectionStudy:
        """The same, which shows nothing."""
        return replace(self, reporter=Reporter(quiet=True))

    def refuse_unsendable(self) -> None:
        """Raise where trainings cannot be done in other processes.

        Raises:
            UsageError: Something cannot be sent to them.
        """
        try:
            pickle.dumps(self)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise UsageError(
                f"Several trainings at a time are made in processes of their own, and something cannot be sent to them: {error}. "
                "Define functions and classes at the top of a module, or train one at a time with --workers 1."
            ) from error

    def __getstate__(self) -> dict[str, object]:
        """Without what shows progress, which stays in this process."""
        return {**vars(self), "reporter": None}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """In the other process."""
        vars(self).update({**state, "reporter": Reporter(quiet=True)})


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

    @property
    def seconds_with_loading(self) -> float | None:
        """What the training is booked for; None where it was not timed."""
        return None if self.seconds is None else self.seconds + max(LEAST_LOADING_SECONDS, self.loading_seconds)


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
            plan = make_plan(prepared, run=None, reporter=self.study.reporter, needs_time=True).record
        except OutOfMemoryError as error:
            return TimedTraining(num_parameters=size, loading_seconds=loading, reason=" ".join(str(error).split()))
        if plan.expected_seconds is None:
            return TimedTraining(num_parameters=size, loading_seconds=loading, reason=plan.expected_reason or "not timed")
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
    study: SelectionStudy,
    order: ExpectedOrder,
    budget: Budget,
    *,
    num_parallel: int,
    executor: Executor | None,
    seconds_beside: Callable[[], float] = float,
) -> SelectionPlanRecord:
    """Time every training, and say what fits into the budget.

    Args:
        study: What all trainings share.
        order: What is expected of its models.
        budget: As it was given.
        num_parallel: Trainings at the same time.
        executor: Where they are timed; None: here.
        seconds_beside: Says, once they are timed, what the command takes beside trainings. A budget that is a time covers that,
            too; a share is one of the trainings alone.

    Raises:
        UsageError: The budget is below one training, or gone before all are timed; or there are no val images.
        DataError: No model can be trained.
    """
    rows = study.rows
    val = rows.dataset.targets[rows.parts[0].val]
    if len(val) == 0:
        raise UsageError("A selection needs val images, which decide between models. Leave out --val-fraction 0.")
    start = time.perf_counter()

    def refuse_spent(so_far: Sequence[TimedTraining]) -> None:
        known = [each.seconds_with_loading for each in so_far if each.seconds_with_loading is not None]
        num_left = len(study.models) - len(so_far)
        if budget.fixed_seconds is not None and known and num_left:
            timing_left = (time.perf_counter() - start) / len(so_far) * num_left
            refuse_spent_budget(budget.fixed_seconds, spent=seconds_beside(), still=timing_left + min(known))

    timed = _time_all(study, executor, refuse_spent)
    timing_seconds = time.perf_counter() - start
    if all(each.reason for each in timed.values()):
        reasons = "; ".join(f"{model}: {each.reason}" for model, each in timed.items())
        raise DataError(f"No model can be fine-tuned. {reasons}")
    num_classes, task = len(rows.dataset.class_names), rows.dataset.task
    options = next(iter(study.requests.values())).options
    metric = choose_rule(options.select_by, [val], num_classes).metric
    error = standard_error(metric, TYPICAL, val, num_classes, task)
    costs = equal_costs(
        {model: each.seconds_with_loading for model, each in timed.items() if each.seconds_with_loading is not None}
    )
    models = [
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
    ]
    candidates = candidates_of(models)
    of_all = seconds_of_all(candidates, num_parallel)
    seconds = budget.seconds(of_all)
    beside = 0.0 if budget.fixed_seconds is None else seconds_beside()
    refuse_small_budget(candidates, seconds, beside=beside)
    rounds = [[each.name for each in some] for some in planned(candidates, seconds - beside, num_parallel)]
    val_too_small = too_small(metric, error, len(val))
    return SelectionPlanRecord(
        budget=budget.text,
        budget_seconds=seconds,
        training_seconds=None if budget.fixed_seconds is None else seconds - beside,
        seconds_of_all=of_all,
        num_parallel=num_parallel,
        timing_seconds=timing_seconds,
        models=models,
        rounds=rounds if val_too_small is None else [rounds[0][:1]],
        standard_error=error,
        val_too_small=val_too_small,
    )


def candidates_of(models: Sequence[PlannedModel]) -> list[Candidate]:
    """Those that can be trained."""
    return [
        Candidate(model.name, model.expected, model.seconds, float(model.num_parameters))
        for model in models
        if model.seconds is not None
    ]


def order_of_zoo(specs: Sequence[ModelSpec], *, known: Sequence[KnownResult], target: str, metric: str) -> ExpectedOrder:
    """What is expected of the models of a zoo.

    Args:
        specs: The zoo.
        known: Known results, the shipped ones among them.
        target: Name of the data.
        metric: Metric that counts.
    """
    shipped = {id(row) for row in published_results()}
    rows = list(known)
    called = {row.identity: weights_of(row) for row in rows}
    names: list[str] = []
    for spec in specs:
        name = _published_name(spec, called)
        names.append(name if name not in names else f"{spec.source}.{spec.name}")
    if len(set(names)) < len(names):
        names = [spec.name for spec in specs]
    own = [row for row in rows if id(row) not in shipped]
    return expected_order(names, own=own, target=target, metric=metric)


def _published_name(spec: ModelSpec, called: Mapping[str, str]) -> str:
    """By what timm, torchvision or the hub call these weights; of a file of one's own, its architecture and its name."""
    if spec.known_as is not None:
        return called.get(spec.known_as) or weights_called(spec.known_as) or spec.known_as
    return spec.source if spec.weights in (None, PRETRAINED) else f"{spec.source}.{spec.name}"


def _time_all(
    study: SelectionStudy, executor: Executor | None, so_far: Callable[[Sequence[TimedTraining]], object]
) -> dict[str, TimedTraining]:
    """The training of each model that can be timed, or why it cannot be made; ``so_far`` sees those that are, one by one."""
    check_weights(study)
    if executor is not None:
        study.refuse_unsendable()
    jobs = [Job(model, model) for model in study.models]
    with study.reporter.stage("Timing a step of each training", total=len(jobs), unit="trainings") as stage:
        timed: dict[str, TimedTraining] = {}

        def told(outcome: Outcome[str, TimedTraining]) -> None:
            timed[outcome.job.spec] = outcome.result or TimedTraining(num_parameters=0, reason=outcome.reason)
            stage.advance()
            so_far(list(timed.values()))

        run_jobs(jobs, TimingWork(study.quiet()), keep_going=True, told=told, executor=executor)
    return {model: timed[model] for model in study.models}
