"""What is expected of fine-tunings and of the networks between two counts every pass over images that will be made."""

from types import SimpleNamespace

import numpy as np
import pytest

from crossgraft.tune.forecast import MeasuringCost, count_looks, num_looks_after, num_looks_to_adapt, training_pieces
from crossgraft.tune.parts import FoldRows

ROWS = np.arange(100)
PARTS = FoldRows(ROWS[:60], ROWS[60:80], ROWS[80:90])


def pieces(*, adapts, num_folds=2):
    """Seconds of each piece: two points of a grid on each fold, 10 s a training, 1 s a look."""
    rows = SimpleNamespace(parts=[FoldRows(PARTS.train, PARTS.val, PARTS.test, fold=k) for k in range(num_folds)])
    plan = SimpleNamespace(epochs=5, expected_seconds=20.0 * num_folds, num_jobs=2 * num_folds, seeks_factor=False)
    points = [{"learning_rate": rate} for rate in (0.1, 0.2)]
    return [piece.seconds for piece in training_pieces(points, rows, plan, MeasuringCost(1.0, 3.0), adapts=adapts)]


def test_statistics_are_estimated_by_the_first_training_of_each_fold_and_their_network_looks_at_val_and_test():
    assert pieces(adapts=False) == [10, 10, 10, 10, 2 * (20 + 3 * 10), 6]
    once = 1.5 * 60 + 20
    assert pieces(adapts=True) == [10 + once, 10, 10 + once, 10, 2 * (20 + 4 * 10), 6]


@pytest.mark.parametrize(("estimates", "passes"), [(False, 0), (True, 2)])
def test_networks_between_two_estimate_statistics_inside_and_those_of_the_start_once(estimates, passes):
    alphas = [0, 0.25, 0.5, 1]
    plain = count_looks(PARTS, alphas, estimates=estimates, adapts=False)
    assert plain == 4 * num_looks_after(PARTS, adapts=False) + passes * 90
    adapted = count_looks(PARTS, alphas, estimates=estimates, adapts=True)
    assert adapted - plain == 4 * len(PARTS.test) + 90
    assert num_looks_to_adapt(PARTS) == 90 + len(PARTS.val)
