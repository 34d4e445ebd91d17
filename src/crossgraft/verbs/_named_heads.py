"""Heads by name: what they are called on pages, and class weights that know which class they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from crossgraft.errors import UsageError
from crossgraft.report.paths import without_absolute_paths


def names_without_folders(names: Iterable[str]) -> dict[str, str]:
    """Name → the name that pages and tables show: of an absolute path in it the last part; numbered where two become one.

    >>> names_without_folders(["ncc", "tip_adapter:class_weights=/home/jane/a.npz"])["tip_adapter:class_weights=/home/jane/a.npz"]
    'tip_adapter:class_weights=…/a.npz'
    """
    shown: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for name in names:
        short = without_absolute_paths(name)
        seen[short] += 1
        shown[name] = short if seen[short] == 1 else f"{short} ({seen[short]})"
    return shown


def refuse_unnamed(name: str, head: Any) -> None:
    """Refuse class weights that do not say which class they belong to.

    Raises:
        UsageError: They are an array: heads learn names of classes, whose order as text is not that of the data ("10" < "9"), and
            every episode has other classes.
    """
    weights = getattr(head, "class_weights", None)
    if weights is not None and not isinstance(weights, Mapping | str | Path):
        raise UsageError(
            f"class_weights of {name} is of type {type(weights).__name__}, which does not say which class a vector belongs to. "
            "Give label → vector, or a file with an array for each label."
        )
