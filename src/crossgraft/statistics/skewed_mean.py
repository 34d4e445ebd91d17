"""The mean of values that lean to one side, such as losses and regrets: few large ones carry it."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy import special


def skewed_reach(
    totals: Float[np.ndarray, " num_units"],
    num_values: int,
    *,
    confidence: float = 0.95,
    room: tuple[float, float] = (math.inf, math.inf),
) -> tuple[float, float]:
    """How far the interval of a mean reaches downwards and upwards from it: the farthest of three at each end.

    SE² = G/(G−1) Σ r² / n² over G units with r the sum of (value − mean) over the values of a unit. Student's ends are t SE away
    with G − 1 degrees of freedom. Hall takes the skewness γ of the r into account: with a = γ / √G and
    h(x) = 3/a [(1 + a (x − a/6))^(1/3) − 1] his ends are h(t) SE below and −h(−t) SE above. Where values end at a limit and the
    mean is D from it, they lean away from it: Student's interval of log D ends D (exp(t SE / D) − 1) from the mean on the other
    side. Every end is at most at the limit of its side.

    Args:
        totals: (G,) r of each unit; their sum is 0.
        num_values: n.
        confidence: Confidence of the interval.
        room: How far the mean is from the smallest and from the largest value that is possible.

    Returns:
        Both distances; 0 where all values are equal, which tells nothing of others.

    Reference:
        Hall, On the removal of skewness by transformation, J. R. Stat. Soc. B 54 (1992) 221.

    >>> [round(each, 2) for each in skewed_reach(np.array([-1.0, -1.0, -1.0, -1.0, 4.0]), 5)]
    [2.78, 8.85]
    """
    number = len(totals)
    largest = float(np.abs(totals).max(initial=0.0))
    if number < 2 or largest == 0:
        return 0.0, 0.0
    scale = largest if largest < _SMALL else 1.0
    totals = totals / scale
    square = float(np.mean(np.square(totals)))
    error = scale * math.sqrt(number / (number - 1) * number * square) / num_values
    t = float(special.stdtrit(number - 1, (1 + confidence) / 2))
    skewness = float(np.mean(totals**3)) / square**1.5
    a = skewness / math.sqrt(number)

    def h(x: float) -> float:
        if abs(a) < 1e-6:  # 3/a is not to be trusted
            return x
        return 3 / a * (math.copysign(abs(1 + a * (x - a / 6)) ** (1 / 3), 1 + a * (x - a / 6)) - 1)

    below, above = max(t, h(t)) * error, max(t, -h(-t)) * error
    down, up = room
    if 0 < up < math.inf:
        below = max(below, up * math.expm1(min(t * error / up, _LARGEST)))
    if 0 < down < math.inf:
        above = max(above, down * math.expm1(min(t * error / down, _LARGEST)))
    return min(below, down), min(above, up)


_SMALL = 1e-90
"""The cube of smaller numbers is 0 in floats."""
_LARGEST = 50.0
"""exp of it is beyond every limit."""
