"""The first lesson of the demo: a classifier looks better when it is tested on writers it has seen."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.data.splits import k_folds
from crossgraft.demo.record import SplitComparison
from crossgraft.errors import DataError
from crossgraft.metrics import accuracy, accuracy_difference
from crossgraft.statistics import Estimate

NUM_FOLDS = 5


def compare_splits(digits: Dataset, *, seed: int) -> SplitComparison:
    """Logistic regression on pixels, cross-validated with shuffled folds and with folds of whole writers.

    Both intervals, and that of the difference, count writers rather than images: images of one writer are
    alike.

    Raises:
        DataError: The images have no writers, or too few for the folds.
    """
    if digits.groups is None:
        raise DataError("Folds of whole writers need the writer of each image.")
    shuffled = _cross_validate(digits, None, seed=seed)
    grouped = _cross_validate(digits, digits.groups, seed=seed)
    first, second = accuracy(shuffled, digits.groups), accuracy(grouped, digits.groups)
    return SplitComparison(
        probe="logistic regression on pixels",
        shuffled_accuracy=first.value,
        shuffled_low=first.low,
        shuffled_high=first.high,
        grouped_accuracy=second.value,
        grouped_low=second.low,
        grouped_high=second.high,
        explanation=explain(first.value, second.value, accuracy_difference(shuffled, grouped, digits.groups)),
    )


def explain(shuffled: float, grouped: float, difference: Estimate) -> str:
    """What the two accuracies mean, as far as the interval of their difference supports it."""
    measured = (
        f"The same classifier on the same images: accuracy {shuffled:.3f} when images are shuffled into the "
        f"folds, so that each writer is on both sides, and {grouped:.3f} when every test writer is new. The "
        f"difference is {difference.value:+.3f}, 95 % interval [{difference.low:+.3f}, "
        f"{difference.high:+.3f}]"
    )
    if difference.low > 0:
        return f"{measured}: shuffled folds promise more than new writers give. Patients are like writers here."
    return f"{measured}: with so few writers, this shows no advantage of shuffled folds."


def _cross_validate(digits: Dataset, groups: np.ndarray | None, *, seed: int) -> Bool[np.ndarray, " num_samples"]:
    """Whether each image is classified correctly when the fold that holds it is the test fold."""
    pixels = _pixels(digits)
    correct = np.zeros(len(digits), dtype=bool)
    with limit_threads(1):
        for split in k_folds(digits.targets, num_folds=NUM_FOLDS, groups=groups, seed=seed):
            train, test = split.rows("train"), split.rows("test")
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            probe.fit(pixels[train], digits.targets[train])
            correct[test] = probe.predict(pixels[test]) == digits.targets[test]
    return correct


def _pixels(digits: Dataset) -> Float[np.ndarray, "num_samples num_pixels"]:
    return np.stack([digits.read(row).ravel() / 255 for row in range(len(digits))])
