"""How good probabilities are, right and sharp at once: Brier score and negative log-likelihood."""

from __future__ import annotations

import numpy as np

from crossgraft.errors import NotApplicable
from crossgraft.metrics._columns import Classes, Marks, as_columns
from crossgraft.metrics._intervals import MetricValue, Units, mean_over_images
from crossgraft.tasks import Probabilities, task_of
from crossgraft.types import Groups


def brier_score(probabilities: Probabilities, targets: Classes | Marks, groups: Groups | None = None) -> MetricValue:
    """Mean squared distance of probabilities from what was true; smaller is better.

    Several classes: Σ_c (p_ic − y_ic)², from 0 to 2 as Brier wrote it. Two classes: (p_i1 − y_i)², half of that. Labels: the
    mean over labels of (p_il − y_il)². The interval is the mean ± t · SE over images or groups.

    Args:
        probabilities: (n, C) in [0, 1].
        targets: (n,) class of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: There is no image.

    Reference:
        Brier, Monthly Weather Review 78 (1950) 1.
    """
    squares = np.square(probabilities - as_columns(targets, probabilities.shape[1]))
    task = task_of(targets, probabilities.shape[1])
    losses = task.squared_error(squares)
    return mean_over_images(losses, Units(groups, len(losses)), largest=task.largest_squared_error)


def negative_log_likelihood(
    probabilities: Probabilities, targets: Classes | Marks, groups: Groups | None = None
) -> MetricValue:
    """Mean of −ln of the probability of what was true, in nats; smaller is better. Labels: the mean over labels.

    Args:
        probabilities: (n, C) in [0, 1]; make them in double precision, or they round to 0.
        targets: (n,) class of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: There is no image.
        NotApplicable: What was true had probability 0 for some image, so that the mean is infinite.
    """
    chances = task_of(targets).chances(probabilities, as_columns(targets, probabilities.shape[1]))
    impossible = int((chances <= 0).any(axis=1).sum())
    if impossible:
        raise NotApplicable(
            f"The negative log-likelihood is infinite: {impossible} of {len(chances)} images had probability 0 of what was true."
        )
    return mean_over_images(-np.log(chances).mean(axis=1), Units(groups, len(chances)))
