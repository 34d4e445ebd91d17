"""The part that a fine-tuning gave to each row of data that have no split of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from crossgraft.data.listing import list_rows, tell_of_listing
from crossgraft.data.rows import ImageRows
from crossgraft.data.sources import SourceRequest, SourceRows
from crossgraft.data.splits import PARTS, Part, Split
from crossgraft.errors import CrossgraftError, DataError, OtherImagesError
from crossgraft.progress import Reporter

_NOT_THOSE = "have no split of their own, and are not what the model was fine-tuned on"
_ADVICE = "Leave out --use-split to predict every image."

FindSplit = Callable[[], Split | None]
"""Reads the split of the run when it is needed; None: the model was passed on without it."""


class ListedPart(NamedTuple):
    """Rows that were listed, and which of them are used.

    Attributes:
        source: Name of the source.
        rows: Listed rows.
        chosen: Numbers of those that are used.
        used: What they are, in words.
    """

    source: str
    rows: SourceRows
    chosen: np.ndarray
    used: str


def list_part(
    location: object, request: SourceRequest, reporter: Reporter, find_split: FindSplit | None = None
) -> ListedPart:
    """The rows of ``request.use_split``: of the data's own split, or else of the split of the run.

    Args:
        location: What ``list_rows`` takes.
        request: What is asked for; None as ``use_split``: all rows.
        reporter: Reporter of notices.
        find_split: Finds the split of the run that made the model; None: there is no run.

    Raises:
        DataError: There are no such rows; or the split of the run is missing, damaged, or of other data or groups.
        UsageError: As of ``list_rows``.
    """
    part = request.use_split
    if find_split is None or part not in PARTS:
        return _own(*list_rows(location, request, reporter), part)
    failed: DataError | None = None
    try:
        source, rows = list_rows(location, request, reporter)
        if rows.splits is not None:
            return _own(source, rows, part)
    except DataError as error:  # most say that there is no such split
        failed = error
    labelled = replace(request, use_split=None, needs_labels=True)  # as the fine-tuning listed them
    try:
        source, rows = list_rows(location, labelled, Reporter(quiet=True))
    except CrossgraftError as error:
        raise failed or DataError(f"The data {_NOT_THOSE}: {error} {_ADVICE}") from error
    if failed is not None:
        if rows.splits is not None:
            raise failed
        tell_of_listing(rows, reporter)
    return ListedPart(source, rows, *part_of_run(rows, part, find_split()))


def _own(source: str, rows: SourceRows, part: str | None) -> ListedPart:
    return ListedPart(source, rows, np.arange(len(rows.labels)), "all rows" if part is None else f"split {part}")


def part_of_run(rows: SourceRows | ImageRows, part: Part, split: Split | None) -> tuple[np.ndarray, str]:
    """Numbers of the rows that had this part in a run, and what they are in words.

    Raises:
        DataError: There is no split, it is one of other data or other groups, or it leaves the part empty.
    """
    if split is None:
        raise DataError(
            f"{rows.name} has no split of its own, and there is no split.json beside the model: it was passed on without its "
            f"run, or is one of several folds. So its {part} rows are not known. Give the whole run directory of crossgraft "
            f"tune, or leave out --use-split to predict every image."
        )
    try:
        split.refuse_other_rows(rows)
    except OtherImagesError as error:
        raise OtherImagesError(f"The images of {rows.name} {_NOT_THOSE}: {error} {_ADVICE}") from error
    chosen = split.rows(part)
    if chosen.size == 0:
        raise DataError(f"The split of the run has no {part} rows ({split.method}). {_ADVICE}")
    return chosen, f"{part} rows of split {rows.fingerprint_of_split(split.rows('train'))}, that of the fine-tuning"
