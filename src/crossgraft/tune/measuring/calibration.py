"""Temperature scaling: one number that makes probabilities mean what they say."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import root_scalar

from crossgraft.errors import DataError
from crossgraft.tasks import Task
from crossgraft.types import Targets

LogitMatrix = Float[np.ndarray, "num_samples num_classes"]
LOWEST_TEMPERATURE = 0.01
HIGHEST_TEMPERATURE = 100.0
_PRECISION = 1e-14


class Temperature(NamedTuple):
    """A fitted temperature.

    Attributes:
        value: Logits are divided by it; None where it was not fitted, and they stay as they are.
        likelihood_before: Negative log-likelihood an image on the rows it was fitted on, in nats, at temperature 1.
        likelihood_after: The same at ``value``.
        num_images: Number of images that it was fitted on.
        reason: Reason why there is no temperature, or None.
    """

    value: float | None
    likelihood_before: float
    likelihood_after: float
    num_images: int
    reason: str | None


def fit_temperature(logits: LogitMatrix, targets: Targets, *, task: Task) -> Temperature:
    """The temperature T with the smallest negative log-likelihood of softmax(logits / T), or of sigmoid(logits / T).

    In β = 1/T the likelihood is convex with the derivative mean_i (E_p[z] − z_y), so that its only root is the answer; it
    is bracketed in [0.01, 100] and found to 14 digits. Class and ranks of every image stay as they are.

    With several labels one temperature is shared by all: rare labels have too few images to fit one each, and one
    number cannot change which label of an image is the surest. It cannot remove a bias either, as positive weights leave
    one; thresholds can.

    Args:
        logits: (n, C) of rows that training did not see.
        targets: (n,) class of each image, or (n, C) with 0/1 for every label.
        task: What the targets are.

    Returns:
        The temperature, or the reason why there is none: every image is right, so that the likelihood only grows towards
        T = 0 and would make all probabilities 0 or 1; or the logits say nothing, which asks for T = ∞.

    Raises:
        DataError: No image, shapes that do not match, or logits that are not finite.

    Reference:
        Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural Networks, ICML 2017, sec. 4.2.
    """
    z = logits.astype(np.float64)
    shape = task.target_shape(z.shape)
    if len(z) == 0 or targets.shape != shape or not np.isfinite(z).all():
        raise DataError(
            f"A temperature needs finite logits (n, C) of at least one image and targets {shape}; got {z.shape} and "
            f"{targets.shape}."
        )
    likelihood, slope = task.likelihood(z, targets)
    before = likelihood(1.0)
    coldest, hottest = 1 / LOWEST_TEMPERATURE, 1 / HIGHEST_TEMPERATURE
    reason = _no_minimum(slope(hottest), slope(coldest), len(z))
    if reason is not None:
        return Temperature(None, before, before, len(z), reason)
    bracket = (hottest, coldest)
    root = float(root_scalar(slope, bracket=bracket, xtol=_PRECISION, rtol=4 * np.finfo(float).eps).root)
    return Temperature(1 / root, before, likelihood(root), len(z), None)


def _no_minimum(slope_at_hottest: float, slope_at_coldest: float, num_images: int) -> str | None:
    """Why the likelihood has no minimum between the bounds, or None."""
    if slope_at_hottest >= 0 or math.isnan(slope_at_hottest):
        return (
            f"The logits of {num_images} images say nothing about their classes, so that the likelihood asks for a temperature "
            f"above {HIGHEST_TEMPERATURE:g}; probabilities stay as they are."
        )
    if slope_at_coldest <= 0:
        return (
            f"All or nearly all of {num_images} images are right, so that the likelihood asks for a temperature below "
            f"{LOWEST_TEMPERATURE:g}, with probabilities of 0 and 1; they stay as they are. More validation images would help."
        )
    return None
