"""What a selection leaves."""

from crossgraft.records.base import Reference
from crossgraft.select.record import CandidateRecord, PlannedModel, SelectionPlanRecord, SelectionRecord
from support.tuning_records import metric, tuning_record


def planned(name, seconds, expected):
    return PlannedModel(name=name, source=name, num_parameters=1000, seconds=seconds, expected=expected)


def candidate(name, state, val, **changed):
    facts = {
        "name": name,
        "state": state,
        "reason": "the best on val of 2 that were trained",
        "num_parameters": 1000,
        "place": 1,
        "expected": 0.3,
        "val": val,
        "standard_error": None if val is None else 0.05,
        "booked_seconds": 0.0 if val is None else 40.0,
    }
    return CandidateRecord(**(facts | changed))


def selection_record(**changed):
    """Three models, of which two were trained."""
    tuned = tuning_record()
    facts = {
        "dataset": tuned.dataset,
        "splits": tuned.splits,
        "leakage": tuned.leakage,
        "leakage_checked": tuned.leakage_checked,
        "plan": SelectionPlanRecord(
            budget="90s",
            budget_seconds=90.0,
            seconds_of_all=120.0,
            num_parallel=1,
            models=[planned("wide", 40.0, 0.3), planned("narrow", 40.0, -0.3), planned("deep", 40.0, -0.5)],
            standard_error=0.05,
            rounds=[["wide"], ["narrow"]],
        ),
        "prefer": "accurate",
        "selected": "wide",
        "leader": "wide",
        "not_separable": ["narrow"],
        "ending": "budget",
        "candidates": [
            candidate("wide", "selected", 0.82),
            candidate("narrow", "trained", 0.78, place=2, probability_better=0.2, reason="not told apart from wide by val"),
            candidate("deep", "not trained", None, place=3, reason="its training would take 40 s, and 10 s were left"),
        ],
        "expected_regret": 0.01,
        "next_models": ["deep"],
        "selection_metric": "balanced_accuracy",
        "primary_metric": "balanced_accuracy",
        "metrics": [metric("balanced_accuracy", 0.8)],
        "model": tuned.model,
        "training": "trainings/wide",
        "booked_seconds": 80.0,
        "seconds": 78.0,
        "references": [Reference(key="Static prior", text="Singh, Hess and Vanschoren.")],
    }
    return SelectionRecord(**(facts | changed))
