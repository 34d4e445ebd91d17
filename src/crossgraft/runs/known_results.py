"""Known results: what fine-tuning gave, kept so that later rankings can start from it.

One JSON line a result in a file of the user; adding is one atomic replacement under a lock, so that two commands at once
lose nothing. No path and no patient id is stored: a target has a name and the fingerprint of its images.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

import platformdirs
from filelock import FileLock, Timeout
from pydantic import ValidationError

from crossgraft.errors import DataError, StorageError
from crossgraft.paths import read_whole
from crossgraft.records import KnownResult
from crossgraft.storage.atomic import describe_os_error, write_atomically

FILE_NAME = "known_results.jsonl"
LOCK_SECONDS = 60.0
_ADVICE = "Allow writing there and free some space, or set CROSSGRAFT_CACHE to another folder."


def known_results_file(file: Path | None = None) -> Path:
    """``file``, else ``$CROSSGRAFT_CACHE/known_results.jsonl``, else the same name in the user's data folder."""
    if file is not None:
        return file
    stated = os.environ.get("CROSSGRAFT_CACHE")
    return (Path(stated) if stated else platformdirs.user_data_path("crossgraft")) / FILE_NAME


def read_known_results(file: Path | None = None) -> list[KnownResult]:
    """Every result that was added, oldest first; none when the file is not there yet.

    Raises:
        DataError: A line is damaged or of a newer crossgraft; the message names file and line.
    """
    path = known_results_file(file)
    try:
        text = read_whole(path).decode("utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read the known results {path}: {error}. Repair the file or move it away.") from error
    rows: list[KnownResult] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(KnownResult.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise DataError(
                f"{path}, line {number} is not a known result ({first['msg']}). Repair the line or move the file away."
            ) from error
    return rows


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
    path = known_results_file(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_name(f".{path.name}.lock"), timeout=LOCK_SECONDS):
            merged = {row.key: row for row in [*read_known_results(path), *new]}
            text = "".join(f"{row.model_dump_json()}\n" for row in merged.values())
            write_atomically(path, text, advice=_ADVICE)
    except Timeout as error:
        raise StorageError(f"Another process has held {path} for a minute. Try again when it is done.") from error
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"Cannot write {path}: {describe_os_error(error)}. {_ADVICE}") from error
    except NotImplementedError as error:  # some network file systems
        raise StorageError(f"Cannot write {path}: its file system has no locks. {_ADVICE}") from error
    return len(merged)
