"""Known results: what fine-tuning gave, kept so that later rankings can start from it.

One JSON line a result in a file of the user. No path and no patient id is stored: a target has a name and the fingerprint of
its images.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from crossgraft.errors import DataError
from crossgraft.rank.known_record import KnownResult
from crossgraft.running.json_lines import JsonLines, user_file

FILE_NAME = "known_results.jsonl"
_LINES = JsonLines(KnownResult, "the known results", "a known result", key=lambda row: row.key)


def known_results_file(file: Path | None = None) -> Path:
    """``file``, else ``$CROSSGRAFT_CACHE/known_results.jsonl``, else the same name in the user's data folder."""
    return user_file(FILE_NAME) if file is None else file


def read_known_results(file: Path | None = None) -> list[KnownResult]:
    """Every result that was added, oldest first; none when the file is not there yet.

    Raises:
        DataError: A line is damaged or of a newer crossgraft; the message names file and line.
    """
    return _LINES.read(known_results_file(file))


def add_known_results(rows: Iterable[KnownResult], file: Path | None = None) -> int:
    """Add results; one with the same model, weights, source, target, protocol and metric replaces the older one.

    Args:
        rows: What fine-tuning gave.
        file: Another file than the user's.

    Returns:
        How many results the file holds now.

    Raises:
        DataError: A value is not finite, or the file is damaged (nothing is written then).
        StorageError: The file could not be written, or another process holds it for a minute; the old file stays.
    """
    new = list(rows)
    for row in new:
        if not math.isfinite(row.value):
            raise DataError(f"The result of {row.model} on {row.target} is {row.value}; it must be a finite number.")
    return len(_LINES.add(new, known_results_file(file)))
