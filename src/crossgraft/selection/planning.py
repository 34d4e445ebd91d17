"""The plan of a selection: what everything costs, what is believed before, and what is expected to be tried."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crossgraft.errors import DataError, UsageError
from crossgraft.models.spec import PRETRAINED, ModelSpec
from crossgraft.rank.belief import Belief, believe
from crossgraft.rank.known_names import weights_of
from crossgraft.rank.published.aliases import weights_called
from crossgraft.rank.results_store import published_results
from crossgraft.records import KnownResult, PlannedModel, RungRecord, SelectionPlanRecord
from crossgraft.runs.jobs import Executor, Job, run_jobs
from crossgraft.selection.budget import Budget
from crossgraft.selection.costs import LEAST_LOADING_SECONDS, LEAST_PIXELS, SIZES, TimedModel, Timing, TimingWork
from crossgraft.selection.scheduler import refuse_small_budget, run_selection
from crossgraft.selection.study import SelectionStudy
from crossgraft.selection.table import TableTrials
from crossgraft.selection.training import trial_plan
from crossgraft.selection.trials import FULL
from crossgraft.selection.val_error import TYPICAL, standard_error, too_small
from crossgraft.tune.measuring.selection_metrics import choose_rule
from crossgraft.tune.planning.starting_model import load_start

SELECTION_PLAN_FILE = "plan.json"


def check_weights(study: SelectionStudy) -> dict[str, int]:
    """Load every network once, so that missing weights are named before anything is trained.

    Returns:
        Side of the input of each model, in pixels.

    Raises:
        MissingWeightsError: Weights are not on this machine.
        WeightsMismatchError: A checkpoint does not fit its architecture.
    """
    sides: dict[str, int] = {}
    with study.reporter.stage("Checking the weights", total=len(study.requests), unit="models") as stage:
        for model, request in study.requests.items():
            backbone = load_start(request.spec, request.options, scratch=False, reporter=study.reporter)
            sides[model] = min(backbone.preprocessing.height_pixels, backbone.preprocessing.width_pixels)
            stage.advance()
    return sides


def make_selection_plan(
    study: SelectionStudy, belief: Belief, budget: Budget, *, num_parallel: int, executor: Executor | None, prefer: str
) -> SelectionPlanRecord:
    """Time every training, and foresee what will be tried.

    Raises:
        UsageError: The budget is below one training, or there are no val images.
        DataError: No model can be trained.
    """
    rows = study.rows
    val = rows.dataset.targets[rows.parts[0].val]
    if len(val) == 0:
        raise UsageError("A selection needs val images, which decide between models. Leave out --val-fraction 0.")
    start = time.perf_counter()
    timed, notes = _time_all(study, executor)
    timing_seconds = time.perf_counter() - start
    num_classes, task = len(rows.dataset.class_names), rows.dataset.task
    options = next(iter(study.requests.values())).options
    metric = choose_rule(options.select_by, [val], num_classes).metric
    error = standard_error(metric, TYPICAL, val, num_classes, task)
    record = SelectionPlanRecord(
        budget=budget.text,
        budget_seconds=0.0,
        seconds_of_all=0.0,
        num_parallel=num_parallel,
        timing_seconds=timing_seconds,
        models=[_planned(study, timed[model], model, belief) for model in study.models],
        standard_error=error,
        val_too_small=too_small(metric, error, len(val)),
        notes=notes,
    )
    plan = trial_plan(record)
    if not plan.models:
        reasons = "; ".join(f"{model.name}: {model.reason}" for model in record.models)
        raise DataError(f"No model can be fine-tuned. {reasons}")
    seconds = budget.seconds(plan.seconds_of_all)
    refuse_small_budget(plan, seconds)
    record = record.model_copy(update={"budget_seconds": seconds, "seconds_of_all": plan.seconds_of_all})
    return _foreseen(record, belief, prefer=prefer, seed=options.seed)


def among(belief: Belief, models: Sequence[str]) -> Belief:
    """The belief about some of its models, before any observation."""
    places = [belief.models.index(model) for model in models]
    block = np.ix_(places, places)
    prior = belief.prior
    if prior is not None:
        spoke = tuple(prior.spoke[place] for place in places) if prior.spoke else ()
        general, specific = prior.general[block], prior.specific[block]
        prior = prior._replace(mean=prior.mean[places], general=general, specific=specific, spoke=spoke)
    return replace(
        belief,
        models=tuple(models),
        mean=belief.mean[places],
        covariance=belief.covariance[block],
        spoke=tuple(belief.spoke[place] for place in places) if belief.spoke else (),
        prior=prior,
        parts=(),
    ).after(())


def prior_belief(specs: Sequence[ModelSpec], *, known: Sequence[KnownResult], target: str, metric: str) -> Belief:
    """What is believed of the models of a zoo, by its names for them.

    Args:
        specs: The zoo.
        known: Known results, the shipped ones among them.
        target: Name of the data.
        metric: Metric that counts.
    """
    shipped = {id(row) for row in published_results()}
    own = [row for row in known if id(row) not in shipped]
    called = {row.identity: weights_of(row) for row in known}
    names: dict[str, str] = {}
    for spec in specs:
        name = _published_name(spec, called)
        names[spec.name] = name if name not in names.values() else f"{spec.source}.{spec.name}"
    if len(set(names.values())) < len(names):
        names = {spec.name: spec.name for spec in specs}
    belief = believe(list(names.values()), known=own, target=target, metric=metric)
    return replace(belief, models=tuple(names))


def _published_name(spec: ModelSpec, called: Mapping[str, str]) -> str:
    """By what timm, torchvision or the hub call these weights; of a file of one's own, its architecture and its name."""
    if spec.known_as is not None:
        return called.get(spec.known_as) or weights_called(spec.known_as) or spec.known_as
    return spec.source if spec.weights in (None, PRETRAINED) else f"{spec.source}.{spec.name}"


