"""The numbers are those of scipy.stats, which is not imported for them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from crossgraft.statistics.midranks import midranks

VALUES = st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(allow_nan=False)), max_size=30)


@given(VALUES)
def test_midranks_are_those_of_scipy(values):
    assert midranks(np.array(values, dtype=float)).tolist() == stats.rankdata(np.array(values, dtype=float)).tolist()


@given(st.floats(0.5, 1e9))
def test_the_quantile_of_the_jackknife_is_that_of_scipy(freedom):
    assert special.stdtrit(freedom, 0.975) == stats.t.ppf(0.975, freedom)
