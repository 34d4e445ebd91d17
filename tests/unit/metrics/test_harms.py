"""When a class counts as missed, and a calibration error as one; tried where they do, and where they must not."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact

from crossgraft.metrics import sensitivity
from crossgraft.metrics.harms import LEVEL, ClassErrors, errors_of_classes, missed_classes, missed_in_words, wrong_risks
from crossgraft.metrics.record import CalibrationRecord, MetricRecord, ReliabilityBin
from crossgraft.report.verdict import Caveat, Gravity, caveats_of
from crossgraft.tasks import recorded_task
from crossgraft.tune.measuring.evaluation import reliability_bins

NAMES = ["a", "b", "c", "d"]


def names_missed(counts, metrics=()):
    return [entry.name for entry in missed_classes(errors_of_classes(NAMES[: len(counts)], counts, metrics))]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[6, 7], [0, 13]], ["a"]),  # more than half, and none of the others
        ([[2, 3], [0, 5]], []),  # more than half of a few
        ([[0, 1], [0, 13]], []),  # a single image
        ([[10, 3], [2, 11]], []),  # chance
        ([[60, 40, 0], [0, 99, 1], [0, 2, 98]], ["a"]),  # most are found, but far fewer than of the others
        ([[8, 2, 0], [0, 10, 0], [0, 0, 10]], []),
        ([[0, 9], [8, 2]], ["a"]),  # b may be half right
        ([[0, 9], [9, 0]], ["a", "b"]),  # all are missed, none more often than the others
        ([[4, 6, 0], [0, 5, 5], [6, 0, 4]], []),  # all alike, and about a half
        ([[0, 0], [3, 9]], []),  # no image of a, and nothing to compare b with
    ],
)
def test_a_class_is_missed_more_often_than_the_others_or_than_half_the_time(counts, expected):
    assert names_missed(counts) == expected


def test_of_two_classes_the_first_counts_patients_too():
    """Its sensitivity is the specificity of the last, the only class that has metrics of its own."""
    specificity = MetricRecord(
        metric="specificity", title="Specificity", class_name="b", value=0.4, low=0.1, high=0.8, num_images=10, num_groups=3
    )
    counts = [[40, 60], [10, 90]]
    assert names_missed(counts) == ["a"]
    assert names_missed(counts, [specificity]) == ["a"]
    assert names_missed(counts, [specificity.model_copy(update={"high": 0.95})]) == []
    assert names_missed([[40, 60, 0], [10, 90, 0], [0, 0, 9]], [specificity.model_copy(update={"high": 0.95})]) == ["a"]
    (first, last) = errors_of_classes(["a", "b"], counts, [specificity])
    assert (first.sensitivity, last.sensitivity) == (specificity, None)


def test_a_class_of_less_than_half_is_found_by_the_one_sided_exact_binomial_test():
    for images in (4, 11, 40):
        for missed in range(images + 1):
            counts = [[images - missed, missed], [missed, images - missed]]  # alike, so that nothing is compared
            expected = missed >= 2 and binomtest(missed, images, 0.5, alternative="greater").pvalue <= LEVEL / 4
            assert names_missed(counts) == (["a", "b"] if expected else [])


def test_the_comparison_is_the_one_sided_exact_test_of_fisher():
    rng = np.random.default_rng(0)
    for _ in range(200):
        images = rng.integers(8, 60, size=3)
        missed = [int(rng.integers(0, (n - 1) // 2 + 1)) for n in images]  # fewer than half, so that only the test decides
        counts = np.diag(images - missed)
        counts[0, 1], counts[1, 2], counts[2, 0] = missed
        expected = set()
        for place in range(3):
            others = [k for k in range(3) if k != place]
            rest = sum(missed[k] for k in others), sum(images[k] - missed[k] for k in others)
            table = [[missed[place], images[place] - missed[place]], rest]
            if missed[place] >= 2 and fisher_exact(table, alternative="greater").pvalue <= LEVEL / 6:
                expected.add(NAMES[place])
        assert set(names_missed(counts.tolist())) == expected


def test_an_interval_over_patients_that_reaches_the_others_speaks_against_it():
    counts = [[60, 40, 0], [0, 99, 1], [0, 2, 98]]

    def row(high):
        return MetricRecord(
            metric="sensitivity", title="Sensitivity", value=0.6, low=0.2, high=high, num_images=100, class_name="a"
        )

    assert names_missed(counts, [row(0.9)]) == ["a"]
    assert names_missed(counts, [row(0.99)]) == []


@pytest.mark.parametrize(("num_classes", "images"), [(2, 5), (4, 10), (4, 40), (8, 5), (20, 3)])
@pytest.mark.parametrize("sensitivity", [0.5, 0.55, 0.7, 0.85])
def test_where_all_classes_are_as_good_none_is_named_more_often_than_the_level(num_classes, images, sensitivity):
    rng = np.random.default_rng(1)
    draws, named = 300, 0
    names = [str(place) for place in range(num_classes)]
    for _ in range(draws):
        right = rng.binomial(images, sensitivity, size=num_classes)
        counts = np.diag(right)
        counts[np.arange(num_classes), (np.arange(num_classes) + 1) % num_classes] = images - right
        named += bool(missed_classes(errors_of_classes(names, counts.tolist())))
    assert named / draws <= LEVEL


def test_many_images_take_no_longer_to_compare_than_to_read():
    counts = np.full((3, 3), 4_000) + np.diag([10_000, 10_000, 9_000])
    assert names_missed(counts.tolist()) == ["c"]


def test_it_says_what_the_class_was_taken_for_where_it_is_mostly_one():
    task = recorded_task(SimpleNamespace(task="multi-class", class_names=NAMES))

    def words(taken, missed=9):
        return missed_in_words([ClassErrors("a", 12, missed, taken)], task).text

    assert words({"b": 9, "c": 0}) == "It took 9 of 12 images of a for b."
    assert words({"b": 5, "c": 4}) == "It missed 9 of 12 images of a, and took 5 of them for b."
    assert words({"b": 3, "c": 3, "d": 3}) == "It missed 9 of 12 images of a."
    two = [ClassErrors("a", 12, 9, {"b": 9}), ClassErrors("c", 9, 6, {"b": 6})]
    assert missed_in_words(two, task).text.endswith(" Also missed often: c.")
    assert missed_in_words([], task) is None


@pytest.mark.parametrize(("patients", "images", "share"), [(20, 10, 0.8), (4, 30, 0.9)])
def test_classes_that_patients_find_alike_are_not_called_missed(patients, images, share):
    """Both classes are found alike; images of a patient are right together (intra-class correlation 0.5)."""
    rng = np.random.default_rng(0)
    named = of_worse = 0
    for _ in range(150):
        named += bool(missed_by_patients(rng, (patients, patients), images, (share, share)))
        of_worse += missed_by_patients(rng, (60, 60), images, (share, share - 0.4)) == ["1"]
    assert named / 150 <= 0.05
    assert of_worse / 150 >= 0.8


def missed_by_patients(rng, patients, images, shares):
    metrics, counts = [], np.zeros((2, 2), dtype=int)
    for place, (number, share) in enumerate(zip(patients, shares, strict=True)):
        groups = np.repeat(np.arange(number), rng.integers(1, 2 * images, size=number))
        right = rng.random(len(groups)) < rng.beta(share, 1 - share, size=number)[groups]
        counts[place] = [right.sum(), (~right).sum()][:: 1 - 2 * place]
        value, low, high, num_images, num_groups, *_ = sensitivity(right, np.ones(len(right), dtype=bool), groups)
        known = {"value": value, "low": low, "high": high, "num_images": num_images, "num_groups": num_groups}
        metrics.append(MetricRecord(metric="sensitivity", title="Sensitivity", class_name=str(place), **known))
    return [entry.name for entry in missed_classes(errors_of_classes(["0", "1"], counts.tolist(), metrics))]


def calibration(probabilities, right, bins=15):
    rows = []
    edges = np.linspace(0, 1, bins + 1)
    for low, high in pairwise(edges):
        here = (probabilities > low) & (probabilities <= high)
        mean, share = (float(x[here].mean()) if here.any() else None for x in (probabilities, right))
        rows.append(ReliabilityBin(low=low, high=high, num_images=int(here.sum()), mean_probability=mean, share_right=share))
    return CalibrationRecord(
        temperature=None, fitted_on="val", num_images=len(right), error_raw=None, error_calibrated=None, bins_raw=rows
    )


@pytest.mark.parametrize("num_images", [40, 400])
def test_perfect_probabilities_are_hardly_ever_called_wrong_and_wrong_ones_are(num_images):
    rng = np.random.default_rng(2)
    task = recorded_task(SimpleNamespace(task="multi-class", class_names=NAMES))
    named = too_sure = 0
    for _ in range(300):
        truth = rng.uniform(0.5, 1, num_images)
        right = (rng.random(num_images) < truth).astype(float)
        named += wrong_risks(calibration(truth, right), task) is not None
        said = wrong_risks(calibration(np.full(num_images, 0.98), (rng.random(num_images) < 0.6).astype(float)), task)
        too_sure += said is not None and "mostly too sure" in said.text and said.gravity == Gravity.HARM
    assert named / 300 <= 0.01
    assert too_sure == 300
    assert wrong_risks(None, task) is None


@pytest.mark.parametrize("labels", [1, 4])
def test_images_that_are_right_together_do_not_call_perfect_probabilities_wrong(labels):
    """Ten images of each patient, of one class; or labels of an image that come together."""
    rng = np.random.default_rng(3)
    task = recorded_task(SimpleNamespace(task="multi-class" if labels == 1 else "multi-label", class_names=NAMES))
    named, as_alone, too_sure = 0, 0, 0
    for _ in range(200):
        chance = rng.beta(1.5, 1.5, 40)
        truth = (rng.random(40) < chance).astype(np.int64)
        if labels == 1:
            patients = np.repeat(np.arange(40), 10)
            said, truth = (np.repeat(values, 10) for values in (chance, truth))
            table, sure = (np.column_stack([1 - p, p]) for p in (said, said**4 / (said**4 + (1 - said) ** 4)))
        else:
            patients, table = None, np.tile(chance[:, None], (1, labels))
            sure, truth = table**4 / (table**4 + (1 - table) ** 4), np.tile(truth[:, None], (1, labels))
        bins, of_sure = (reliability_bins(p, truth, patients) for p in (table, sure))
        named += wrong_risks(of_bins(bins), task) is not None
        too_sure += wrong_risks(of_bins(of_sure), task) is not None
        as_alone += wrong_risks(of_bins([row.model_copy(update={"variance_of_groups": None}) for row in bins]), task) is not None
    assert named / 200 <= 0.05 < 0.3 < min(as_alone, too_sure) / 200


def of_bins(bins):
    return CalibrationRecord(
        temperature=None, fitted_on="val", num_images=1, error_raw=None, error_calibrated=None, bins_raw=bins
    )


def test_a_harm_that_was_seen_stands_before_what_was_not_checked_wherever_a_list_has_it():
    order = [Caveat("not checked", Gravity.UNCHECKED), Caveat("few", Gravity.LIMITED), Caveat("missed", Gravity.HARM)]
    order += [Caveat("missed, too", Gravity.HARM), Caveat("unsound", Gravity.WRONG)]
    found = caveats_of(None, [partial(lambda each, _: each, each) for each in (*order, None)])
    assert [each.text for each in found] == ["unsound", "missed", "missed, too", "few", "not checked"]
