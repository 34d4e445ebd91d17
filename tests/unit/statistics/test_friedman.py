import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.statistics import critical_difference, friedman, friedman_of_ranks, method_ranks
from crossgraft.statistics.rank_intervals import cliques

tables = arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(3, 7)), elements=st.integers(-3, 3).map(float))

NEMENYI_Q = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}
"""Critical values at α = 0.05 as Table 5 of Demšar (2006) prints them."""


@given(tables)
def test_equals_scipy_with_ties(values):
    if (np.ptp(values, axis=1) == 0).all():
        with pytest.raises(DataError, match="tie on every target"):
            friedman(values)
        return
    expected = stats.friedmanchisquare(*values.T)
    found = friedman(values)
    assert found.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)
    assert found.mean_ranks.sum() == pytest.approx(values.shape[1] * (values.shape[1] + 1) / 2)


@pytest.mark.parametrize("num_methods", NEMENYI_Q)
def test_critical_values_are_the_printed_ones(num_methods):
    q = critical_difference(num_methods, 1) / np.sqrt(num_methods * (num_methods + 1) / 6)
    assert q == pytest.approx(NEMENYI_Q[num_methods], abs=0.0011)


def test_seven_methods_and_eleven_targets():
    assert critical_difference(7, 11) == pytest.approx(2.716, abs=5e-4)
    assert critical_difference(8, 11) * np.sqrt(7 / 9) == pytest.approx(2.792, abs=1e-3)  # q of eight, taken for seven


def test_undefined_values_rank_last_and_ties_share():
    nan = float("nan")
    assert method_ranks(np.array([[0.1, nan, 0.1, 0.5], [nan, nan, 1.0, 2.0]])).tolist() == [
        [2.5, 4.0, 2.5, 1.0],
        [3.5, 3.5, 2.0, 1.0],
    ]


def test_printed_ranks_can_be_tested():
    ranks = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [2.0, 1.0, 3.0], [1.0, 2.0, 3.0]])
    expected = stats.friedmanchisquare(*-ranks.T)
    assert friedman_of_ranks(ranks).p_value == pytest.approx(expected.pvalue)


@given(st.lists(st.floats(1, 9), min_size=3, max_size=9), st.floats(0.1, 5))
def test_cliques_are_the_largest_runs(mean_ranks, difference):
    found = [set(clique) for clique in cliques(mean_ranks, difference)]
    for i in range(len(mean_ranks)):
        for j in range(i):
            together = abs(mean_ranks[i] - mean_ranks[j]) < difference
            assert together == any({i, j} <= clique for clique in found)
    assert not any(a < b for a in found for b in found)


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.zeros((1, 3)), "two targets"), (np.zeros((3, 2)), "three methods"), (np.full((2, 3), np.inf), "finite")],
)
def test_bad_input_is_named(values, message):
    with pytest.raises(DataError, match=message):
        friedman(values)
