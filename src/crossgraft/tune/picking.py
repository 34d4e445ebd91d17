"""The trainings of a preparation: what all of them share, and the network of the best."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.jobs import Trained, TrainingWork
from crossgraft.tune.planning.fold_data import FoldData
from crossgraft.tune.planning.preparation import Preparation


def work_of(prepared: Preparation, data: FoldData) -> TrainingWork:
    """Trains without a run directory, and tells nobody."""
    return TrainingWork(
        data=data,
        classifier=prepared.classifier,
        selection=prepared.selection,
        plugins=prepared.plugins,
        settings=prepared.settings,
        rule=prepared.rule,
    )


def pick(trained: Sequence[Trained], rule: SelectionRule) -> Trained:
    """The point of a grid with the best value of the rule's metric on the validation rows, the first of equal ones."""
    best = trained[0]
    for each in trained[1:]:
        if rule.is_better(_comparable(each), _comparable(best)):
            best = each
    return best


def trained_network(start: Classifier, trained: Trained) -> Classifier:
    """The start with the weights of a training, in their number type.

    Args:
        start: A copy, which is changed.
        trained: Gives the weights.

    Raises:
        DataError: Its weights are gone or damaged.
    """
    state = trained.load()
    start.to(state["head.weight"].dtype).load_state_dict(state)
    return start


def _comparable(trained: Trained) -> float:
    value = trained.record.point.val_metric
    return float("nan") if value is None else value
