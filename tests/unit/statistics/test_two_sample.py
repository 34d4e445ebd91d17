import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crossgraft.statistics import Quantity, holm, largest_difference, largest_gap, total_variation, two_sample_tests


def one_hot(values):
    return np.eye(int(max(values)) + 1)[np.asarray(values)]


def test_effects_are_those_of_scipy_and_of_their_definitions():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 12, 50), rng.integers(3, 12, 40)
    shares = [np.bincount(values, minlength=12)[np.newaxis] / len(values) for values in (first, second)]
    assert largest_gap(*shares)[0] == pytest.approx(stats.ks_2samp(first, second).statistic)
    assert total_variation(*shares)[0] == pytest.approx(np.abs(shares[0] - shares[1]).sum() / 2)
    assert largest_difference(*shares)[0] == pytest.approx(np.abs(shares[0] - shares[1]).max())


def test_the_p_value_is_the_share_of_all_assignments_that_differ_as_much():
    values, in_second = np.array([0, 0, 1, 0, 2, 2, 1, 2, 2]), np.arange(9) >= 5
    (found,) = two_sample_tests([Quantity(one_hot(values), largest_gap)], np.ones(9), in_second, num_permutations=20_000, seed=1)

    def gap(rows):
        other = [row for row in range(9) if row not in rows]
        return largest_gap(*(np.bincount(values[list(part)], minlength=3)[np.newaxis] / len(part) for part in (other, rows)))[0]

    gaps = [gap(rows) for rows in combinations(range(9), 4)]
    exact = np.mean([value >= gap((5, 6, 7, 8)) - 1e-9 for value in gaps])
    assert found.effect == pytest.approx(gap((5, 6, 7, 8)))
    assert found.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


def test_whole_groups_are_moved():
    """Ten patients of one brightness each: by image the parts differ beyond doubt, by patient they do not."""
    brightness = np.array([0, 1, 1, 0, 0, 1, 0, 0, 1, 0])
    in_second = np.arange(10) >= 5
    by_patient = two_sample_tests([Quantity(50 * one_hot(brightness), total_variation)], np.full(10, 50.0), in_second)[0]
    by_image = two_sample_tests(
        [Quantity(one_hot(np.repeat(brightness, 50)), total_variation)], np.ones(500), np.repeat(in_second, 50)
    )[0]
    assert by_patient.effect == by_image.effect == 0
    moved = np.array([0, 1, 1, 0, 0, 1, 1, 0, 1, 0])
    by_patient = two_sample_tests([Quantity(50 * one_hot(moved), total_variation)], np.full(10, 50.0), in_second)[0]
    by_image = two_sample_tests(
        [Quantity(one_hot(np.repeat(moved, 50)), total_variation)], np.ones(500), np.repeat(in_second, 50)
    )[0]
    assert by_patient.effect == pytest.approx(by_image.effect) and by_patient.effect == pytest.approx(0.2)
    assert by_patient.p_value > 0.5 and by_image.p_value == 1 / 2000


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_step_down_procedure_rejects(p_values):
    adjusted = holm(p_values)
    rejected = set()
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] * (len(p_values) - step) > 0.05:
            break
        rejected.add(place)
    assert {place for place, p in enumerate(adjusted) if p <= 0.05} == rejected


def test_holm_multiplies_by_the_number_of_values_that_are_left():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == []
