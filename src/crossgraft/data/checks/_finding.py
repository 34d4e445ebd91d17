"""What every check writes its findings with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from crossgraft.data.checks.record import FindingRecord
from crossgraft.records.base import Severity
from crossgraft.words.formatting import counted

MOST_LISTED = 1000
"""Groups of images that a finding lists; it counts all."""
_MOST_NAMED = 5


def finding(
    check: str,
    title: str,
    severity: Severity,
    text: str,
    *,
    advice: str = "",
    images: Sequence[np.ndarray] | Sequence[list[int]] | np.ndarray = (),
    reasons: Sequence[str] = (),
) -> FindingRecord:
    """A finding about ``images``: groups of row numbers from 0, which people see from 1; ``reasons`` one per group, or none."""
    listed = [[int(row) + 1 for row in group] for group in images[:MOST_LISTED]]
    return FindingRecord(
        check=check,
        title=title,
        severity=severity,
        text=text,
        advice=advice,
        num_groups=len(images),
        images=listed,
        reasons=list(reasons[:MOST_LISTED]),
    )


def listed(names: Sequence[str]) -> str:
    """Names in running text; of many, the first five and how many more."""
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def tallied(kinds: Iterable[str]) -> str:
    """How often each kind occurs, the most frequent first.

    >>> tallied(["train and val", "train and test", "train and val"])
    '2 in train and val, 1 in train and test'
    """
    counts = Counter(kinds)
    return ", ".join(f"{count} in {kind}" for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def pictures(number: int) -> str:
    """A count of pictures and its noun."""
    return counted(number, "picture")
