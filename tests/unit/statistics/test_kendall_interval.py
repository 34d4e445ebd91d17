import numpy as np
import pytest
from scipy import stats

from crossgraft.statistics import weighted_kendall, weighted_kendall_interval

RNG = np.random.default_rng(0)
SCORE = RNG.normal(size=9)
TRUTH = 0.8 * SCORE + 0.6 * RNG.normal(size=9)


def test_it_is_a_jackknife_on_the_scale_of_the_inverse_tangent():
    found = weighted_kendall_interval(SCORE, TRUTH)
    number = len(SCORE)
    z = [np.arctanh(weighted_kendall(np.delete(SCORE, i), np.delete(TRUTH, i)) * (1 - 1 / number)) for i in range(number)]
    error = np.sqrt((number - 1) / number * np.sum((z - np.mean(z)) ** 2))
    whole = np.arctanh(weighted_kendall(SCORE, TRUTH) * (1 - 1 / number))
    ends = np.tanh(whole + np.array([-1, 1]) * stats.t.ppf(0.975, number - 1) * error) / (1 - 1 / number)
    assert (found.low, found.high) == pytest.approx(np.clip(ends, -1, 1))
    assert found.mean == weighted_kendall(SCORE, TRUTH)
    turned = weighted_kendall_interval(-SCORE, TRUTH)
    assert turned.low < turned.mean < turned.high < found.high


def test_without_an_interval_there_is_a_reason():
    assert weighted_kendall_interval(SCORE[:3], TRUTH[:3])[1:] == (None, None, "3 models, where 4 are needed")
    same = weighted_kendall_interval(np.arange(6.0), np.arange(6.0))
    assert same == (1.0, None, None, "it is the same without any of the models")
    one_differs = weighted_kendall_interval(np.array([0, 0, 0, 0, 1.0]), np.arange(5.0))
    assert one_differs.low is None and "not defined" in one_differs.reason
