"""Delete-one-block jackknife intervals.

A bootstrap of rows is invalid for scores of features: a row that is drawn twice becomes its own neighbour, and makes
the classes separable, so the interval can exclude its own estimate. Leaving blocks out creates neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import special, stats

from crossgraft.errors import DataError
from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups, Replicates


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


NUM_BLOCKS = 20
MIN_BLOCKS = 3

Block = Int[np.ndarray, " _"]  # no name: blocks differ in size


class Estimate(NamedTuple):
    """A value with its standard error and 95 % interval."""

    value: float
    standard_error: float
    low: float
    high: float

    @property
    def contains_zero(self) -> bool:
        """Whether the interval contains 0."""
        return self.low <= 0 <= self.high


def jackknife_blocks(
    targets: ClassIndices, groups: Groups | None = None, *, num_blocks: int = NUM_BLOCKS, seed: int = 0
) -> list[Block]:
    """Partition the rows into blocks that are left out one at a time.

    Whole groups stay together, dealt to the smallest block so far, largest group first; without groups the rows of each
    class are dealt out in turn, so that every block holds nearly the same share of each class.

    Args:
        targets: Class index of each row.
        groups: Patient (or writer, lesion …) of each row.
        num_blocks: Wanted number; never more than there are groups or rows.
        seed: Random seed of the order in which rows or groups are dealt.

    Returns:
        Row indices of each block, sorted; together they hold every row once.

    Raises:
        DataError: Fewer than three blocks are possible, so that no standard error can be estimated.
    """
    rng = generator(seed, "jackknife blocks")
    units = np.arange(len(targets)) if groups is None else np.unique(groups, return_inverse=True)[1]
    num_units = int(units.max()) + 1 if len(units) else 0
    num_blocks = min(num_blocks, num_units)
    if num_blocks < MIN_BLOCKS:
        what = "images" if groups is None else "groups"
        raise DataError(f"A jackknife interval needs at least {MIN_BLOCKS} {what}; there are {num_units}.")
    block_of_unit = np.empty(num_units, dtype=np.int64)
    order = rng.permutation(num_units)
    if groups is None:
        order = order[np.argsort(targets[order], kind="stable")]
        block_of_unit[order] = np.arange(num_units) % num_blocks
    else:
        sizes = np.bincount(units)
        filled = np.zeros(num_blocks, dtype=np.int64)
        for unit in order[np.argsort(-sizes[order], kind="stable")]:
            block_of_unit[unit] = filled.argmin()
            filled[block_of_unit[unit]] += sizes[unit]
    block_of_row = block_of_unit[units]
    return [np.flatnonzero(block_of_row == block) for block in range(num_blocks)]


def jackknife_interval(
    value: float, replicates: Replicates | Sequence[float], *, redrawn: Sequence[Sequence[float]] = ()
) -> Estimate:
    """95 % interval of an estimate from its leave-one-block-out values.

    SE² = (B−1)/B · Σ_b (θ₍b₎ − mean θ₍·₎)², interval = value ± t₍B−1, 0.975₎ · SE. What is drawn with a seed adds the variance
    s² of its values over R seeds; the degrees of freedom are then Satterthwaite's, (SE² + Σs²)² / (SE⁴/(B−1) + Σ s⁴/(R−1)).

    Args:
        value: The estimate on all rows.
        replicates: The estimate without block b, for each of B ≥ 2 blocks, all with one seed.
        redrawn: For each independent term of the estimate that is drawn with a seed: its values on all rows with R ≥ 2 seeds.

    Example:
        The jackknife of a mean gives the usual standard error s/√n:

        >>> x = np.array([1.0, 2.0, 4.0, 7.0])
        >>> round(jackknife_interval(x.mean(), [np.delete(x, i).mean() for i in range(4)]).standard_error, 6)
        1.322876
    """
    theta = np.asarray(replicates, dtype=np.float64)
    num_blocks = len(theta)
    variances = [(num_blocks - 1) / num_blocks * float(np.sum((theta - theta.mean()) ** 2))]
    variances += [float(np.var(values, ddof=1)) for values in redrawn]
    freedoms = [num_blocks - 1, *(len(values) - 1 for values in redrawn)]
    standard_error = math.sqrt(sum(variances))
    half_width = float(stats.t.ppf(0.975, _degrees_of_freedom(variances, freedoms))) * standard_error
    return Estimate(float(value), standard_error, float(value) - half_width, float(value) + half_width)


def _degrees_of_freedom(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    """Degrees of freedom of a sum of independent variances by Satterthwaite, Biometrics Bulletin 1946."""
    total = sum(variances)
    if total == 0 or len(variances) == 1:
        return float(freedoms[0])
    shares = [variance / total for variance in variances]
    return 1 / sum(share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True))