def _time_all(study: SelectionStudy, executor: Executor | None) -> tuple[Mapping[str, list[TimedModel]], list[str]]:
    """Everything of each model that can be timed, and what cannot be done, in words."""
    sides = check_weights(study)
    if executor is not None:
        study.refuse_unsendable()
    timings = [Timing(model, FULL) for model in study.models]
    timings += [
        Timing(model, kind, share)
        for model in study.models
        for kind, share in SIZES
        if len(study.models) > 1 and round(share * sides[model]) >= LEAST_PIXELS
    ]
    jobs = [Job(f"{timing.model} {timing.kind}", timing) for timing in timings]
    with study.reporter.stage("Timing a step of each training", total=len(jobs), unit="trainings") as stage:
        work = TimingWork(study.quiet(), sides)
        outcomes = run_jobs(jobs, work, keep_going=True, told=lambda _: stage.advance(), executor=executor)
    found: dict[str, list[TimedModel]] = {model: [] for model in study.models}
    notes: list[str] = []
    for outcome in outcomes:
        timing, timed = outcome.job.spec, outcome.result
        reason = outcome.reason if timed is None else timed.reason
        if timed is not None:
            found[timing.model].append(timed)
        elif timing.kind == FULL:
            found[timing.model].append(
                TimedModel(model=timing.model, kind=FULL, num_parameters=0, size_pixels=0, costs=[], reason=reason)
            )
        if reason and timing.kind != FULL:
            notes.append(f"{timing.model} is not tried at a lower resolution: {reason}")
    return found, notes


def _planned(study: SelectionStudy, timed: Sequence[TimedModel], model: str, belief: Belief) -> PlannedModel:
    whole = next(each for each in timed if each.kind == FULL)
    place = belief.models.index(model)
    # The first network that a process loads waits for libraries, which no trial does.
    loading = max(LEAST_LOADING_SECONDS, min(each.loading_seconds for each in timed))
    loaded = [cost.model_copy(update={"seconds": cost.seconds + loading}) for each in timed for cost in each.costs]
    costs = sorted(loaded, key=lambda cost: cost.seconds)
    return PlannedModel(
        name=model,
        source=study.requests[model].spec.source,
        num_parameters=whole.num_parameters,
        costs=costs if whole.reason is None else [],
        loading_seconds=loading,
        plan=whole.plan,
        reason=whole.reason,
        known_from=list(belief.spoke[place]) if belief.spoke else [],
        prior_mean=float(belief.mean[place]),
        prior_deviation=float(np.sqrt(belief.covariance[place, place])),
    )


def _foreseen(record: SelectionPlanRecord, belief: Belief, *, prefer: str, seed: int) -> SelectionPlanRecord:
    """With the rungs that are expected where every trial shows what is expected of it."""
    plan = trial_plan(record)
    prior = among(belief, plan.models)
    expected = dict(zip(prior.models, map(float, prior.mean), strict=True))
    trials = TableTrials(
        plan.seconds,
        {action: 0.8 + 0.02 * expected[action.model] for action in plan.seconds},
        plan.standard_errors,
        num_parallel=plan.num_parallel,
        going_on_seconds=plan.going_on_seconds,
    )
    sizes = {model.name: float(model.num_parameters) for model in record.models}
    found = run_selection(
        trials,
        prior,
        record.budget_seconds,
        prefer=prefer,
        sizes=sizes,
        is_blind=record.val_too_small is not None,
        seed=seed,
    )
    rungs = [
        RungRecord(
            kind=each.rung.kind,
            models=list(each.rung.models),
            booked_seconds=each.seconds,
            gain=each.gain,
            is_finish=each.is_finish,
        )
        for each in found.state.decisions
    ]
    return record.model_copy(update={"rungs": rungs, "expected_winner": found.model})
