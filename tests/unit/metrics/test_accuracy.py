import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics import accuracy, accuracy_difference


def outcomes(num_right: int, num_images: int) -> np.ndarray:
    return np.arange(num_images) < num_right


@given(num_images=st.integers(1, 300), data=st.data())
def test_ungrouped_interval_is_scipys_wilson(num_images, data):
    num_right = data.draw(st.integers(0, num_images))
    found = accuracy(outcomes(num_right, num_images))
    expected = stats.binomtest(num_right, num_images).proportion_ci(method="wilson")
    np.testing.assert_allclose(found[:3], (num_right / num_images, *expected), atol=1e-12)
    assert found.num_images == num_images
    assert found.num_groups is None


def test_grouped_interval_follows_the_equations_literally():
    rng = np.random.default_rng(0)
    groups = np.repeat(["ada", "ben", "cleo", "dan", "eve"], [3, 10, 7, 12, 8])
    correct = rng.random(40) < np.where(groups < "cm", 0.9, 0.4)
    p = correct.mean()
    names = sorted(set(groups))
    left_out = [correct[groups != name].mean() for name in names]
    variance = (5 - 1) / 5 * sum((value - sum(left_out) / 5) ** 2 for value in left_out)
    m, q = p * (1 - p) / variance, stats.t.ppf(0.975, 4)
    centre, half = p + q**2 / (2 * m), q * np.sqrt(p * (1 - p) / m + q**2 / (4 * m**2))
    expected = (p, (centre - half) / (1 + q**2 / m), (centre + half) / (1 + q**2 / m))
    assert m < 40
    np.testing.assert_allclose(accuracy(correct, groups)[:3], expected, rtol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=40), st.integers(2, 4))
def test_interval_holds_the_value_and_stays_in_range(shares, num_groups):
    found = accuracy(np.array(shares), np.arange(len(shares)) % num_groups)
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1
    assert found.num_groups == num_groups


def test_groups_that_fail_together_widen_the_interval():
    correct = outcomes(30, 40)
    together = accuracy(correct, np.repeat(np.arange(8), 5))
    apart = accuracy(correct)
    assert together.high - together.low > 1.5 * (apart.high - apart.low)


def test_equal_groups_never_count_more_than_their_images():
    correct = np.tile([True, True, False], 20)
    equal_groups = accuracy(correct, np.repeat(np.arange(20), 3))
    apart = accuracy(correct)
    assert equal_groups.high - equal_groups.low > apart.high - apart.low


def test_all_right_counts_each_group_once():
    everything_right = accuracy(np.ones(400, dtype=bool), np.arange(400) % 4)
    assert everything_right.high == 1
    q = stats.t.ppf(0.975, 3)
    assert everything_right.low == pytest.approx(4 / (4 + q**2))


def test_grouped_interval_covers_where_the_ungrouped_does_not():
    rng = np.random.default_rng(1)
    groups, truth, rounds = np.repeat(np.arange(7), 60), 0.9, 400
    covered = np.zeros(2)
    for _ in range(rounds):
        patient_accuracy = rng.beta(truth * 15, (1 - truth) * 15, size=7)
        correct = rng.random(420) < patient_accuracy[groups]
        for column, found in enumerate((accuracy(correct, groups), accuracy(correct))):
            covered[column] += found.low <= truth <= found.high
    grouped, ungrouped = covered / rounds
    # Standard error of a coverage of 0.95 over 400 rounds: 0.011.
    assert grouped > 0.92
    assert ungrouped < 0.75


def test_difference_is_the_paired_t_interval_without_groups():
    rng = np.random.default_rng(2)
    first, second = rng.random(50) < 0.8, rng.random(50) < 0.6
    found = accuracy_difference(first, second)
    expected = stats.ttest_rel(first.astype(float), second.astype(float)).confidence_interval()
    np.testing.assert_allclose((found.low, found.high), expected, rtol=1e-9)
    assert found.value == pytest.approx(first.mean() - second.mean())


def test_difference_leaves_whole_groups_out():
    groups = np.array([0, 0, 0, 1, 1, 2])
    first, second = np.array([1, 1, 0, 1, 0, 1.0]), np.array([0, 1, 0, 0, 0, 1.0])
    replicates = [(first - second)[groups != g].mean() for g in range(3)]
    standard_error = np.sqrt(2 / 3 * np.sum((np.array(replicates) - np.mean(replicates)) ** 2))
    assert accuracy_difference(first, second, groups).standard_error == pytest.approx(standard_error)


def test_one_group_has_no_interval_and_the_reason_names_the_value():
    with pytest.raises(NotApplicable, match=r"All 4 images belong to one group.*0\.750"):
        accuracy(np.array([1.0, 1.0, 0.5, 0.5]), np.zeros(4))
    with pytest.raises(NotApplicable, match="at least two groups"):
        accuracy_difference(np.ones(3), np.zeros(3), np.zeros(3))


@pytest.mark.parametrize(
    ("correct", "groups", "message"),
    [
        (np.array([], dtype=bool), None, "at least one image"),
        (np.array([0.5, 1.2]), None, r"shares in \[0, 1\]"),
        (np.array([0.5, np.nan]), None, r"shares in \[0, 1\]"),
    ],
)
def test_bad_input_is_named(correct, groups, message):
    with pytest.raises(DataError, match=message):
        accuracy(correct, groups)


def test_groups_of_another_length_are_named(monkeypatch):
    # Users run without the shape checker of the tests, which would answer first.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(DataError, match="groups has 3 rows and correct 4"):
        accuracy(np.ones(4), np.zeros(3))
    with pytest.raises(DataError, match="second has 3 rows and first 4"):
        accuracy_difference(np.ones(4), np.zeros(3))
