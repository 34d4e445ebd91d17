"""The terms of a distillation over its steps: all of them as a table, their means as what a page draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from crossgraft.distil.domains import DistilledStep
from crossgraft.distil.record import DistilledStepsRecord
from crossgraft.records.base import Reference

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 200
"""Points of a curve on the page."""

REFERENCE = Reference(
    key="URL",
    text="Li, Liu and Bilen, Universal Representation Learning from Multiple Domains for Few-shot Classification, ICCV 2021.",
)
_TERMS = ("cross_entropy", "dissimilarity", "divergence")


def summarise(history: Sequence[DistilledStep], *, most_rows: int = MOST_ROWS) -> list[DistilledStepsRecord]:
    """Means over windows of equally many steps; the last one may be shorter."""
    width = max(1, math.ceil(len(history) / most_rows))
    windows = [history[first : first + width] for first in range(0, len(history), width)]
    return [
        DistilledStepsRecord(
            last_step=steps[-1].step,
            **{
                term: np.mean([list(getattr(step, term).values()) for step in steps], axis=0).tolist()
                for term in _TERMS
            },
        )
        for steps in windows
    ]


def history_frame(history: Sequence[DistilledStep]) -> pd.DataFrame:
    """One row per step and domain."""
    import pandas as pd

    rows = [
        {"step": step.step, "domain": domain, **{term: getattr(step, term)[domain] for term in _TERMS}}
        for step in history
        for domain in step.cross_entropy
    ]
    return pd.DataFrame(rows, columns=["step", "domain", *_TERMS])
