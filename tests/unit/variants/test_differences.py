import numpy as np
import pytest
from scipy import stats

from crossgraft.data import dataset_from_arrays
from crossgraft.variants.comparison import MeasuredImages, difference

RNG = np.random.default_rng(0)


def images(n=200, *, groups=None):
    targets = np.arange(n) % 2
    return MeasuredImages(dataset_from_arrays(np.zeros((n, 4, 4, 3), np.uint8), targets, groups=groups), "balanced_accuracy")


def answers(measured, share, rng=RNG):
    """Right for about this share of the images."""
    targets = measured.data.targets
    return np.where(rng.random(len(targets)) < share, targets, 1 - targets)


def test_the_difference_to_itself_is_zero_and_separates_nothing():
    """Answers that agree on 200 images may differ on others, and the interval says how often."""
    measured = images()
    value = measured.measure(answers(measured, 0.8))
    found = difference([value], [value], measured)
    assert (found.value, found.is_separable) == (0, False)
    assert -0.1 < found.low < 0 < found.high < 0.1


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


def test_seeds_that_disagree_widen_the_interval():
    measured = images()
    same = [measured.measure(answers(measured, 0.8))] * 3
    one = measured.measure(answers(measured, 0.7))
    agreeing = difference([one] * 3, same, measured)
    shifted = [measured.measure(answers(measured, share)) for share in (0.5, 0.7, 0.9)]
    disagreeing = difference(shifted, same, measured)
    by_seed = [each.value - same[0].value for each in shifted]
    assert disagreeing.value == pytest.approx(np.mean(by_seed))
    of_seeds = stats.t.ppf(0.975, 2) * np.std(by_seed, ddof=1) / np.sqrt(3)
    assert 0.7 * of_seeds < (disagreeing.high - disagreeing.low) / 2
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
    few = images(4, groups=np.array([0, 1, 0, 1]))
    value = few.measure(few.data.targets)
    found = difference([value], [value], few)
    assert found.value == 0
    assert found.low is None
    assert found.is_separable is None
    assert "belong to one group" in found.reason
    assert difference([], [], few).reason == "no seed was trained in both"


def test_between_two_networks_metrics_lie_on_a_line():
    for metric in ("balanced_accuracy", "auc"):
        measured = MeasuredImages(images().data, metric)
        given = [answers(measured, share) for share in (0.9, 0.6)]
        if metric == "auc":
            given = [np.column_stack([1 - each, each]) * 0.8 + 0.1 for each in given]
        one, other = (measured.measure(each) for each in given)
        between = one.towards(other, 0.25)
        assert between.value == pytest.approx(0.75 * one.value + 0.25 * other.value)
        assert measured.mean([between]).value == pytest.approx(between.value)
        found = difference([one], [between], measured)
        assert found.value == pytest.approx(0.25 * (one.value - other.value)) and found.low < found.value < found.high
