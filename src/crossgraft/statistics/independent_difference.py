"""The difference of two values that were measured on different images, each known with its interval."""

from __future__ import annotations

import math
from typing import NamedTuple


class WithInterval(NamedTuple):
    """A value and the ends of its interval."""

    value: float
    low: float
    high: float


def independent_difference(first: WithInterval, second: WithInterval) -> WithInterval:
    """First minus second: low = a − b − √((a − low_a)² + (high_b − b)²), high alike.

    The interval has the confidence of the two that are given. It is only as good as they are, and takes them as independent.

    Reference:
        Newcombe, Stat. Med. 17 (1998) 873, method 10; for any statistic Zou and Donner, Stat. Med. 27 (2008) 1693.

    >>> difference = independent_difference(WithInterval(0.9, 0.86, 0.94), WithInterval(0.8, 0.77, 0.83))
    >>> [round(each, 3) for each in difference]
    [0.1, 0.05, 0.15]
    """
    a, low_a, high_a = first
    b, low_b, high_b = second
    return WithInterval(a - b, a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b))
