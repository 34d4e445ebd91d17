"""The mean of values that lean to one side, such as losses and regrets: few large ones carry it."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy import stats


def skewed_reach(
    totals: Float[np.ndarray, " num_units"], num_values: int, *, confidence: float = 0.95
) -> tuple[float, float]:
    """How far the interval of a mean reaches downwards and upwards from it: the farther of Student's and Hall's at each end.

    SE² = G/(G−1) Σ r² / n² over G units with r the sum of (value − mean) over the values of a unit. Student's ends are t SE away
    with G − 1 degrees of freedom. Hall takes the skewness γ of the r into account: with a = γ / √G and
    h(x) = 3/a [(1 + a (x − a/6))^(1/3) − 1] his ends are h(t) SE below and −h(−t) SE above.

    Args:
        totals: (G,) r of each unit; their sum is 0.
        num_values: n.
        confidence: Confidence of the interval.

    Returns:
        Both distances; 0 where all values are equal, which tells nothing of others.

    Reference:
        Hall, On the removal of skewness by transformation, J. R. Stat. Soc. B 54 (1992) 221.

    >>> [round(each, 2) for each in skewed_reach(np.array([-1.0, -1.0, -1.0, -1.0, 4.0]), 5)]
    [2.78, 15.71]
    """
    number = len(totals)
    square = float(np.mean(np.square(totals)))
    if number < 2 or square == 0:
        return 0.0, 0.0
    error = math.sqrt(number / (number - 1) * number * square) / num_values
    t = float(stats.t.ppf((1 + confidence) / 2, number - 1))
    skewness = float(np.mean(totals**3)) / square**1.5
    if abs(skewness) < 1e-6:  # h(x) is x − a/6 here, and 3/a is not to be trusted
        return t * error, t * error
    a = skewness / math.sqrt(number)

    def h(x: float) -> float:
        return 3 / a * (math.copysign(abs(1 + a * (x - a / 6)) ** (1 / 3), 1 + a * (x - a / 6)) - 1)

    return max(t, h(t)) * error, max(t, -h(-t)) * error
