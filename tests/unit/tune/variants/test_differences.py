import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays
from crossgraft.tune.variants.differences import MeasuredImages, difference

RNG = np.random.default_rng(0)


def images(n=200, *, groups=None):
    targets = np.arange(n) % 2
    return MeasuredImages(
        dataset_from_arrays(np.zeros((n, 4, 4, 3), np.uint8), targets, groups=groups), "balanced_accuracy"
    )


def answers(measured, share, rng=RNG):
    """Right for about this share of the images."""
    targets = measured.data.targets
    return np.where(rng.random(len(targets)) < share, targets, 1 - targets)


def test_the_difference_to_itself_is_zero_and_separates_nothing():
    measured = images()
    value = measured.measure(answers(measured, 0.8))
    found = difference([value], [value], measured)
    assert (found.value, found.low, found.high, found.is_separable) == (0, 0, 0, False)


def test_pairs_on_the_same_images_are_surer_than_two_unpaired_intervals():
    """One model that is the other with ten more images right: the interval is that of ten images, not of two hundred."""
    measured = images()
    worse = answers(measured, 0.7)
    wrong = np.flatnonzero(worse != measured.data.targets)[:10]
    better = worse.copy()
    better[wrong] = measured.data.targets[wrong]
    found = difference([measured.measure(better)], [measured.measure(worse)], measured)
    assert found.value == pytest.approx(0.05, abs=0.005)
    assert found.is_separable
    assert found.high - found.low < 0.08  # unpaired: about 2 · 1.96 · √(2 · 0.7 · 0.3 / 200) = 0.18


def test_the_interval_holds_the_truth_about_95_times_in_100():
    rng = np.random.default_rng(1)
    held, widths = 0, []
    for _ in range(60):
        measured = images(120)
        one, other = (measured.measure(answers(measured, share, rng)) for share in (0.8, 0.7))
        found = difference([one], [other], measured)
        held += found.low <= 0.1 <= found.high
        widths.append(found.high - found.low)
    assert held >= 51  # of 60 at 95 %: 57, three standard deviations of 1.7 below
    theory = (
        2 * 2.093 * np.sqrt((0.8 * 0.2 + 0.7 * 0.3) / 120)
    )  # t with 19 degrees of freedom; the models are independent
    assert np.mean(widths) == pytest.approx(theory, rel=0.15)


def test_seeds_that_disagree_widen_the_interval():
    measured = images()
    same = [measured.measure(answers(measured, 0.8))] * 3
    one = measured.measure(answers(measured, 0.7))
    agreeing = difference([one] * 3, same, measured)
    shifted = [one, one + 0.1, one - 0.1]
    disagreeing = difference(shifted, same, measured)
    assert disagreeing.value == pytest.approx(agreeing.value)
    assert disagreeing.high - disagreeing.low > 1.5 * (agreeing.high - agreeing.low)


def test_groups_count_instead_of_images():
    """All images of a group right or wrong together: ten groups, whatever number of images each has."""
    groups = np.repeat(np.arange(20), 10)
    measured, alone = images(groups=groups), images()
    one = np.where((groups < 16), measured.data.targets, 1 - measured.data.targets)
    other = np.where((groups < 12), measured.data.targets, 1 - measured.data.targets)
    grouped = difference([measured.measure(one)], [measured.measure(other)], measured)
    single = difference([alone.measure(one)], [alone.measure(other)], alone)
    assert grouped.value == single.value == pytest.approx(0.2)
    assert grouped.high - grouped.low > 2 * (single.high - single.low)


def test_without_an_interval_there_is_a_reason():
    few = images(4, groups=np.array([0, 0, 1, 1]))
    value = few.measure(few.data.targets)
    found = difference([value], [value], few)
    assert found.value == 0
    assert found.low is None
    assert found.is_separable is None
    assert "at least 3 groups" in found.reason
    assert difference([], [], few).reason == "no seed was trained in both"
    one_class = MeasuredImages(
        dataset_from_arrays(
            np.zeros((8, 4, 4, 3), np.uint8), np.arange(8) % 2, groups=np.array([0, 1, 2, 1, 0, 3, 2, 3])
        ),
        "balanced_accuracy",
    )
    values = one_class.measure(one_class.data.targets)
    found = difference([values], [values], one_class)
    assert found.low == 0 or "so few test images" in found.reason
