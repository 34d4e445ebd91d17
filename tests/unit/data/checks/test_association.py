"""How much of the label one column tells, where the answer is known."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crossgraft.data.checks.label_leakage import held_out_accuracy

TARGETS = np.arange(200) % 2


def test_a_column_that_is_the_label_tells_all():
    assert held_out_accuracy(np.where(TARGETS == 1, "clinic A", "clinic B"), TARGETS) == 1


def test_a_value_stands_for_the_class_in_which_it_is_frequent_not_for_the_largest_class():
    common, rare = np.repeat(["x", "y"], [60, 140]), np.repeat(["x", "y"], [36, 4])
    values, targets = np.concatenate([common, rare]), np.repeat([0, 1], [200, 40])
    assert held_out_accuracy(values, targets) == pytest.approx((140 / 200 + 36 / 40) / 2)


def test_images_of_a_rare_class_are_never_all_held_out_together():
    targets = np.repeat(np.arange(12), 2)
    assert held_out_accuracy(targets.astype(str), targets) == 1


def test_names_of_images_tell_nothing():
    names = np.asarray([f"image {row}" for row in range(200)])
    assert held_out_accuracy(names, TARGETS) == 0.5
    assert held_out_accuracy(names, np.arange(200) % 4) == 0.25


def test_running_numbers_tell_nothing_unless_the_classes_come_one_after_the_other():
    drawn = np.random.default_rng(0).integers(0, 2, 3000)
    assert held_out_accuracy(np.arange(3000), drawn) == pytest.approx(0.5, abs=0.05)
    assert held_out_accuracy(np.arange(200), np.repeat([0, 1], 100)) > 0.95


def test_noise_is_near_chance_and_known_shares_are_recovered():
    rng = np.random.default_rng(0)
    targets = np.arange(4000) % 2
    assert held_out_accuracy(rng.integers(0, 3, 4000), targets) == pytest.approx(0.5, abs=0.03)
    flipped = np.where(rng.random(4000) < 0.1, 1 - targets, targets)
    assert held_out_accuracy(flipped, targets) == pytest.approx(0.9, abs=0.02)


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    targets = np.asarray([0] * 950 + [1] * 50)
    assert held_out_accuracy(np.full(1000, "same"), targets) == 0.5
    assert held_out_accuracy(targets.astype(str), targets) == 1


def test_a_missing_number_is_a_value_of_its_own():
    ages = np.where(TARGETS == 1, np.nan, 50.0 + np.arange(200) % 40)
    assert held_out_accuracy(ages, TARGETS) == 1


def test_what_only_recognises_patients_tells_nothing_of_others():
    """A column that is constant within a patient and different between them is a name, not a cause."""
    patients = np.repeat(np.arange(40), 5)
    targets = np.repeat(np.arange(40) % 2, 5)
    height = np.random.default_rng(0).permutation(40)[patients].astype(str)
    assert held_out_accuracy(height, targets) == 1
    assert held_out_accuracy(height, targets, patients) == 0.5


@settings(deadline=None)
@given(values=st.lists(st.integers(0, 30), min_size=10, max_size=60), seed=st.integers(0, 1000))
def test_it_is_a_share(values, seed):
    targets = np.random.default_rng(seed).integers(0, 3, len(values))
    targets[:3] = [0, 1, 2]
    assert 0 <= held_out_accuracy(np.asarray(values, dtype=float), targets) <= 1
