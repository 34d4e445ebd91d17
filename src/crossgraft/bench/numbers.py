"""The numbers of any result as rows of one tidy table: metric, value, interval, and the words that say what it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

NAMED = ("metric", "value", "low", "high")


def numbers_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """One row for each number of the table that a result shows.

    A table with the columns ``metric`` (or ``score``) and ``value`` has one number in each row. Of any other table each numeric
    column is a metric, with ``NAME_low`` and ``NAME_high`` (or ``NAME low`` and ``NAME high``) as its interval. All other columns
    say what the number is about.

    >>> import pandas as pd
    >>> numbers_of(pd.DataFrame({"model": ["a"], "logme": [0.5], "logme_low": [0.4], "logme_high": [0.7]}))
    [{'metric': 'logme', 'value': 0.5, 'low': 0.4, 'high': 0.7, 'model': 'a'}]
    """
    rows: list[dict[str, Any]] = frame.to_dict("records")
    for metric in ("metric", "score"):
        if {metric, "value"} <= {*frame.columns}:
            return [_row(str(row[metric]), row, "value", "low", "high", _words(row, numbers=True)) for row in rows]
    numeric = [str(name) for name in frame.select_dtypes("number").columns]
    gap = {name: " " if f"{name} low" in numeric else "_" for name in numeric}
    ends = {f"{name}{gap[name]}{end}" for name in numeric for end in ("low", "high")}
    metrics = [name for name in numeric if name not in ends]
    return [
        _row(name, row, name, f"{name}{gap[name]}low", f"{name}{gap[name]}high", _words(row)) for row in rows for name in metrics
    ]


def with_primary(rows: Sequence[Mapping[str, Any]], primary: Mapping[str, object]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The rows with the number that stands for the result, and the metric and words by which it is found among them.

    Args:
        rows: Rows from ``numbers_of``.
        primary: As ``Result.primary`` says it; one that is in no row gets one, the first.

    >>> with_primary([{"metric": "place", "value": 1.0}], {"metric": "auc", "value": 0.9, "split": "test"})[1]
    {'metric': 'auc', 'split': 'test'}
    """
    words = {name: str(word) for name, word in primary.items() if name not in ("value", "low", "high")}
    found = list(map(dict[str, Any], rows))
    if words and not any(is_named_by(words, row) for row in found):
        ends = {name: _number(primary.get(name)) for name in ("value", "low", "high")}
        found.insert(0, {"metric": words["metric"], **ends, **{name: primary[name] for name in words if name != "metric"}})
    return found, words


def is_named_by(words: Mapping[str, str], row: Mapping[str, Any]) -> bool:
    """Whether a row is what these words say it is about."""
    return all(str(row.get(name)) == word for name, word in words.items())


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
