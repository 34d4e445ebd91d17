"""When a class counts as missed, and a calibration error as one; tried where they do, and where they must not."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import fisher_exact

from crossgraft.metrics.harms import LEVEL, ClassErrors, errors_of_classes, missed_classes, missed_in_words, wrong_risks
from crossgraft.metrics.record import CalibrationRecord, MetricRecord, ReliabilityBin
from crossgraft.report.verdict import Caveat, Gravity, caveats_of
from crossgraft.tasks import recorded_task

NAMES = ["a", "b", "c", "d"]


def names_missed(counts, metrics=()):
    return [entry.name for entry in missed_classes(errors_of_classes(NAMES[: len(counts)], counts, metrics))]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([[6, 7], [0, 13]], ["a"]),  # more than half
        ([[5, 5], [0, 10]], ["a"]),  # half
        ([[0, 1], [0, 13]], []),  # a single image
        ([[10, 3], [2, 11]], []),  # chance
        ([[60, 40, 0], [0, 99, 1], [0, 2, 98]], ["a"]),  # most are found, but far fewer than of the others
        ([[8, 2, 0], [0, 10, 0], [0, 0, 10]], []),
        ([[0, 9], [8, 2]], ["a", "b"]),  # the worst first
        ([[0, 0], [3, 9]], []),  # no image of a, and nothing to compare b with
    ],
)
def test_a_class_is_missed_by_half_of_its_images_or_more_often_than_the_others(counts, expected):
    assert names_missed(counts) == expected


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
            if missed[place] >= 2 and fisher_exact(table, alternative="greater").pvalue <= LEVEL / 3:
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


def test_of_guessing_models_no_class_is_named_more_often_than_the_level():
    rng = np.random.default_rng(1)
    draws = 1000
    named = 0
    for _ in range(draws):
        right = rng.binomial(40, 0.85, size=4)
        counts = np.diag(right)
        counts[np.arange(4), (np.arange(4) + 1) % 4] = 40 - right
        named += bool(names_missed(counts.tolist()))
    assert named / draws <= LEVEL


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


def test_a_harm_that_was_seen_stands_before_what_was_not_checked_wherever_a_list_has_it():
    order = [Caveat("not checked", Gravity.UNCHECKED), Caveat("few", Gravity.LIMITED), Caveat("missed", Gravity.HARM)]
    order += [Caveat("missed, too", Gravity.HARM), Caveat("unsound", Gravity.WRONG)]
    found = caveats_of(None, [partial(lambda each, _: each, each) for each in (*order, None)])
    assert [each.text for each in found] == ["unsound", "missed", "missed, too", "few", "not checked"]
