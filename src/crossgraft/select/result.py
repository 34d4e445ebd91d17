"""What ``select_model`` returns."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from crossgraft.data.describe import describe_dataset
from crossgraft.errors import UsageError
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import overall
from crossgraft.models.classifier import Classifier
from crossgraft.records.base import Record, Reference
from crossgraft.result import EXIT_PARTIAL
from crossgraft.running.run_directory import RunDirectory
from crossgraft.select.page import selected_in_words, selection_plan_in_words
from crossgraft.select.planning import TRAININGS_FOLDER, SelectionStudy, candidates_of
from crossgraft.select.record import CandidateRecord, PlannedModel, SelectionPlanRecord, SelectionRecord
from crossgraft.select.rule import Preference, Selected, Trial, chance_better, expected_regret, in_order, planned
from crossgraft.tune.planning.plan import PLAN_FILE, make_plan
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.result import FineTuningResult, ModelResult
from crossgraft.tune.saving.saved_model import FACTS_FILE, IMAGES_FILE, MODEL_FOLDER, SavedModel
from crossgraft.tune.tracking import Tracker
from crossgraft.tune.trainings import train_and_evaluate
from crossgraft.words.formatting import duration

if TYPE_CHECKING:
    import pandas as pd


def hand_over(study: SelectionStudy, plan: SelectionPlanRecord, model: str, tracking: Tracker) -> FineTuningResult:
    """Open test once, for the selected model, and save it as ``model``.

    Its training is read back. It becomes a run of ``crossgraft tune`` in the folder of its training, with a page of its own.

    Raises:
        CrossgraftError: As ``fine_tune``.
    """
    own = study.inside(study.folder(model))
    own.record = own.record.model_copy(
        update={"command": "tune", "config": {**own.record.config, "model": study.requests[model].spec.typed}, "state": "running"}
    )
    whole = plan.model(model).plan
    if whole is not None:
        own.write_record(PLAN_FILE, whole)
    prepared = study.prepare(model, run=own)
    tuned = train_and_evaluate(
        prepared, make_plan(prepared, run=own, reporter=study.reporter), run=own, tracking=tracking, reporter=study.reporter
    )
    _copy_model(own, study.run)
    return tuned


def tidy(study: SelectionStudy, selected: str) -> None:
    """Remove the trainings of the models that are not handed over."""
    kept = study.run.path / study.folder(selected)
    for folder in (study.run.path / TRAININGS_FOLDER).glob("*"):
        if folder != kept:
            shutil.rmtree(folder, ignore_errors=True)


def begin_anew(run: RunDirectory) -> None:
    """Set aside the trainings of a run that ``--overwrite`` replaces."""
    run.own(f"{TRAININGS_FOLDER}/", f"{MODEL_FOLDER}/")


def _copy_model(own: RunDirectory, run: RunDirectory) -> None:
    """The folder that ``predict`` uses; what makes it whole is written last."""
    run.write(IMAGES_FILE, (own.path / IMAGES_FILE).read_bytes())
    files = sorted((own.path / MODEL_FOLDER).iterdir(), key=lambda file: file.name == FACTS_FILE)
    for file in files:
        run.write(f"{MODEL_FOLDER}/{file.name}", file.read_bytes())


_HOUR_SECONDS = 3600.0
_State = Literal["selected", "trained", "not trained", "failed"]
_STATES: tuple[_State, ...] = ("selected", "trained", "not trained", "failed")
_REFERENCES = (
    Reference(key="Static prior", text="Known results first: Singh, Hess and Vanschoren, arXiv 2510.06448."),
    Reference(key="Error of an AUC", text="Hanley and McNeil, Radiology 143 (1982) 29."),
)


def assemble_selection(
    study: SelectionStudy,
    plan: SelectionPlanRecord,
    selected: Selected,
    preference: Preference,
    tuned: TuningRecord,
    *,
    prefer: str,
    shared_error: float,
    limit: float | None,
) -> SelectionRecord:
    """Every number of the report.

    Args:
        study: What all trainings share.
        plan: Costs, order and budget.
        selected: What was trained.
        preference: The model that is handed over.
        tuned: Its fine-tuning.
        prefer: What was asked for.
        shared_error: Share of the variance of errors on val that is the same for all models.
        limit: Largest value that val can show.
    """
    rows = study.rows
    options = next(iter(study.requests.values())).options
    data = replace(rows.dataset, split_method=rows.split_in_words)
    return SelectionRecord(
        dataset=describe_dataset(data, show_names=options.show_names),
        splits=rows.split_rows(),
        leakage=rows.leakage,
        leakage_checked=rows.is_leakage_known,
        plan=plan,
        prefer=prefer,
        selected=preference.model,
        leader=preference.leader,
        not_separable=list(preference.alike),
        ending=selected.ending,
        candidates=_candidates(plan, selected, preference, shared_error),
        expected_regret=expected_regret(selected, preference.model, shared_error, limit=limit, seed=options.seed),
        next_models=_next_models(plan, selected),
        selection_metric=tuned.selection_metric,
        primary_metric=tuned.primary_metric,
        metrics=[row for row in overall(tuned.metrics) if row.split == "test"],
        of_classes=[row for row in tuned.metrics if _is_of_a_class(row)],
        confusion=tuned.confusion if tuned.confusion is not None and tuned.confusion.split == "test" else None,
        calibration=tuned.calibration,
        model=tuned.model,
        training=study.folder(preference.model),
        saved_model=MODEL_FOLDER,
        booked_seconds=selected.booked_seconds,
        seconds=sum(trial.seconds for trial in selected.trials),
        looks=tuned.looks,
        checks=study.checks,
        warnings=[f"{model} was dropped: {reason}" for model, reason in selected.failed.items()],
        references=[*_REFERENCES, *tuned.references],
        edits=rows.edits,
    )


def _is_of_a_class(row: MetricRecord) -> bool:
    """Whether it says how often one class is recognised on all test images."""
    is_told = row.metric in ("sensitivity", "specificity") and row.class_name is not None
    return is_told and row.split == "test" and row.attribute is None


def _next_models(plan: SelectionPlanRecord, selected: Selected) -> list[str]:
    """What another hour would train; nothing where val can say nothing more."""
    if selected.ending != "budget":
        return []
    tried = {trial.model for trial in selected.trials}
    left = [each for each in candidates_of(plan.models) if each.name not in tried]
    return [each.name for some in planned(left, _HOUR_SECONDS, plan.num_parallel) for each in some]


def _candidates(
    plan: SelectionPlanRecord, selected: Selected, preference: Preference, shared_error: float
) -> list[CandidateRecord]:
    """The selected one first, then those trained, the best first, then the others in the order."""
    trials = {trial.model: trial for trial in selected.trials}
    own = trials[preference.model]
    places = {each.name: place for place, each in enumerate(in_order(candidates_of(plan.models)), start=1)}
    rows: list[CandidateRecord] = []
    for model in plan.models:
        trial = trials.get(model.name)
        is_other = trial is not None and trial.value is not None and trial is not own
        state, reason = _fate(model, trial, plan, selected, preference)
        rows.append(
            CandidateRecord(
                name=model.name,
                state=state,
                reason=reason,
                num_parameters=model.num_parameters,
                place=places.get(model.name),
                expected=model.expected,
                known_from=model.known_from,
                val=None if trial is None else trial.value,
                standard_error=None if trial is None else trial.standard_error,
                probability_better=chance_better(trial, own, shared_error) if trial is not None and is_other else None,
                booked_seconds=(model.seconds or 0.0) if trial else 0.0,
            )
        )
    return sorted(rows, key=lambda row: (_STATES.index(row.state), -(row.val or 0.0), row.place or 0))


def _fate(
    model: PlannedModel, trial: Trial | None, plan: SelectionPlanRecord, selected: Selected, preference: Preference
) -> tuple[_State, str]:
    """What became of a model, and why."""
    if model.name == preference.model:
        return "selected", _why_selected(selected, preference)
    if model.reason is not None:
        return "failed", model.reason
    if trial is None:
        return "not trained", _why_not_trained(model, plan, selected)
    if trial.value is None:
        return "failed", trial.reason
    if model.name == preference.leader:
        return "trained", f"the best on val; not told apart from {preference.model}, which is lighter"
    if model.name in preference.alike:
        return "trained", f"not told apart from {preference.leader} by val"
    best = next(each for each in selected.trials if each.model == preference.leader)
    return "trained", f"val is lower than that of {preference.leader} by {(best.value or 0.0) - trial.value:.3f}"


def _why_selected(selected: Selected, preference: Preference) -> str:
    if selected.ending == "val tells nothing":
        return "the first of the order that fits; val is too small to compare models"
    if preference.model != preference.leader:
        return f"not told apart from {preference.leader} by val, and lighter"
    number = len(selected.trained)
    if number == 1:
        return "the only one that was trained"
    at_limit = ", at its limit, and with the fewest parameters of those there" if selected.ending == "limit of val" else ""
    return f"the best on val of {number} that were trained{at_limit}"


def _why_not_trained(model: PlannedModel, plan: SelectionPlanRecord, selected: Selected) -> str:
    if selected.ending == "limit of val":
        return "another one is at the limit of val, where nothing can be better"
    if selected.ending == "val tells nothing":
        return "val is too small to compare models"
    left = max(plan.seconds_for_trainings - selected.booked_seconds, 0.0)
    return f"its training would take {duration(model.seconds or 0.0)}, and {duration(left)} of the budget were left"


@dataclass(frozen=True, eq=False, repr=False)
class SelectionResult(ModelResult[SelectionRecord]):
    """One fine-tuned model and what speaks for it: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
        tuned: The fine-tuning of the selected model; None where only a plan was made.
    """

    plan: SelectionPlanRecord = field(kw_only=True)
    tuned: FineTuningResult | None = field(default=None, kw_only=True)

    @property
    def fitted(self) -> SavedModel | None:
        """The selected model as ``load_saved_model`` would read it; None where only a plan was made."""
        return None if self.tuned is None else self.tuned.fitted

    @property
    def classifier(self) -> Classifier | None:
        """The network of the selected model in eval mode on the CPU; None where only a plan was made."""
        return None if self.tuned is None else self.tuned.classifier

    @property
    def fine_tuning(self) -> FineTuningResult | None:
        """That of the selected model; None where only a plan was made."""
        return self.tuned

    @property
    def model(self) -> SavedModel:
        """The selected model, with all that is needed to predict.

        Raises:
            UsageError: Only a plan was made.
        """
        if self.fitted is None:
            raise UsageError("This selection has no model to predict with: only the plan was made.")
        return self.fitted

    @property
    def shown(self) -> Record:
        """The record, or the plan."""
        return self.found or self.plan

    @property
    def exit_code(self) -> int:
        """6 where a training failed."""
        return EXIT_PARTIAL if self.found and any(row.state == "failed" for row in self.found.candidates) else 0

    def summary(self) -> str:
        """The selected model, or the plan."""
        return selection_plan_in_words(self.plan) if self.found is None else selected_in_words(self.found)

    @property
    def primary(self) -> Mapping[str, object]:
        """The primary metric of the selected model, on test."""
        metric = self.record.metric(self.record.primary_metric)
        return {} if metric is None else metric.number

    def to_frame(self) -> pd.DataFrame:
        """One row per model: what became of it, why, and what val says of it; the selected one first."""
        import pandas as pd

        columns = ["name", "state", "reason", "place", "expected", "val", "standard_error", "probability_better"]
        columns += ["num_parameters", "booked_seconds"]
        rows = [row.model_dump(include=set(columns)) for row in self.record.candidates]
        return pd.DataFrame(rows, columns=columns)
