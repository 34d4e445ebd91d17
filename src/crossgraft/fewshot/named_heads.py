"""Heads by name: what they are called on pages, and class weights that know which class they belong to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


def refuse_unnamed(heads: Mapping[str, Any], class_names: Sequence[str]) -> None:
    """Refuse class weights that do not say which class they belong to.

    Args:
        heads: Name → head.
        class_names: Classes in the order of the data, all of which are in every task.

    Raises:
        UsageError: Weights are an array that has not a row for each class, or the order of the data is not that of the names as
            text, by which heads sort labels ("10" is before "9").
    """
    for name, head in heads.items():
        weights = getattr(head, "class_weights", None)
        if weights is None or isinstance(weights, Mapping | str | Path):
            continue
        if len(weights) != len(class_names) or list(class_names) != sorted(class_names):
            raise UsageError(
                f"class_weights of {name} is of type {type(weights).__name__}, which does not say which class a vector belongs "
                "to. Give label → vector, or a file with an array for each label."
            )
