"""``select_model``: labelled images, a list of pretrained models and a budget in, one fine-tuned model out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from crossgraft.compute import available_cores, resolve_device
from crossgraft.data import Dataset
from crossgraft.data.describe import make_thumbnails
from crossgraft.data.opening import data_errors_first
from crossgraft.edit.edits import AskedEdits
from crossgraft.errors import RunDirectoryError, UsageError
from crossgraft.models import ModelSpec
from crossgraft.models.zoo import zoo_as_asked
from crossgraft.options._option import configuration
from crossgraft.rank.expected_order import ExpectedOrder
from crossgraft.rank.model_history import look_up_known_results
from crossgraft.running.jobs import MAX_WORKERS, worker_pool
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.select.options import SelectOptions
from crossgraft.select.planning import (
    SELECTION_PLAN_FILE,
    Budget,
    SelectionStudy,
    candidates_of,
    make_selection_plan,
    order_of_zoo,
    parse_budget,
    tune_options,
)
from crossgraft.select.record import SelectionPlanRecord
from crossgraft.select.result import SelectionResult, assemble_selection, begin_anew, hand_over, tidy
from crossgraft.select.rule import Trial, choose, run_selection
from crossgraft.select.training import limit_of_val, train_models
from crossgraft.select.val_error import shared_share
from crossgraft.storage.atomic import scratch_folder
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.edited_rows import edit_rows, read_edits
from crossgraft.tune.planning.preparation import Request, as_typed, checks_of_rows
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.tracking import open_tracking
from crossgraft.words.formatting import count, counted, duration

_ONE_TRAINING = {
    "grid": "each model is trained once",
    "folds": "models are compared on val, and test is opened once",
    "fold": "models are compared on val, and test is opened once",
    "keep": "each model is trained once",
}


@verb("select", SelectOptions)
def select_model(data: str | Path | Dataset, options: SelectOptions, run: Run) -> SelectionResult:
    """Select a pretrained model within a budget, and hand it over fine-tuned.

    Models are fine-tuned in the order of what is known of them elsewhere, own results first, else ImageNet and publications, as
    long as the budget lasts; the best on val is handed over. Where val reaches its limit the search ends, and the smallest model
    is tried beside. Test is opened once, for the model that is handed over, which is calibrated and saved as ``fine_tune`` does.
    Rows are split as ``rank_models`` and ``fine_tune`` do. ``replay_selection`` says what the rule gives on any table of results.

    The budget is spent in costs that are measured before the first training, those within 25 % of each other as equal, so that
    the same call with the same ``out`` goes on where it was stopped and decides alike. On the CPU as many trainings run at the
    same time as there are ``workers`` (two by default), each with one thread.

    Args:
        data: Folder, table, ``.npz`` file, ``digits``, or an open ``Dataset``.
        {options}

    Returns:
        The model and every number; with ``out`` the folder ``model`` that ``predict`` uses, ``report.html`` and
        ``models.csv`` there, and the run of the model's fine-tuning in ``trainings``.

    Raises:
        DataError: Something is wrong with the images or labels, or no training ended with a model.
        UsageError: The budget is below one training, or an argument is wrong or contradicts another.
        UntrustedCodeError: A zoo file names a function that nobody allowed.
        UnknownNameError: A name is not known.
        MissingWeightsError: Weights are not on this machine; nothing was trained then.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost:
        The budget, before it some timed steps of every training, and after it a look at val and test.
    """
    budget = parse_budget(options.budget)
    if budget.fixed_seconds is not None:
        run.reporter.say(f"The budget of {duration(budget.fixed_seconds)} is for everything, from now to the saved model.")
    _refuse_several_trainings(options)
    with data_errors_first(data, options):
        specs = zoo_as_asked(options.models, options, run.reporter)
    known, damage = look_up_known_results(specs, run.reporter)
    workers = _Workers.of(options)
    requests, edits = _requests(options, specs, workers)
    first = next(iter(requests.values()))
    tracking = open_tracking(options.track, run.reporter)
    location = data.name if isinstance(data, Dataset) else data
    with _directory(run, options, first, specs, location) as directory, workers.executor() as executor:
        begin_anew(directory)
        rows = open_rows(data, first.options, run.reporter)
        rows = edit_rows(rows, edits, first.options, run.reporter)
        directory.describe_data(rows.dataset.fingerprint)
        directory.describe_machine(run.reporter, threads=workers.num_parallel, device=workers.device)
        checks = [*checks_of_rows(rows, strict=options.strict, reporter=run.reporter), *damage]
        study = SelectionStudy(rows, checks, requests, directory, run.reporter)
        metric = rows.dataset.task.primary_metric
        order = order_of_zoo(specs, known=known, target=rows.dataset.name, metric=metric)
        plan = _plan(study, order, budget, workers, executor, lambda: run.seconds_beside)
        if options.plan:
            return SelectionResult(plan=plan.model_copy(update={"seconds_beside": run.seconds_beside}))
        run.reporter.say(_left_for_trainings(plan))
        if plan.val_too_small is not None:
            run.reporter.warn(f"{plan.val_too_small} Only the first model of the order is trained.")
        limit = limit_of_val(study)
        with run.reporter.stage(
            "Selecting a model", total=round(plan.seconds_for_trainings), unit="seconds of the budget"
        ) as stage:
            selected = run_selection(
                candidates_of(plan.models),
                plan.seconds_for_trainings,
                lambda models: train_models(study, models, executor, lambda t: run.reporter.leave(_in_words(t))),
                num_parallel=plan.num_parallel,
                limit=limit,
                is_blind=plan.val_too_small is not None,
                on_round=lambda seconds: stage.advance(round(seconds)),
            )
        shared_error = shared_share()
        weights = {
            model.name: float(model.num_parameters) if options.prefer == "small" else (model.seconds or 0.0)
            for model in plan.models
        }
        preference = choose(selected, options.prefer, weights, shared_error)
        tuned = hand_over(study, plan, preference.model, tracking)
        record = assemble_selection(
            study, plan, selected, preference, tuned.record, prefer=options.prefer, shared_error=shared_error, limit=limit
        )
        tidy(study, preference.model)
        result = SelectionResult(record, plan=plan, tuned=tuned)
        return _write(result, study, is_kept=options.out is not None)


@dataclass(frozen=True)
class _Workers:
    """How many trainings at a time, and where.

    Attributes:
        device: Where networks run.
        num_parallel: Trainings at the same time; on the CPU of one thread each.
    """

    device: str
    num_parallel: int

    @classmethod
    def of(cls, options: SelectOptions) -> _Workers:
        device = resolve_device(options.device)
        several = min(options.workers or min(MAX_WORKERS, available_cores()), available_cores())
        return cls(device, several if device == "cpu" and options.devices == 1 else 1)

    def threads(self, options: SelectOptions) -> int | None:
        """Threads of one training."""
        return 1 if self.device == "cpu" and options.devices == 1 else options.workers

    @contextmanager
    def executor(self) -> Generator[Executor | None]:
        """Workers beside this process; None where one training at a time is made here."""
        with worker_pool(self.num_parallel) if self.num_parallel > 1 else nullcontext() as pool:
            yield pool


def _refuse_several_trainings(options: SelectOptions) -> None:
    for name, reason in _ONE_TRAINING.items():
        if getattr(options, name) is not None:
            raise UsageError(f"--{name} does not go with select: {reason}. Leave it out, or use tune for the selected model.")


def _requests(
    options: SelectOptions, specs: Sequence[ModelSpec], workers: _Workers
) -> tuple[dict[str, Request], AskedEdits | None]:
    """What is asked for of each model, with every name looked up, and the edits of all images."""
    asked, edits = read_edits(replace(tune_options(options, specs[0]), workers=workers.threads(options)))
    return {spec.name: Request.of(replace(asked, model=spec)) for spec in specs}, edits


@contextmanager
def _directory(
    run: Run, options: SelectOptions, first: Request, specs: Sequence[ModelSpec], location: str | Path
) -> Generator[RunDirectory]:
    """The run directory; without ``out``, and for a plan, one that goes away with the block."""
    typed = _as_typed(options, first)
    resolved: Mapping[str, Any] = {**first.resolved(), "models": [spec.describe() for spec in specs]}
    resolved.pop("model")  # pyright: ignore[reportAttributeAccessIssue]  # made above
    with scratch_folder("selection") as temporary:
        out = temporary / "selection" if options.plan or options.out is None else options.out
        with run.directory(location, typed=typed, resolved=resolved, out=out) as directory:
            if directory is None:
                raise UsageError("A selection needs a run directory.")
            yield directory


def _as_typed(options: SelectOptions, first: Request) -> dict[str, Any]:
    """The configuration as a command line gives it."""
    of_tune = as_typed(configuration(first.options, TuneOptions))
    typed = {name: of_tune.get(name, value) for name, value in configuration(options).items()}
    if isinstance(options.models, Sequence) and not isinstance(options.models, str):
        typed["models"] = [model.typed if isinstance(model, ModelSpec) else model for model in options.models]
    return typed


def _plan(
    study: SelectionStudy,
    order: ExpectedOrder,
    budget: Budget,
    workers: _Workers,
    executor: Executor | None,
    beside: Callable[[], float],
) -> SelectionPlanRecord:
    """The plan that the selection was started with, else a new one.

    Raises:
        RunDirectoryError: An earlier version began this run, whose rule is gone.
    """
    if study.run.resumed:
        kept = study.run.read_record(SELECTION_PLAN_FILE, SelectionPlanRecord)
        if kept is not None:
            return kept
        if (study.run.path / SELECTION_PLAN_FILE).is_file():
            raise RunDirectoryError(
                f"The selection in {study.run.path} was begun by a version that decided by another rule, so it cannot go on. "
                "Use --overwrite to start it anew, or another --out."
            )
    plan = make_selection_plan(study, order, budget, num_parallel=workers.num_parallel, executor=executor, seconds_beside=beside)
    study.run.write_record(SELECTION_PLAN_FILE, plan)
    return plan


def _left_for_trainings(plan: SelectionPlanRecord) -> str:
    """What the budget covers, once the trainings are timed."""
    names = [name for some in plan.rounds for name in some]
    which = f"{counted(len(names), 'model')} of {count(len(plan.models))}, the most promising first"
    return f"{duration(plan.seconds_for_trainings)} of the budget are left for trainings, enough for {which}: {', '.join(names)}."


def _in_words(trial: Trial) -> str:
    if trial.value is None:
        return f"{trial.model}: dropped, {trial.reason}"
    return f"{trial.model}: {trial.value:.3f} on val, {duration(trial.seconds)}"


def _write(result: SelectionResult, study: SelectionStudy, *, is_kept: bool) -> SelectionResult:
    """Tables, record and page; nothing of it stays without ``out``."""
    run, record = study.run, result.record
    if not is_kept:
        run.finish()
        return replace(result, found=record.model_copy(update={"saved_model": None}))
    run.describe_weights(study.reporter, {record.model.name: record.model.weights_fingerprint})
    images = study.rows.dataset.take(study.rows.parts[0].train)
    page = publish(
        run,
        record,
        study.reporter,
        tables={"models.csv": result.to_frame()},
        split=study.rows.split_record(),
        thumbnails=None if next(iter(study.requests.values())).options.no_images else lambda: make_thumbnails(images),
    )
    return replace(result, out=run.path, report=page)
