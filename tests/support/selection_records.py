"""What a selection leaves."""

from crossgraft.records import (
    CandidateRecord,
    FidelityCost,
    PlannedModel,
    Reference,
    RungRecord,
    SelectionPlanRecord,
    SelectionRecord,
    TrialRecord,
)
from support.tuning_records import metric, tuning_record


def planned(name, seconds, prior):
    costs = [FidelityCost(kind="full", seconds=seconds, size_pixels=64)]
    costs += [FidelityCost(kind="low:size=0.5", seconds=seconds / 4, size_pixels=32)]
    return PlannedModel(name=name, source=name, num_parameters=1000, costs=costs, prior_mean=prior, prior_deviation=0.8)


def rung(kind, values, *, seconds=10.0, gain=0.2, **changed):
    trials = [TrialRecord(model=name, kind=kind, value=value, standard_error=0.05) for name, value in values.items()]
    facts = {"kind": kind, "models": list(values), "booked_seconds": seconds, "gain": gain, "trials": trials}
    return RungRecord(**(facts | changed))


def candidate(name, state, val, **changed):
    facts = {
        "name": name,
        "state": state,
        "reason": "It is expected to be the best.",
        "num_parameters": 1000,
        "tried": ["low:size=0.5"],
        "val": val,
        "expected": 0.8,
        "deviation": 0.05,
        "probability_best": 0.5,
        "booked_seconds": 10.0,
    }
    return CandidateRecord(**(facts | changed))


def selection_record(**changed):
    """Two models on one rung, of which the better one is finished."""
    tuned = tuning_record()
    facts = {
        "dataset": tuned.dataset,
        "splits": tuned.splits,
        "leakage": tuned.leakage,
        "leakage_checked": tuned.leakage_checked,
        "plan": SelectionPlanRecord(
            budget="1min",
            budget_seconds=60.0,
            seconds_of_all=80.0,
            num_parallel=1,
            models=[planned("wide", 40.0, 0.3), planned("narrow", 40.0, -0.3)],
            standard_error=0.05,
        ),
        "prefer": "accurate",
        "selected": "wide",
        "leader": "wide",
        "not_separable": ["narrow"],
        "preferred_by": "accurate",
        "candidates": [
            candidate("wide", "selected", 0.82),
            candidate("narrow", "dropped", None, reason="It is expected to be worse.", probability_better=0.2),
        ],
        "rungs": [
            rung("low:size=0.5", {"wide": 0.75, "narrow": 0.7}),
            rung("full", {"wide": 0.82}, seconds=40.0, gain=0.0, is_finish=True),
        ],
        "unit": "metric",
        "expected_regret": 0.01,
        "selection_metric": "balanced_accuracy",
        "primary_metric": "balanced_accuracy",
        "metrics": [metric("balanced_accuracy", 0.8)],
        "model": tuned.model,
        "training": "trainings/wide",
        "booked_seconds": 50.0,
        "seconds": 48.0,
        "references": [Reference(key="Knowledge gradient", text="Frazier.")],
    }
    return SelectionRecord(**(facts | changed))
