"""How exactly val measures: the standard error of a metric from the finite number of images, and what models share of it."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from crossgraft.metrics.words import metric_name_in_words
from crossgraft.rank.published.tables import published_tables
from crossgraft.tasks import Task
from crossgraft.types import Targets

TYPICAL = 0.8
"""Value at which val is judged before anything was measured."""
TOO_LARGE = 0.1
"""Standard error of one value from which on val separates nothing: two models would have to differ by 0.28."""
_COUNTED = ("accuracy", "balanced_accuracy", "f1", "average_precision")


def standard_error(metric: str, value: float, targets: Targets, num_classes: int, task: Task) -> float | None:
    """Standard error of a value on val, with images as independent.

    The AUC of each class against the others by Hanley and McNeil (Radiology 143 (1982) 29), their mean with the classes as
    independent; shares by the binomial distribution, balanced ones with the mean variance over classes. Models are measured on
    the same images, so that differences between them are known better than this says: see ``shared_share``. A value at the
    end of its range is taken as half an image away from it, so that no value is without error.

    Args:
        metric: Name of the metric.
        value: Its value, in [0, 1].
        targets: Targets of val.
        num_classes: Classes or labels.
        task: Kind of the targets.

    Returns:
        None where the metric has none, as the loss, or where a class is missing.
    """
    marks = np.asarray(task.marks(targets, num_classes), dtype=bool)
    counts = marks.sum(axis=0)
    if metric == "auc":
        pairs = [(int(count), len(marks) - int(count)) for count in counts]
        if any(min(pair) == 0 for pair in pairs):
            return None
        variances = [_hanley_mcneil(_inside(value, min(pair)), *pair) for pair in pairs]
        independent = 1 if num_classes == 2 and task.partitions else len(pairs)  # two classes have one AUC
        return math.sqrt(float(np.mean(variances)) / independent)
    if metric not in _COUNTED or len(marks) == 0:
        return None
    if metric == "accuracy":
        inside = _inside(value, len(marks))
        return math.sqrt(inside * (1 - inside) / len(marks))
    if counts.min() == 0:
        return None
    shares = np.array([_inside(value, int(count)) for count in counts])
    return math.sqrt(float(np.mean(shares * (1 - shares) / counts)) / len(counts))


def _inside(value: float, number: int) -> float:
    """At least half an image away from 0 and from 1."""
    return min(max(value, 0.5 / number), 1 - 0.5 / number)


def too_small(metric: str, error: float | None, num_val: int) -> str | None:
    """Why val tells no two models apart, in words; None where it does."""
    if error is None and metric != "loss":
        return f"The {num_val} val images lack a class, so that they tell no two models apart."
    if error is None or error <= TOO_LARGE:
        return None
    return (
        f"The {num_val} val images tell no two models apart: {metric_name_in_words(metric)} of one model has a standard error of "
        f"about {error:.2f}."
    )


def _hanley_mcneil(auc: float, positives: int, negatives: int) -> float:
    """Variance of an AUC, eq. 1 there; with Q1 = A/(2 − A) and Q2 = 2A²/(1 + A)."""
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (positives - 1) * (q1 - auc**2) + (negatives - 1) * (q2 - auc**2)
    return max(spread, 0.0) / (positives * negatives)


NUM_VALIDATION = {"shift": 200}
"""Val images of a target, for each table with results on val."""


@cache
def shared_share(without_group: str | None = None) -> float:
    """How much of the error of a value on val networks share, because all are measured on the same images: ρ in [0, 0.95].

    With D_m the difference between val and test of network m on one target, b² the mean binomial variance of val, and errors on
    test, which has many more images, left out,

        ρ = 1 − Var_m(D)/b²,

    the variance robust (from the median absolute deviation), because of some networks val and test differ by more than chance. ρ
    is the median over the published targets that have both, related ones as one. What is shared moves all networks alike and
    decides nothing; √(1 − ρ) of the error is each network's own.

    Args:
        without_group: Targets of a group that it is learned without.
    """
    groups: dict[str, list[float]] = {}
    for table in published_tables():
        if table.validation is None or table.name not in NUM_VALIDATION:
            continue
        for val, test, group in zip(table.validation, table.results, table.groups, strict=True):
            if group != without_group:
                groups.setdefault(group, []).append(_share(val, test, NUM_VALIDATION[table.name]))
    return float(np.clip(np.median([np.mean(shares) for shares in groups.values()]), 0.0, 0.95))


def _share(val: np.ndarray, test: np.ndarray, num_val: int) -> float:
    known = np.isfinite(val) & np.isfinite(test)
    difference = (val - test)[known]
    spread = 1.4826 * float(np.median(np.abs(difference - np.median(difference))))
    return 1 - spread**2 / (float(np.mean(val[known] * (1 - val[known]))) / num_val)
