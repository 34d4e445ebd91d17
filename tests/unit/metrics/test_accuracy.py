import jaxtyping
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics import accuracy, accuracy_difference


def outcomes(num_right: int, num_images: int) -> np.ndarray:
    return np.arange(num_images) < num_right


@given(num_images=st.integers(1, 300), data=st.data())
def test_ungrouped_interval_is_scipys_exact_one(num_images, data):
    num_right = data.draw(st.integers(0, num_images))
    found = accuracy(outcomes(num_right, num_images))
    expected = stats.binomtest(num_right, num_images).proportion_ci(method="exact")
    np.testing.assert_allclose(found[:3], (num_right / num_images, *expected), atol=1e-9)
    assert found.num_images == num_images
    assert found.num_groups is None


def literal_grouped(correct, groups, *, level=0.95):
    """Korn and Graubard's interval, with the design effect drawn towards that of groups that are all right or all wrong."""
    names = sorted(set(groups))
    sizes = [sum(groups == name) for name in names]
    rights = [sum(correct[groups == name]) for name in names]
    n, g, p = len(correct), len(names), correct.mean()
    largest = sum(k * k for k in sizes) / n
    design = 1.0
    if 0 < p < 1:
        left_out = [correct[groups != name].mean() for name in names]
        variance = (g - 1) / g * sum((value - sum(left_out) / g) ** 2 for value in left_out)
        design = max(1.0, variance / (p * (1 - p) / n))

    def number(chosen):
        return sum(chosen) ** 2 / sum(k * k for k in chosen) if chosen else 0.0

    f = min(
        number([k for k, r in zip(sizes, rights, strict=True) if r < k]),
        number([k for k, r in zip(sizes, rights, strict=True) if r > 0]),
    )
    design = design ** (f / (f + 2)) * max(largest, design) ** (2 / (f + 2))
    upper = (1 + level) / 2
    m = n / design * (stats.norm.ppf(upper) / stats.t.ppf(upper, g - 1)) ** 2
    low = stats.beta.ppf(1 - upper, p * m, m - p * m + 1) if p > 0 else 0.0
    high = stats.beta.ppf(upper, p * m + 1, m - p * m) if p < 1 else 1.0
    return p, low, high


@given(seed=st.integers(0, 99), num_groups=st.integers(2, 9), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_grouped_interval_follows_the_equations_literally(seed, num_groups, level):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, num_groups, 40)
    groups[:2] = 0, 1
    correct = rng.random(40) < np.where(groups % 2, 0.95, 0.5)
    expected = literal_grouped(correct, groups, level=level)
    np.testing.assert_allclose(accuracy(correct, groups, confidence=level)[:3], expected, rtol=1e-9, atol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=4, max_size=40), st.integers(2, 4))
@example([0.0, 0.0, 0.0, 1.2e-308], 2)  # a quantile that SciPy does not find
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
    worth = 4 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 3)) ** 2
    assert everything_right.low == pytest.approx(0.025 ** (1 / worth))


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


def literal_difference(first, second, groups=None):
    """Square and add the intervals of both discordant shares, with the correlation of what their images add."""
    parts = [np.maximum(first - second, 0.0), np.maximum(second - first, 0.0)]
    units = np.arange(len(first)) if groups is None else groups
    names = np.unique(units)
    shares = [accuracy(part)[:3] if groups is None else literal_grouped(part, groups) for part in parts]
    totals = np.array([[(part - part.mean())[units == name].sum() for name in names] for part in parts])
    deviations = np.sqrt((totals**2).sum(axis=1))
    correlation = totals[0] @ totals[1] / np.prod(deviations) if deviations.min() > 1e-9 else 0.0
    (a, low_a, high_a), (b, low_b, high_b) = shares
    ends = []
    for (d, e), sign in (((a - low_a, high_b - b), -1), ((high_a - a, b - low_b), 1)):
        bound = max(x**2 + y**2 - 2 * correlation * x * y for x, y in ((a - low_a, b - low_b), (high_a - a, high_b - b)))
        square = min(d**2 + e**2 - 2 * correlation * d * e, bound)
        shrunk = (1 - 1 / len(names)) * square + (d**2 + e**2) / len(names)
        ends.append(a - b + sign * np.sqrt(max(square, shrunk) if deviations.min() > 1e-9 else d**2 + e**2))
    return ends


@given(seed=st.integers(0, 99), grouped=st.booleans())
def test_difference_squares_and_adds_the_discordant_shares(seed, grouped):
    rng = np.random.default_rng(seed)
    first, second = rng.random(50) < 0.9, rng.random(50) < 0.8
    groups = np.arange(50) % 9 if grouped else None
    found = accuracy_difference(first, second, groups)
    expected = np.clip(literal_difference(first.astype(float), second.astype(float), groups), -1, 1)
    np.testing.assert_allclose((found.low, found.high), expected, atol=1e-9)
    assert found.value == pytest.approx(first.mean() - second.mean())
    turned = accuracy_difference(second, first, groups)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def newcombe_10(both, only_first, only_second, neither):
    """Newcombe's method 10 for paired shares (1998), with the continuity correction of the correlation."""
    n = both + only_first + only_second + neither
    first, second = (both + only_first) / n, (both + only_second) / n

    def wilson(share):
        return stats.binomtest(round(share * n), n).proportion_ci(method="wilson")

    (l1, u1), (l2, u2) = wilson(first), wilson(second)
    product = both * neither - only_first * only_second
    product = max(product - n / 2, 0) if product > 0 else product
    scale = np.sqrt((both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither))
    phi = product / scale if scale else 0.0
    below = np.sqrt((first - l1) ** 2 - 2 * phi * (first - l1) * (u2 - second) + (u2 - second) ** 2)
    above = np.sqrt((u1 - first) ** 2 - 2 * phi * (u1 - first) * (second - l2) + (second - l2) ** 2)
    return first - second - below, first - second + above


@pytest.mark.parametrize("cells", [(36, 12, 2, 0), (80, 10, 5, 5), (43, 0, 1, 0), (30, 9, 1, 10), (54, 0, 0, 0)])
def test_difference_is_near_newcombes_and_a_little_wider(cells):
    kind = np.repeat(np.arange(4), cells)
    found = accuracy_difference((kind == 0) | (kind == 1), (kind == 0) | (kind == 2))
    low, high = newcombe_10(*cells)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.03)
    assert found.high - found.low > 0.95 * (high - low)


@pytest.mark.parametrize("number", [1, 5, 20, 400])
def test_two_that_agree_on_every_image_may_differ_on_others(number):
    agreeing = np.arange(max(number, 2)) % 2 == 0
    found = accuracy_difference(agreeing, agreeing)
    most = 1 - 0.025 ** (1 / len(agreeing))  # the exact upper end of a share of which there was none
    assert (found.value, found.low, found.high) == pytest.approx((0, -most, most))
    assert found.contains_zero


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
