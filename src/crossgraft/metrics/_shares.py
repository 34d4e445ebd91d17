"""Shares of images that are right: an exact interval, at the number of independent images that groups are worth."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import special

from crossgraft.metrics._intervals import MetricValue, Part, PerImage, Rows, Units, mean_of_parts, unknown_part

PerGroup = Float[np.ndarray, " num_groups"]


def share_interval(share: float, number: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of ``number`` images, which need not be whole.

    It holds the truth at least as often as it says for every share and number, where Wilson's falls to 83 % at n = 10 and a
    share of 0.98.

    Reference:
        Clopper and Pearson, Biometrika 26 (1934) 404; Brown, Cai and DasGupta, Stat. Sci. 16 (2001) 101.
    """
    right, wrong = share * number, (1 - share) * number
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(special.betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return min(low, share), max(high, share)  # SciPy finds no quantile below 2e-12


def effective_number(rights: PerGroup, sizes: PerGroup, units: Units) -> float:
    """How many independent images the images of G groups are worth for the share that is right.

    n* = (n / d) (z / t)², after Korn and Graubard: d is how often larger the variance over groups (their jackknife) is than that
    of n independent images, at least 1; t is Student's quantile with G − 1 degrees of freedom and z the normal one. Few groups
    with a wrong image, or few with a right one, say little about d: with f such groups (by their sizes, (Σ k)² / Σ k²) it is
    ``drawn_towards`` D = Σ k² / n, which it is where each group is all right or all wrong.

    Args:
        rights: Sum over the images of each group.
        sizes: Images of each group.
        units: For the confidence.

    Reference:
        Korn and Graubard, Survey Methodology 24 (1998) 193; for f Kish, Survey Sampling (1965).
    """
    num_images, num_groups = float(sizes.sum()), len(sizes)
    share = float(rights.sum()) / num_images
    most = float(sizes @ sizes) / num_images
    design = 1.0
    if 0 < share < 1:
        without = (rights.sum() - rights) / (num_images - sizes)
        variance = (num_groups - 1) / num_groups * float(np.square(without - without.mean()).sum())
        design = max(1.0, variance * num_images / (share * (1 - share)))
    told = min(_kish(sizes[rights < sizes]), _kish(sizes[rights > 0]))
    design = drawn_towards(design, most, told)
    return num_images / design * (units.quantile(np.inf) / units.quantile(num_groups - 1)) ** 2


def drawn_towards(design: float, most: float, num_told: float) -> float:
    """d^(f/(f+2)) D^(2/(f+2)): a design effect d that f groups tell of, and the largest one, D; never below d.

    The constant 2 is this project's; it is among those that ``docs/log.md`` states.
    """
    share = 2 / (num_told + 2)
    return design ** (1 - share) * max(most, design) ** share


def _kish(sizes: PerGroup) -> float:
    return float(sizes.sum() ** 2 / (sizes @ sizes)) if len(sizes) else 0.0


def share_part(correct: PerImage | Rows, rows: Rows, units: Units, name: str) -> Part:
    """The share of ``rows`` that are right, with its interval."""
    right, number = correct[rows].astype(np.float64), int(rows.sum())
    value = float(right.mean())
    influence = np.where(rows, (correct - value) / number, 0.0)
    if units.index is None:
        return Part(value, *share_interval(value, number, units.confidence), influence, name, number)
    of_row = np.unique(units.index[rows], return_inverse=True)[1]
    sizes = np.bincount(of_row).astype(np.float64)
    if len(sizes) < 2:
        return unknown_part(value, influence, name, len(sizes))
    effective = effective_number(np.bincount(of_row, weights=right), sizes, units)
    return Part(value, *share_interval(value, effective, units.confidence), influence, name, len(sizes))


def share_of_images(correct: PerImage | Rows, groups: np.ndarray | None, *, confidence: float = 0.95) -> MetricValue:
    """Mean of right or wrong (or of shares in [0, 1]) with the interval of ``accuracy``, or the reason why it has none."""
    units = Units(groups, len(correct), confidence)
    return mean_of_parts([share_part(correct, np.ones(len(correct), dtype=bool), units, "")], units)
