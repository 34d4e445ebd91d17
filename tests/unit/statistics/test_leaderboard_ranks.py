"""Ranks with ties by interval."""

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from crossgraft.errors import DataError, UsageError
from crossgraft.statistics import leaderboard_ranks

TABLE = arrays(float, (3, 5), elements=st.integers(0, 20).map(float))


@given(TABLE)
def test_without_intervals_ranks_are_those_of_scipy(means):
    expected = np.mean([rankdata(-row) for row in means], axis=0)
    np.testing.assert_allclose(leaderboard_ranks(means, np.ones_like(means), ties="exact"), expected)
    np.testing.assert_allclose(leaderboard_ranks(means, np.zeros_like(means)), expected)


@given(TABLE, TABLE)
def test_ranks_add_up_and_do_not_depend_on_the_order_of_methods(means, half_widths):
    ranks = leaderboard_ranks(means, half_widths)
    assert ranks.sum() == pytest.approx(15)
    np.testing.assert_allclose(leaderboard_ranks(means[:, ::-1], half_widths[:, ::-1])[::-1], ranks)


def test_only_those_near_the_best_that_is_left_share_its_rank():
    # 90 and 89 are tied, 88 is tied with 89 but not with 90, so that it stands alone
    half_widths = np.full((1, 3), 0.8)
    assert leaderboard_ranks(np.array([[90.0, 89, 88]]), half_widths).tolist() == [1.5, 1.5, 3]
    assert leaderboard_ranks(np.array([[90.0, 88, 87]]), half_widths).tolist() == [1, 2.5, 2.5]


@pytest.mark.parametrize(
    ("means", "half_widths", "ties", "error", "said"),
    [
        ([[1, 2]], [[1]], "ci", DataError, "equal shape"),
        ([1, 2], [1, 2], "ci", DataError, "one table"),
        ([[]], [[]], "ci", DataError, "one table"),
        ([[1, np.nan]], [[1, 1]], "ci", DataError, "finite"),
        ([[1, 2]], [[1, 1]], "best", UsageError, "ci or exact"),
    ],
)
def test_bad_input(means, half_widths, ties, error, said, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(error, match=said):
        leaderboard_ranks(means, half_widths, ties=ties)
