from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError
from crossgraft.statistics import relative_top_k_accuracy, top_1_regret

models = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 20)), min_size=1, max_size=7)


def literal_expected_best(score, result, k):
    """The mean over every way to break the tie at place k."""
    k = min(k, len(score))
    order = sorted(score, reverse=True)
    certain = [i for i in range(len(score)) if score[i] > order[k - 1]]
    tied = [i for i in range(len(score)) if score[i] == order[k - 1]]
    choices = [certain + list(extra) for extra in combinations(tied, k - len(certain))]
    return np.mean([max(result[i] for i in chosen) for chosen in choices])


@given(models, st.integers(1, 8))
def test_ties_give_the_expected_value(pairs, k):
    score, result = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    expected = literal_expected_best(score, result, k)
    assert relative_top_k_accuracy(score, result, k=k) == pytest.approx(expected / max(result))
    assert top_1_regret(score, result) == pytest.approx(max(result) - literal_expected_best(score, result, 1))


@given(models)
def test_more_choices_are_never_worse(pairs):
    score, result = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    shares = [relative_top_k_accuracy(score, result, k=k) for k in range(1, len(score) + 1)]
    assert all(later >= earlier - 1e-12 for earlier, later in pairwise(shares))
    assert shares[-1] == pytest.approx(1.0)


def test_regret_is_in_the_unit_of_the_results():
    assert top_1_regret([1.0, 2.0], [91.0, 88.5]) == pytest.approx(2.5)
    assert top_1_regret([7.0], [0.3]) == 0.0


def test_bad_input_is_named():
    with pytest.raises(DataError, match="at least one model"):
        relative_top_k_accuracy([1.0], [1.0], k=0)
    with pytest.raises(DataError, match="positive results"):
        relative_top_k_accuracy([1.0, 2.0], [0.0, 1.0])
    with pytest.raises(DataError, match="finite"):
        top_1_regret([float("nan")], [1.0])
    with pytest.raises(DataError, match="needs a model"):
        top_1_regret([], [])
