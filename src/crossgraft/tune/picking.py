"""The trainings of a preparation: what all of them share, and the network of the best."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.errors import DataError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.jobs import JobOutcome, JobRunner
from crossgraft.tune.planning.preparation import Preparation


def runner_of(prepared: Preparation) -> JobRunner:
    """Trains without a run directory, and tells nobody."""
    return JobRunner(
        classifier=prepared.classifier,
        selection=prepared.selection,
        plugins=prepared.plugins,
        settings=prepared.settings,
        rule=prepared.rule,
    )


def pick(outcomes: Sequence[JobOutcome], rule: SelectionRule) -> JobOutcome:
    """The point of a grid with the best value of the rule's metric on the validation rows, the first of equal ones.

    Raises:
        DataError: None of them is done; the message gives the first reason.
    """
    best: JobOutcome | None = None
    for outcome in outcomes:
        if not outcome.is_done:
            continue
        if best is None or rule.is_better(_comparable(outcome), _comparable(best)):
            best = outcome
    if best is None:
        reason = outcomes[0].record.point.reason
        raise DataError(f"None of {len(outcomes)} trainings ended with a model. The first one: {reason}")
    return best


def trained_network(start: Classifier, outcome: JobOutcome) -> Classifier:
    """The start with the weights of a training, in their number type.

    Args:
        start: A copy, which is changed.
        outcome: Of a training that is done.

    Raises:
        CrossgraftError: It left no weights.
        DataError: Its weights are gone or damaged.
    """
    state = outcome.weights()
    start.to(state["head.weight"].dtype).load_state_dict(state)
    return start


def _comparable(outcome: JobOutcome) -> float:
    value = outcome.record.point.val_metric
    return float("nan") if value is None else value
