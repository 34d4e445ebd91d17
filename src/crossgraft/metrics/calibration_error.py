"""Expected calibration error."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.errors import UsageError
from crossgraft.metrics._intervals import MetricValue, Units, no_interval
from crossgraft.metrics.rows import Classes, Marks
from crossgraft.tasks import Probabilities, task_of
from crossgraft.types import Groups

NUM_BINS = 15
NO_INTERVAL = "a calibration error of few images is too high by an amount that is not known; compare at the same number only"


def calibration_error(
    probabilities: Probabilities, targets: Classes | Marks, groups: Groups | None = None, *, num_bins: int = NUM_BINS
) -> MetricValue:
    """Expected calibration error (ECE): mean distance between confidence and share of right ones; smaller is better.

    The probability of the most probable class falls into one of 15 bins of equal width, ((b−1)/15, b/15].
    ECE = Σ_b (n_b/n) |mean confidence − share right|. With labels the probability of the label itself is binned, |mean
    probability − share with the label|, and the mean taken over labels.

    The estimate is too high by about Σ_b √(n_b) / n even for perfect probabilities, by an amount that depends on what is not
    known. So it has no interval; compare values at the same n only.

    Args:
        probabilities: (n, C) in [0, 1].
        targets: (n,) class of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        num_bins: Number of bins of equal width.

    Raises:
        DataError: There is no image.
        UsageError: No bin.

    Reference:
        Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML 2017, eq. 3.
    """
    if num_bins < 1:
        raise UsageError(f"num_bins is {num_bins}; there must be at least one bin.")
    units = Units(groups, len(probabilities))
    stated = task_of(targets).confidences(probabilities, targets)
    terms = np.mean([_signed_distances(confidence, right, num_bins) for confidence, right in stated], axis=0)
    return no_interval(float(terms.mean()), units, NO_INTERVAL)


def _signed_distances(
    confidence: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"], num_bins: int
) -> Float[np.ndarray, " n"]:
    """What each image adds to n · ECE: its confidence minus right or wrong, with the sign of its bin's sum."""
    edges = np.linspace(0, 1, num_bins + 1)
    bins = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, num_bins - 1)
    distances = confidence - right
    signs = np.sign(np.bincount(bins, weights=distances, minlength=num_bins))
    return signs[bins] * distances
