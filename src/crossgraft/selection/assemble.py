"""The record of a selection, from what was decided, done and believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from crossgraft.data.describe import describe_dataset
from crossgraft.rank.belief import Belief
from crossgraft.records import (
    CandidateRecord,
    NextHourRecord,
    Reference,
    SelectionPlanRecord,
    SelectionRecord,
    TuningRecord,
)
from crossgraft.selection.journal import rung_record
from crossgraft.selection.scheduler import Selected
from crossgraft.selection.state import Decision, State
from crossgraft.selection.study import SelectionStudy
from crossgraft.selection.trials import FULL, Action, Trial, goes_on
from crossgraft.tune.saving.saved_model import MODEL_FOLDER
from crossgraft.words.formatting import duration, joined, percent
from crossgraft.words.metric_words import overall
from crossgraft.words.selection_words import kind_in_words

_REFERENCES = (
    Reference(
        key="Knowledge gradient",
        text="Value of looking at models: Frazier, Powell and Dayanik, INFORMS Journal on Computing 21 (2009) 599.",
    ),
    Reference(
        key="Successive halving",
        text="Cheap trainings for many, whole ones for few: Jamieson and Talwalkar, AISTATS 2016.",
    ),
    Reference(key="Error of an AUC", text="Hanley and McNeil, Radiology 143 (1982) 29."),
)


def assemble_selection(
    study: SelectionStudy,
    plan: SelectionPlanRecord,
    selected: Selected,
    tuned: TuningRecord,
    *,
    warnings: Sequence[str] = (),
) -> SelectionRecord:
    """Every number of the report."""
    rows, state, belief = study.rows, selected.state, selected.belief
    options = next(iter(study.requests.values())).options
    seed = options.seed
    data = replace(rows.dataset, split_method=rows.split_in_words)
    hour = selected.next_hour
    return SelectionRecord(
        dataset=describe_dataset(data, show_names=options.show_names),
        splits=rows.split_rows(),
        leakage=rows.leakage,
        leakage_checked=rows.dataset.groups is not None,
        plan=plan,
        prefer=selected.preference.by if selected.preference.by != "cost" else "accurate",
        selected=selected.model,
        leader=selected.preference.leader,
        not_separable=list(selected.preference.alike),
        preferred_by=selected.preference.by,
        candidates=_candidates(plan, selected, seed),
        rungs=[
            rung_record(
                decision, [_trial_of(state, Action(model, decision.rung.kind)) for model in decision.rung.models]
            )
            for decision in state.decisions
        ],
        unit=belief.unit,
        expected_regret=belief.expected_regret(selected.model, seed=seed),
        next_hour=None if hour is None else _next_hour(hour, belief),
        selection_metric=tuned.selection_metric,
        primary_metric=tuned.primary_metric,
        metrics=[row for row in overall(tuned.metrics) if row.split == "test"],
        model=tuned.model,
        training=study.folder(selected.model),
        saved_model=MODEL_FOLDER,
        booked_seconds=state.booked,
        seconds=sum(trial.seconds for trial in state.trials),
        looks=tuned.looks,
        checks=study.checks,
        warnings=[*warnings, *(f"{model} was dropped: {reason}" for model, reason in state.dropped.items())],
        notes=plan.notes,
        references=[*_REFERENCES, *tuned.references],
        edits=rows.edits,
    )


def _trial_of(state: State, action: Action) -> Trial:
    return next(trial for trial in state.trials if trial.action == action)


def _next_hour(decision: Decision, belief: Belief) -> NextHourRecord:
    """With the gain in the unit of the belief: normal scores times their spread there."""
    deviation = float(np.sqrt(np.mean(np.diag(belief.covariance)) / np.mean(np.diag(belief.foresight().covariance))))
    return NextHourRecord(
        kind=decision.rung.kind,
        models=list(decision.rung.models),
        booked_seconds=decision.seconds,
        gain=decision.gain * (deviation if belief.unit == "metric" else 1.0),
    )


def _candidates(plan: SelectionPlanRecord, selected: Selected, seed: int) -> list[CandidateRecord]:
    belief, state = selected.belief, selected.state
    best = belief.probability_best(seed=seed)
    found: list[CandidateRecord] = []
    for place, name in enumerate(belief.models):
        trials = [trial for trial in state.trials if trial.action.model == name]
        full = next((t.value for t in trials if t.action.kind == FULL), None)
        better = None if name == selected.model else belief.probability_better(name, selected.model)
        tried = [trial.action.kind for trial in trials]
        what, reason = _fate(name, selected, tried)
        model = plan.model(name)
        found.append(
            CandidateRecord(
                name=name,
                state=what,
                reason=reason,
                num_parameters=model.num_parameters,
                known_from=model.known_from,
                tried=tried,
                val=full,
                expected=float(belief.mean[place]),
                deviation=float(np.sqrt(belief.covariance[place, place])),
                probability_best=float(best[place]),
                probability_better=better,
                booked_seconds=_booked(plan, tried, name),
            )
        )
    found += [_left_out(model.name, model.reason, model.num_parameters) for model in plan.models if model.reason]
    return sorted(found, key=lambda row: (row.state != "selected", row.state == "failed", -row.expected))


def _booked(plan: SelectionPlanRecord, tried: Sequence[str], name: str) -> float:
    """Seconds of the trials of one model by the plan; a training that went on counts once."""
    costs = {kind: plan.model(name).seconds(kind) or 0.0 for kind in tried}
    going_on = [seconds for kind, seconds in costs.items() if goes_on(kind)]
    return sum(costs.values()) - sum(going_on) + max(going_on, default=0.0)


def _left_out(name: str, reason: str | None, num_parameters: int) -> CandidateRecord:
    return CandidateRecord(
        name=name,
        state="failed",
        reason=reason or "",
        num_parameters=num_parameters,
        expected=float("nan"),
        deviation=float("nan"),
        probability_best=0.0,
    )


_Fate = Literal["selected", "finished", "dropped", "failed", "not tried"]


def _fate(name: str, selected: Selected, tried: Sequence[str]) -> tuple[_Fate, str]:
    """What became of a model, and why."""
    state, preference = selected.state, selected.preference
    if name == selected.model:
        return "selected", _why_selected(selected)
    if name in state.dropped:
        return "failed", state.dropped[name]
    after = joined([kind_in_words(kind) for kind in tried])
    chance = selected.belief.probability_better(name, selected.model)
    said = f"better than {selected.model} with a chance of {percent(chance)}"
    if state.is_finished(name):
        return "finished", f"trained to the end; {said}"
    if name == preference.leader:
        return "dropped", f"not told apart from {selected.model}, which is lighter"
    left = state.plan.left(Action(name, FULL), state.done(name)) or 0.0
    if left > state.remaining:
        said += f"; its training would take {duration(left)}, and {duration(max(state.remaining, 0.0))} were left"
    return ("dropped", f"after {after}: {said}") if tried else ("not tried", f"from what is known of it, {said}")


def _why_selected(selected: Selected) -> str:
    preference = selected.preference
    if preference.model == preference.leader:
        return "highest expectation of all that fit into the budget"
    lighter = {"small": "smaller", "fast": "faster to train", "cost": "cheaper"}[preference.by]
    return f"not told apart from {preference.leader}, and {lighter}"
