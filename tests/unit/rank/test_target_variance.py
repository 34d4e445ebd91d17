"""How much networks vary between targets: moments of drawn tables, and the user's own."""

import numpy as np
import pytest
from scipy import special

from crossgraft.rank.target_variance import (
    TableSpread,
    freedom_of_product,
    table_variance,
    typical_variance,
    variance_at_hand,
)

FREEDOM = 300.0


def drawn(variance, *, name="a", freedom=FREEDOM, seed=0):
    return TableSpread(name, variance * np.random.default_rng(seed).chisquare(freedom) / freedom, freedom)


def test_typical_variance_and_how_much_tables_differ_are_found_again():
    rng = np.random.default_rng(1)
    truths = 0.4 / (rng.chisquare(10, size=300) / 10)
    spreads = [drawn(truth, seed=i) for i, truth in enumerate(truths)]
    square, freedom = typical_variance(spreads, (1.0, 1.0))
    assert square == pytest.approx(0.4, rel=0.1) and freedom == pytest.approx(10, rel=0.35)
    found = [table_variance(each, square, freedom) for each in spreads]
    assert np.corrcoef(found, truths)[0, 1] > 0.95


def test_tables_that_are_alike_are_taken_as_one_and_few_tables_tell_nothing():
    assert typical_variance([drawn(0.5, freedom=130, seed=i) for i in range(40)], (1.0, 1.0))[1] > 30
    assert typical_variance([drawn(0.2)], (0.45, 4.0)) == (0.45, 4.0)


def test_own_results_say_how_much_the_target_at_hand_varies():
    own = variance_at_hand([drawn(0.9, name="own/0")], 0.3, 6.0)
    assert own.square == pytest.approx(0.9, rel=0.15) and own.freedom == 306
    others = variance_at_hand([drawn(0.9, name="published")], 0.3, 6.0)  # those of others do not
    assert others[1:] == pytest.approx((6 * 0.3 / 4, 6.0))


def test_what_is_not_known_of_two_factors_adds_up():
    rng = np.random.default_rng(0)
    logs = np.log(rng.chisquare(8, 200_000)) + np.log(rng.chisquare(20, 200_000))
    found = freedom_of_product(8, 20)
    assert found < 8 and special.polygamma(1, found / 2) == pytest.approx(logs.var(), rel=0.02)
