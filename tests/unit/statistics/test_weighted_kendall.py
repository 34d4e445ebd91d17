import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError
from crossgraft.statistics import permutation_p_value, weighted_kendall


def literal_weighted_tau(score, truth):
    """Vigna's additive hyperbolic tau without ties, ranked by each variable in turn, averaged."""

    def tau(rank_by):
        rank = np.empty(len(rank_by), dtype=int)
        rank[np.argsort(-np.asarray(rank_by))] = np.arange(len(rank_by))
        agree = total = 0.0
        for i in range(len(score)):
            for j in range(i + 1, len(score)):
                weight = 1 / (rank[i] + 1) + 1 / (rank[j] + 1)
                agree += weight * np.sign((score[i] - score[j]) * (truth[i] - truth[j]))
                total += weight
        return agree / total

    return (tau(score) + tau(truth)) / 2


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=9, unique=True), st.integers(0, 50))
def test_equals_the_literal_definition(score, seed):
    truth = np.random.default_rng(seed).permutation(len(score)).astype(float)
    assert weighted_kendall([float(s) for s in score], truth) == pytest.approx(literal_weighted_tau(score, truth), abs=1e-12)


def test_exchanges_at_the_top_weigh_more():
    truth = [5.0, 4.0, 3.0, 2.0, 1.0]
    top, bottom = [4.0, 5.0, 3.0, 2.0, 1.0], [5.0, 4.0, 3.0, 1.0, 2.0]
    assert weighted_kendall(top, truth) < weighted_kendall(bottom, truth)


def test_constant_scores_have_no_correlation():
    assert math.isnan(weighted_kendall([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]))


@pytest.mark.parametrize(
    ("score", "truth", "message"),
    [
        ([1.0, 2.0], [1.0, 2.0, 3.0], "2 values and transfer_accuracy 3"),
        ([1.0], [1.0], "at least two"),
        ([1.0, float("nan")], [1.0, 2.0], "must be finite"),
    ],
)
def test_bad_input_is_named(score, truth, message):
    with pytest.raises(DataError, match=message):
        weighted_kendall(score, truth)


def test_permutation_p_is_exact_for_few_models():
    x = np.arange(5.0)
    assert permutation_p_value(weighted_kendall, x, x) == pytest.approx(1 / 120)
    assert permutation_p_value(weighted_kendall, x, -x) == 1.0


def test_permutation_p_of_many_models_is_seeded_and_never_zero():
    x = np.arange(10.0)
    p = [permutation_p_value(weighted_kendall, x, x, num_permutations=99, seed=seed) for seed in (0, 0)]
    assert p[0] == p[1] == pytest.approx(0.01)
    noise = np.random.default_rng(3).permutation(x)
    assert permutation_p_value(weighted_kendall, x, noise, num_permutations=99) > 0.02
