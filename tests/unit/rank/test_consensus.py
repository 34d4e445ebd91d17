import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate

from crossgraft.errors import DataError
from crossgraft.rank import borda, robust_rank_aggregation

tables = arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 6)), elements=st.integers(-4, 4).map(float))


def literal_ranks(row):
    return [sum(v > u for v in row) + (sum(v == u for v in row) + 1) / 2 for u in row]


@given(tables)
def test_borda_is_minus_the_mean_rank(scores):
    expected = -np.mean([literal_ranks(row) for row in scores], axis=0)
    np.testing.assert_allclose(borda(scores), expected)


def literal_rho(relative):
    """Kolde et al.: the probability that the k-th of K uniforms is that small, by integrating its density."""
    relative, size = sorted(relative), len(relative)
    tails = []
    for k, r in enumerate(relative, start=1):
        constant = 1 / integrate.quad(lambda u, k=k: u ** (k - 1) * (1 - u) ** (size - k), 0, 1)[0]
        tails.append(constant * integrate.quad(lambda u, k=k: u ** (k - 1) * (1 - u) ** (size - k), 0, r)[0])
    return min(1.0, size * min(tails))


def test_robust_rank_aggregation_is_the_rho_score():
    scores = np.random.default_rng(3).normal(size=(4, 6))
    ranks = np.array([literal_ranks(row) for row in scores]) / 6
    expected = [-np.log(literal_rho(column)) for column in ranks.T]
    np.testing.assert_allclose(robust_rank_aggregation(scores), expected, atol=1e-7)


@given(tables)
def test_a_model_that_leads_everywhere_comes_first(scores):
    scores[:, 0] = 10.0
    for combine in (borda, robust_rank_aggregation):
        assert int(np.argmax(combine(scores))) == 0


@pytest.mark.parametrize("combine", [borda, robust_rank_aggregation])
def test_bad_input_is_named(combine):
    with pytest.raises(DataError, match="at least one score"):
        combine(np.empty((0, 3)))
    with pytest.raises(DataError, match="finite value"):
        combine(np.array([[1.0, np.nan]]))
