"""The numbers of any result as rows of one tidy table: metric, value, interval, and the words that say what it is about."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

NAMED = ("metric", "value", "low", "high")


def numbers_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each number of the table that a result shows.

    A table with the columns ``metric`` (or ``score``) and ``value`` has one number in each row. Of any other table each numeric
    column is a metric, with ``NAME_low`` and ``NAME_high`` as its interval. All other columns say what the number is about.

    >>> import pandas as pd
    >>> numbers_of(pd.DataFrame({"model": ["a"], "logme": [0.5], "logme_low": [0.4], "logme_high": [0.7]}))
    [{'metric': 'logme', 'value': 0.5, 'low': 0.4, 'high': 0.7, 'model': 'a'}]
    """
    rows: list[dict[str, Any]] = frame.to_dict("records")
    for metric in ("metric", "score"):
        if {metric, "value"} <= {*frame.columns}:
            return [_row(str(row[metric]), row, "value", "low", "high", _words(row, numbers=True)) for row in rows]
    numeric = [str(name) for name in frame.select_dtypes("number").columns]
    ends = {f"{name}_{end}" for name in numeric for end in ("low", "high")} & {*numeric}
    metrics = [name for name in numeric if name not in ends]
    return [_row(name, row, name, f"{name}_low", f"{name}_high", _words(row)) for row in rows for name in metrics]


def _row(metric: str, row: dict[str, Any], value: str, low: str, high: str, words: dict[str, Any]) -> dict[str, Any]:
    return {"metric": metric, "value": _number(row[value]), "low": _number(row.get(low)), "high": _number(row.get(high)), **words}


def _number(value: Any) -> float | None:
    """A finite number; None where there is none."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _words(row: dict[str, Any], *, numbers: bool = False) -> dict[str, Any]:
    """Texts, and where numbers are no metrics of their own those, too: shots, whether a point was picked."""
    kinds = (str, bool, int, float) if numbers else (str, bool)
    return {
        str(name): value
        for name, value in row.items()
        if isinstance(value, kinds) and str(name) not in NAMED and not (isinstance(value, float) and not math.isfinite(value))
    }
