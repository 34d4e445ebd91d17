from __future__ import annotations

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from crossgraft.scores._inputs import Standardization

from .conftest import make_problem


def test_equals_scikit_learn_on_other_rows():
    features, _ = make_problem()
    expected = StandardScaler().fit(features[:50]).transform(features[50:])
    np.testing.assert_allclose(Standardization.fit(features[:50]).apply(features[50:]), expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_columns_become_zero_whatever_rounding_says(dtype):
    features = np.full((1000, 2), 0.1, dtype=dtype)
    features[:, 1] = np.arange(1000)
    standardised = Standardization.fit(features).apply(features)
    assert standardised.dtype == dtype
    assert not standardised[:, 0].any()
    assert standardised[:, 1].std() == pytest.approx(1, rel=1e-4)
