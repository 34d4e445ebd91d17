import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from crossgraft.errors import DataError
from crossgraft.rank.aggregate import relative_ranks, static_prior

cells = st.integers(-3, 3).map(float) | st.just(float("nan"))
histories = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=cells)


def literal(history):
    means, counts = [], []
    for model in range(history.shape[1]):
        ranks = []
        for row in history:
            known = [value for value in row if not np.isnan(value)]
            if not np.isnan(row[model]):
                above, level = sum(v > row[model] for v in known), sum(v == row[model] for v in known)
                ranks.append((above + (level + 1) / 2 - 0.5) / len(known))
        means.append(np.mean(ranks) if ranks else np.nan)
        counts.append(len(ranks))
    return means, counts


@given(histories)
def test_equals_the_literal_definition(history):
    prior = static_prior(history)
    means, counts = literal(history)
    np.testing.assert_allclose(prior.mean_ranks, means, atol=1e-12)
    assert prior.num_known.tolist() == counts
    assert np.isfinite(prior.values).all()


@given(histories)
def test_only_the_order_on_each_target_matters(history):
    np.testing.assert_allclose(static_prior(np.exp(history)).mean_ranks, static_prior(history).mean_ranks)


def test_no_history_at_all_is_neutral():
    assert static_prior(np.empty((0, 3))).values.tolist() == [-0.5, -0.5, -0.5]


def test_ranks_run_from_best_to_worst():
    assert relative_ranks(np.array([[3.0, 1.0, 2.0, 0.0]])).tolist() == [[0.125, 0.625, 0.375, 0.875]]


def test_infinite_results_are_refused():
    with pytest.raises(DataError, match="infinite"):
        static_prior(np.array([[1.0, np.inf]]))
