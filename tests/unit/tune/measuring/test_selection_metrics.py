import numpy as np
import pytest

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.measuring.selection_metrics import choose_rule

BOTH = np.array([0, 1, 0, 1])
ONE = np.array([1, 1, 1, 1])
NONE = np.zeros(0, dtype=np.int64)


def test_left_open_every_fold_must_know_every_class():
    assert choose_rule(None, [BOTH, BOTH], 2) == SelectionRule("auc", "max")
    assert choose_rule(None, [BOTH, ONE], 2) == SelectionRule("loss", "min")
    assert choose_rule(None, [BOTH], 3) == SelectionRule("loss", "min")


def test_without_rows_the_last_epoch_is_kept():
    assert choose_rule(None, [NONE], 2).keep == "last"
    with pytest.raises(UnknownNameError):
        choose_rule("acu", [NONE], 2)


def test_what_has_no_meaning_in_one_fold_is_refused():
    with pytest.raises(UsageError, match="auc has no meaning on the 4 validation rows of training 2 of 2"):
        choose_rule("auc", [BOTH, ONE], 2)
    assert choose_rule("accuracy", [BOTH, ONE], 2) == SelectionRule("accuracy", "max")
    with pytest.raises(UsageError, match="auc has no meaning"):
        choose_rule("auc", [np.ones((3, 2), dtype=np.int64)], 2)
    assert choose_rule("auc", [np.array([[1, 0], [1, 1]])], 2) == SelectionRule("auc", "max")
