"""From which probability on a class or label is decided for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import root_scalar

from crossgraft.errors import DataError, UsageError
from crossgraft.metrics import sensitivity, specificity
from crossgraft.metrics.record import ThresholdRecord
from crossgraft.tasks import DEFAULT_THRESHOLD, Probabilities, Task
from crossgraft.types import Targets

LogitMatrix = Float[np.ndarray, "num_samples num_classes"]
LOWEST_TEMPERATURE = 0.01
HIGHEST_TEMPERATURE = 100.0
_PRECISION = 1e-14


class Temperature(NamedTuple):
    """A fitted temperature.

    Attributes:
        value: Logits are divided by it; None where it was not fitted, and they stay as they are.
        num_images: Number of images that it was fitted on.
        reason: Reason why there is no temperature, or None.
    """

    value: float | None
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
    slope = task.likelihood_slope(z, targets)
    coldest, hottest = 1 / LOWEST_TEMPERATURE, 1 / HIGHEST_TEMPERATURE
    reason = _no_minimum(slope(hottest), slope(coldest), len(z))
    if reason is not None:
        return Temperature(None, len(z), reason)
    bracket = (hottest, coldest)
    root = float(root_scalar(slope, bracket=bracket, xtol=_PRECISION, rtol=4 * np.finfo(float).eps).root)
    return Temperature(1 / root, len(z), None)


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


_ROUNDING = 1e-9


@dataclass(frozen=True)
class ThresholdRule:
    """How a threshold is chosen.

    Args:
        kind: ``youden`` makes sensitivity + specificity largest; the others reach a target and make the other side as
            large as that allows.
        target: In (0, 1]; None for ``youden``.
    """

    kind: Literal["youden", "sensitivity", "specificity"]
    target: float | None = None

    def __str__(self) -> str:
        return self.kind if self.target is None else f"{self.kind}:{self.target:g}"


def parse_threshold_rule(text: str) -> ThresholdRule:
    """Read ``youden``, ``sensitivity:0.95`` or ``specificity:0.9``.

    Raises:
        UsageError: Anything else, or a target outside (0, 1].

    >>> parse_threshold_rule("sensitivity:0.95").target
    0.95
    """
    kind, colon, number = text.strip().partition(":")
    try:
        target = float(number) if colon else None
    except ValueError:
        target = math.nan
    if kind == "youden" and target is None:
        return ThresholdRule("youden")
    if kind in ("sensitivity", "specificity") and target is not None and 0 < target <= 1:
        return ThresholdRule("sensitivity" if kind == "sensitivity" else "specificity", target)
    raise UsageError(
        f"{text!r} is no rule for thresholds. Write youden, sensitivity:0.95 or specificity:0.9, with a target in (0, 1]."
    )


def fit_thresholds(
    probabilities: Probabilities,
    targets: Targets,
    *,
    task: Task,
    class_names: Sequence[str],
    rule: str | ThresholdRule = "youden",
) -> list[ThresholdRecord]:
    """Thresholds by ``rule`` on rows that training did not see, after calibration.

    A threshold lies halfway between two neighbouring probabilities that occur, so that rounding elsewhere flips no
    decision. Between equally good ones the lowest is taken for ``youden``, which finds more. A threshold that would call
    every image positive, or none, is no threshold.

    Args:
        probabilities: (n, C) in [0, 1].
        targets: (n,) class of each image for ``binary``, (n, C) with 0/1 for ``multi-label``.
        task: ``binary`` gives one threshold, of the last class; ``multi-label`` one per label.
        class_names: Names of the C classes or labels.
        rule: ``youden``, ``sensitivity:0.95``, ``specificity:0.9`` …

    Returns:
        One threshold in (0, 1] (``binary``), or one per label in their order, None where there is none and 0.5 is used, with
        what it gives on these rows, which flatters it. Pass them through ``threshold_values`` to
        ``decide`` and ``evaluate_predictions``.

    Raises:
        UsageError: The rule cannot be read, or the task is ``multi-class``.
        DataError: Shapes that do not match, or probabilities that are not in [0, 1].

    Reference:
        Youden, Cancer 3 (1950) 32.
    """
    chosen = parse_threshold_rule(rule) if isinstance(rule, str) else rule
    columns = task.threshold_columns(len(class_names))
    if not columns:
        raise UsageError("Thresholds are for two classes or for labels; one of several classes is decided by the largest.")
    if probabilities.shape != (len(targets), len(class_names)) or not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise DataError(
            f"Thresholds need probabilities in [0, 1] of shape ({len(targets)}, {len(class_names)}); got {probabilities.shape}."
        )
    return [
        _threshold(probabilities[:, column], truth, chosen, class_names[column])
        for column in columns
        for truth in [task.members(targets, column).astype(np.int64)]
    ]


def threshold_values(thresholds: Sequence[ThresholdRecord]) -> Float[np.ndarray, " num_labels"]:
    """The numbers to decide with: 0.5 where there is no threshold."""
    return np.array([DEFAULT_THRESHOLD if one.threshold is None else one.threshold for one in thresholds])


def _threshold(
    probability: Float[np.ndarray, " n"], truth: Int[np.ndarray, " n"], rule: ThresholdRule, class_name: str
) -> ThresholdRecord:
    value = _best_cut(probability.astype(np.float64), truth, rule)
    is_fitted = not isinstance(value, str)
    decided = (probability >= value).astype(np.int64) if is_fitted else None
    return ThresholdRecord(
        class_name=class_name,
        threshold=value if is_fitted else None,
        rule=str(rule),
        fitted_on=f"{len(truth)} validation rows",
        num_positive=int(truth.sum()),
        sensitivity=None if decided is None else sensitivity(decided, truth).value,
        specificity=None if decided is None else specificity(decided, truth).value,
        reason=None if is_fitted else value,
    )


def _best_cut(probability: Float[np.ndarray, " n"], truth: Int[np.ndarray, " n"], rule: ThresholdRule) -> float | str:
    """The threshold, or why there is none."""
    num_positive = int(truth.sum())
    num_negative = len(truth) - num_positive
    if num_positive == 0 or num_negative == 0:
        return f"A threshold needs images with and without the class; {num_positive} of {len(truth)} have it."
    levels, level = np.unique(probability, return_inverse=True)
    if len(levels) < 2:
        return f"All {len(truth)} images have the same probability {levels[0]:g}."
    positives, negatives = (np.bincount(level, weights=truth == side).astype(np.int64) for side in (1, 0))
    detected = num_positive - np.cumsum(positives)[:-1]  # with the cut above level 0, 1, …
    spared = np.cumsum(negatives)[:-1]
    if rule.kind == "youden":
        gains = detected * num_negative + spared * num_positive  # whole numbers: ties are exact
        cut = int(gains.argmax())
        if gains[cut] <= num_positive * num_negative:
            return "No threshold is better than chance."
    else:
        target = rule.target or 0.0
        reached, number = (detected, num_positive) if rule.kind == "sensitivity" else (spared, num_negative)
        enough = np.flatnonzero(reached >= target * number - _ROUNDING)
        if len(enough) == 0:
            everything = "every" if rule.kind == "sensitivity" else "no"
            return f"A {rule.kind} of {target:g} is reached only where {everything} image is called positive."
        cut = int(enough[-1] if rule.kind == "sensitivity" else enough[0])
    middle = float(levels[cut] + (levels[cut + 1] - levels[cut]) / 2)
    return middle if middle > levels[cut] else float(levels[cut + 1])
