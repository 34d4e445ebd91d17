"""The rule keeps the first of the best epochs, and says so."""

import math

import pytest

from crossgraft.errors import UnknownNameError
from crossgraft.tune.engine.selection_rule import SelectionRule


@pytest.mark.parametrize(
    ("direction", "values", "expected"),
    [
        ("min", [3.0, 1.0, 2.0, 1.0], 1),
        ("max", [3.0, 1.0, 3.0], 0),
        ("max", [0.1, 0.2, 0.3], 2),
        ("min", [math.nan, 2.0, math.nan, 3.0], 1),
        ("max", [math.nan, math.nan], 0),
        ("max", [math.nan, -math.inf], 1),
    ],
)
def test_best_epoch(direction, values, expected):
    rule, best, best_epoch = SelectionRule("auc", direction), None, -1
    for epoch, value in enumerate(values):
        if rule.is_better(rule.value({"auc": value}), best):
            best, best_epoch = value, epoch
    assert best_epoch == expected


def test_a_metric_that_is_not_there_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="balanced_accuracy"):
        SelectionRule("balanced_acuracy", "max").value({"balanced_accuracy": 0.5, "loss": 1.0})


def test_name_tells_metric_direction_and_ties():
    assert SelectionRule().name == "lowest loss on the selection rows, earliest epoch of equal ones"
    assert SelectionRule(keep="last").name == "last epoch"
