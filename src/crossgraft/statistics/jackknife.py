"""Delete-one-block jackknife intervals.

A bootstrap of rows is invalid for scores of features: a row that is drawn twice becomes its own neighbour, and makes
the classes separable, so the interval can exclude its own estimate. Leaving blocks out creates neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int
from scipy import special

from crossgraft.errors import DataError
from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups, Replicates

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
    half_width = float(special.stdtrit(_degrees_of_freedom(variances, freedoms), 0.975)) * standard_error
    return Estimate(float(value), standard_error, float(value) - half_width, float(value) + half_width)


def _degrees_of_freedom(variances: Sequence[float], freedoms: Sequence[int]) -> float:
    """Degrees of freedom of a sum of independent variances by Satterthwaite, Biometrics Bulletin 1946."""
    total = sum(variances)
    if total == 0 or len(variances) == 1:
        return float(freedoms[0])
    shares = [variance / total for variance in variances]
    return 1 / sum(share**2 / freedom for share, freedom in zip(shares, freedoms, strict=True))
