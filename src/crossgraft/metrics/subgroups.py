"""Which images belong to which value of a column, and how far two subgroups are apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Shaped

from crossgraft.metrics._intervals import CONFIDENCE
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.rows import GAP, MetricRow
from crossgraft.statistics import WithInterval, independent_difference

MOST_VALUES = 10
"""A column with more distinct values makes subgroups of few images each, where some gap is large by chance."""
FEWEST_IMAGES = 10
MISSING = "(missing)"


class Subgroup(NamedTuple):
    """The images with one value.

    Attributes:
        value: Value as shown.
        rows: Rows of the images.
        reason: Reason why nothing is measured there, or None.
    """

    value: str
    rows: Bool[np.ndarray, " num_samples"]
    reason: str | None


def subgroups_of(column: str, values: Shaped[np.ndarray, " num_samples"]) -> list[Subgroup] | str:
    """The subgroups of one column, in sorted order and missing values last; or why there are none.

    Numbers with more than 10 distinct values are cut at their tertiles.
    """
    numbers = _numbers(values)
    texts = np.array([_text(value) for value in values.tolist()], dtype=object)
    names = sorted({text for text in texts if text != MISSING})
    if numbers is not None and len(names) > MOST_VALUES:
        texts, names = _thirds(numbers)
    elif numbers is not None:
        names.sort(key=float)
    if len(names) > MOST_VALUES:
        return (
            f"The column {column} has {len(names)} distinct values; at most {MOST_VALUES} make subgroups. Group its values "
            "into fewer, or leave it out."
        )
    if len(names) < 2:
        return f"The column {column} has {'one value' if names else 'no value'}; subgroups need two."
    return [_subgroup(name, texts == name) for name in [*names, MISSING] if (texts == name).any()]


def confidence_of_each(num_subgroups: int) -> float:
    """Confidence at which the differences of all pairs of subgroups hold together with 95 % (Bonferroni).

    >>> confidence_of_each(2), round(confidence_of_each(3), 4)
    (0.95, 0.9833)
    """
    return 1 - (1 - CONFIDENCE) / math.comb(num_subgroups, 2)


def gap_row(rows: Sequence[MetricRow]) -> MetricRow | None:
    """The largest difference between two subgroups of one metric, or None with fewer than two values.

    The two were picked because they differ most, so that the interval of their difference alone would exclude 0 too often. Here
    the differences of all pairs (``independent_difference``) hold at once: the lower end is that of the two, the upper one the
    largest of any two, and the interval holds the largest true gap with 95 %. Where a subgroup has no interval, there is none.

    Args:
        rows: One per subgroup, with intervals of ``confidence_of_each``.
    """
    known = [row for row in rows if row.value is not None]
    if len(known) < 2:
        return None
    ordered = sorted(known, key=lambda row: -(row.value or 0.0))
    first, second = ordered[0], ordered[-1]
    gap = first._replace(
        metric=first.metric + GAP,
        value=(first.value or 0.0) - (second.value or 0.0),
        low=None,
        high=None,
        num_images=first.num_images + second.num_images,
        num_groups=None if first.num_groups is None else first.num_groups + (second.num_groups or 0),
        attribute_value=f"{first.attribute_value} − {second.attribute_value}",
        note="No interval: a subgroup has none.",
    )
    ends = [with_interval(row) for row in ordered]
    if gap.metric == "calibration_error" + GAP:
        return None  # too high by an amount that depends on the number of images
    if any(each is None for each in ends):
        return gap
    pairs = list(combinations([each for each in ends if each is not None], 2))
    low = independent_difference(*(pairs[len(ends) - 2])).low
    return gap._replace(low=low, high=max(independent_difference(*pair).high for pair in pairs), note=None)


def with_interval(row: MetricRow | MetricRecord) -> WithInterval | None:
    """The value with both ends, where all three are known."""
    if row.value is None or row.low is None or row.high is None:
        return None
    return WithInterval(row.value, row.low, row.high)


def _subgroup(name: str, rows: Bool[np.ndarray, " num_samples"]) -> Subgroup:
    number = int(rows.sum())
    reason = f"{number} images; a subgroup needs {FEWEST_IMAGES}." if number < FEWEST_IMAGES else None
    return Subgroup(name, rows, reason)


def _text(value: object) -> str:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _numbers(values: Shaped[np.ndarray, " num_samples"]) -> Float[np.ndarray, " num_samples"] | None:
    """The values as numbers, NaN where missing; None if one is not a number."""
    if values.dtype == bool:
        return None
    try:
        return np.array([math.nan if _text(value) == MISSING else float(value) for value in values.tolist()])
    except (TypeError, ValueError):
        return None


def _thirds(numbers: Float[np.ndarray, " num_samples"]) -> tuple[np.ndarray, list[str]]:
    """Text of each image and the names of the thirds, lowest first."""
    low, high = (float(cut) for cut in np.nanquantile(numbers, [1 / 3, 2 / 3], method="inverted_cdf"))
    names = [f"≤ {low:.4g}", f"> {low:.4g} to {high:.4g}", f"> {high:.4g}"]
    texts = np.full(len(numbers), MISSING, dtype=object)
    for name, rows in zip(names, (numbers <= low, (numbers > low) & (numbers <= high), numbers > high), strict=True):
        texts[rows] = name
    return texts, [name for name in names if (texts == name).any()]
