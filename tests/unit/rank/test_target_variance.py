"""How much networks vary between targets: moments of drawn tables, and the user's own."""

import numpy as np
import pytest

from crossgraft.rank.table_means import TableMean
from crossgraft.rank.target_variance import typical_variance, variance_at_hand, variance_of_tables


def table(name, variance, *, num_models=30, num_groups=12, seed=0):
    values = np.sqrt(variance) * np.random.default_rng(seed).standard_normal((num_models, num_groups))
    values -= values.mean(axis=0)  # as normal scores are
    squares = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return [TableMean(f"m{i}", name, float(values[i].mean()), num_groups, float(squares[i])) for i in range(num_models)]


def test_typical_variance_and_how_much_tables_differ_are_found_again():
    rng = np.random.default_rng(1)
    truths = 0.4 / (rng.chisquare(10, size=300) / 10)
    means = [mean for i, truth in enumerate(truths) for mean in table(str(i), truth, seed=i)]
    square, freedom = typical_variance(means, (1.0, 1.0))
    assert square == pytest.approx(0.4, rel=0.1) and freedom == pytest.approx(10, rel=0.35)
    found = variance_of_tables(means, square, freedom)
    assert np.corrcoef([found[str(i)] for i in range(300)], truths)[0, 1] > 0.95


def test_tables_that_are_alike_are_taken_as_one_and_few_tables_tell_nothing():
    alike = [mean for i in range(40) for mean in table(str(i), 0.5, num_models=20, num_groups=8, seed=i)]
    assert typical_variance(alike, (1.0, 1.0))[1] > 30
    assert typical_variance(table("a", 0.2), (0.45, 4.0)) == (0.45, 4.0)


def test_own_results_say_how_much_the_target_at_hand_varies():
    own = table("own/0", 0.9)
    assert variance_at_hand(own, 0.3, 6.0) == pytest.approx(0.9, rel=0.15)
    assert variance_at_hand(table("published", 0.9), 0.3, 6.0) == pytest.approx(6 * 0.3 / 4)  # those of others do not
    one = [TableMean("a", "own/0", 0.5, 1), TableMean("b", "own/0", -0.5, 1)]
    assert variance_at_hand(one, 0.3, 6.0) == pytest.approx(6 * 0.3 / 4)
