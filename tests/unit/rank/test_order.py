import numpy as np
import pytest

from crossgraft.rank.advice import difference, order_models, separable
from crossgraft.rank.record import ScoreCell
from crossgraft.statistics import jackknife_interval

COMMON = np.random.default_rng(0).normal(size=20)  # what the left-out images do to every model alike


def cell(model, value, own_noise=0.0, shuffled=()):
    noise = np.random.default_rng(list(model.encode())).normal(size=20) * own_noise
    replicates = (value + 0.05 * COMMON + noise).tolist()
    return ScoreCell(model=model, score="s", value=value, jackknife_values=replicates, shuffled_values=list(shuffled))


def test_a_difference_is_paired_so_that_common_noise_cancels():
    first, second = cell("a", 1.0, 1e-4), cell("b", 0.98, 1e-4)
    alone = jackknife_interval(1.0, first.jackknife_values)
    assert alone.low < 0.98 < alone.high
    paired = difference(first, second)
    assert paired is not None
    assert not paired.contains_zero
    assert separable(first, second)


def test_without_intervals_nothing_is_separable():
    without = ScoreCell(model="c", score="s", value=9.0)
    assert difference(cell("a", 1.0), without) is None
    assert not separable(without, cell("a", 1.0))


def test_the_order_lists_all_ranks_that_cannot_be_told_apart_and_controls_last():
    cells = [
        cell("weak", 0.1),
        cell("best", 1.0, 0.05, shuffled=[0.2]),
        cell("random", 2.0, shuffled=[0.3]),
        cell("second", 0.99, 0.05),
        ScoreCell(model="no head", score="s", value=None, reason="needs source logits"),
    ]
    roles = dict.fromkeys(["weak", "best", "second", "no head"], "candidate") | {"random": "random weights"}
    ranking = order_models("s", cells, roles)
    assert [(row.model, row.rank) for row in ranking.rows] == [
        ("best", 1),
        ("second", 2),
        ("weak", 3),
        ("no head", None),
        ("random", None),
    ]
    assert [row.not_separable_from for row in ranking.rows[:3]] == [[2], [1], []]
    assert [pair.separable for pair in ranking.pairs] == [False, True]
    assert ranking.pairs[0].difference == pytest.approx(0.01)
    assert (ranking.best_shuffled, ranking.num_shuffled) == (0.2, 1)  # shuffles of candidates only


def test_equal_values_keep_the_order_of_the_zoo_and_are_not_separable():
    ranking = order_models("s", [cell("a", 1.0), cell("b", 1.0)], {"a": "candidate", "b": "candidate"})
    assert [row.model for row in ranking.rows] == ["a", "b"]
    assert not ranking.pairs[0].separable


def test_a_difference_of_rounding_size_is_not_separable():
    first, second = cell("a", 1.0), cell("b", 1.0 - 1e-9)
    assert difference(first, second).low > 0
    assert not separable(first, second)


def test_a_difference_holds_the_spread_over_seeds_of_both():
    first, second = cell("a", 1.0, 1e-4), cell("b", 0.98, 1e-4)
    drawn = [each.model_copy(update={"redrawn_values": [each.value, 1.2, 0.8]}) for each in (first, second)]
    plain, one, both = (difference(a, b).standard_error for a, b in ((first, second), (drawn[0], second), (drawn[0], drawn[1])))
    assert plain < 1e-3
    assert one == pytest.approx(0.2, rel=0.01)
    assert both == pytest.approx(0.2 * np.sqrt(2), rel=0.01)
    assert separable(first, second) and not separable(*drawn)
