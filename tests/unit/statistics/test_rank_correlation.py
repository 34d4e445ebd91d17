import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crossgraft.errors import DataError
from crossgraft.statistics import kendall, spearman

pairs = st.lists(st.tuples(st.integers(-4, 4), st.integers(-4, 4)), min_size=2, max_size=9)


def mid_ranks(values):
    return np.array([sum(v < u for v in values) + (sum(v == u for v in values) + 1) / 2 for u in values])


def literal_spearman(x, y):
    a, b = mid_ranks(x) - mid_ranks(x).mean(), mid_ranks(y) - mid_ranks(y).mean()
    return a @ b / math.sqrt((a @ a) * (b @ b))


def literal_kendall(x, y):
    signs = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i in range(len(x)) for j in range(i) if len(x) > 1]
    a, b = np.array(signs, dtype=float).T
    return a @ b / math.sqrt((a @ a) * (b @ b))


@pytest.mark.parametrize(("function", "literal"), [(spearman, literal_spearman), (kendall, literal_kendall)])
@given(pairs)
def test_equals_the_literal_definition_with_ties(function, literal, both):
    x, y = ([float(value) for value in side] for side in zip(*both, strict=True))
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert math.isnan(function(x, y))
    else:
        assert function(x, y) == pytest.approx(literal(x, y), abs=1e-12)


@pytest.mark.parametrize("function", [spearman, kendall])
def test_bad_input_is_named(function):
    with pytest.raises(DataError, match="2 values and transfer_accuracy 3"):
        function([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="finite"):
        function([1.0, float("nan")], [1.0, 2.0])
    with pytest.raises(DataError, match="at least two"):
        function([1.0], [1.0])
