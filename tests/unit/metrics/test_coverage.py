"""Do 95 % intervals hold the truth in 95 % of repetitions? Standard error of a coverage over 600 rounds: 0.009."""

import numpy as np
import pytest
from scipy import stats

from crossgraft.metrics import auc, average_precision, balanced_accuracy

ROUNDS = 600


def coverage(metric, draw, truth, seed):
    rng = np.random.default_rng(seed)
    found = [metric(*draw(rng)) for _ in range(ROUNDS)]
    return np.mean([one.low <= truth <= one.high for one in found])


def normal_scores(truth, area, rng):
    """Scores of two normal distributions with this AUC."""
    return rng.normal(size=len(truth)) + np.sqrt(2) * stats.norm.ppf(area) * truth


def patients(num_groups, num_images, area):
    """One outcome a patient, half of them positive; 60 % of the variance is between patients."""

    def draw(rng):
        groups = np.repeat(np.arange(num_groups), num_images)
        truth = (groups < num_groups / 2).astype(int)
        between, within = rng.normal(size=num_groups)[groups], rng.normal(size=len(groups))
        scores = np.sqrt(0.6) * between + np.sqrt(0.4) * within + np.sqrt(2) * stats.norm.ppf(area) * truth
        return scores, truth, groups

    return draw


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_positive", "num_negative", "area"), [(20, 200, 0.8), (50, 50, 0.6), (50, 50, 0.95), (200, 200, 0.95)]
)
def test_auc_of_independent_images(num_positive, num_negative, area):
    truth = np.repeat([1, 0], [num_positive, num_negative])
    assert coverage(auc, lambda rng: (normal_scores(truth, area, rng), truth), area, 0) == pytest.approx(0.95, abs=0.03)


@pytest.mark.slow
def test_auc_of_patients_needs_the_groups():
    draw = patients(60, 5, 0.8)
    assert coverage(auc, draw, 0.8, 1) == pytest.approx(0.95, abs=0.03)
    assert coverage(auc, lambda rng: draw(rng)[:2], 0.8, 1) < 0.85


@pytest.mark.slow
def test_mean_auc_and_average_precision_of_classes():
    def draw(rng, num_samples=200):
        truth = rng.choice(3, p=[0.6, 0.3, 0.1], size=num_samples)
        return rng.normal(size=(num_samples, 3)) + 1.2 * np.eye(3)[truth], truth

    large = draw(np.random.default_rng(2), 400_000)
    assert coverage(auc, draw, auc(*large).value, 3) == pytest.approx(0.95, abs=0.03)
    assert coverage(average_precision, draw, average_precision(*large).value, 4) == pytest.approx(0.94, abs=0.03)


def recalls(num_images, shares):
    truth = np.repeat(np.arange(len(num_images)), num_images)

    def draw(rng):
        right = rng.random(len(truth)) < np.array(shares)[truth]
        return np.where(right, truth, (truth + 1) % len(num_images)), truth

    return draw


@pytest.mark.slow
@pytest.mark.parametrize(("num_images", "shares"), [((50, 50), (0.8, 0.8)), ((200, 20, 8), (0.95, 0.8, 0.6))])
def test_balanced_accuracy_of_independent_images(num_images, shares):
    draw = recalls(num_images, shares)
    assert coverage(balanced_accuracy, draw, np.mean(shares), 5) == pytest.approx(0.95, abs=0.03)


@pytest.mark.slow
def test_balanced_accuracy_of_patients_needs_the_groups():
    def draw(rng):
        groups = np.repeat(np.arange(60), 5)
        truth = (groups % 3 == 0).astype(int)
        right = rng.random(300) < rng.beta(4, 1, size=60)[groups]
        return np.where(right, truth, 1 - truth), truth, groups

    assert coverage(balanced_accuracy, draw, 0.8, 6) > 0.93
    assert coverage(balanced_accuracy, lambda rng: draw(rng)[:2], 0.8, 6) < 0.92
