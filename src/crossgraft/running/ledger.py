"""The ledger: how often the test images of a data set were looked at, so that a page can say when its result is the best of many.

One JSON line a look in a file of the user, with fingerprints and nothing else.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import platformdirs
from filelock import FileLock, Timeout
from pydantic import ValidationError

from crossgraft.errors import DataError, StorageError
from crossgraft.paths import read_whole
from crossgraft.progress import Reporter
from crossgraft.records.base import Look, LooksRecord, Record
from crossgraft.running.verb import secondary
from crossgraft.statistics.selection_quality import expected_maximum
from crossgraft.storage.atomic import describe_os_error, write_atomically

LOCK_SECONDS = 60.0
_ADVICE = "Allow writing there and free some space, or set CROSSGRAFT_CACHE to another folder."
RowT = TypeVar("RowT", bound=Record)


def user_file(name: str) -> Path:
    """``$CROSSGRAFT_CACHE/name``, or the same name in the user's data folder."""
    stated = os.environ.get("CROSSGRAFT_CACHE")
    return (Path(stated) if stated else platformdirs.user_data_path("crossgraft")) / name


@dataclass(frozen=True)
class JsonLines(Generic[RowT]):
    """One kind of such a file.

    Attributes:
        kind: What a line is.
        what: The whole file in words, with its article.
        one: One line in words, with its article.
        key: What makes two records the same.
        keeps_first: Whether the older of two stays; otherwise the newer one takes its place.
    """

    kind: type[RowT]
    what: str
    one: str
    key: Callable[[RowT], Hashable]
    keeps_first: bool = False

    def read(self, path: Path) -> list[RowT]:
        """Every record, oldest first; none when the file is not there yet.

        Raises:
            DataError: A line is damaged or of a newer crossgraft; the message names file and line.
        """
        try:
            text = read_whole(path).decode("utf-8")
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"Cannot read {self.what} {path}: {error}. Repair the file or move it away.") from error
        rows: list[RowT] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                rows.append(self.kind.model_validate_json(line))
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                raise DataError(
                    f"{path}, line {number} is not {self.one} ({first['msg']}). Repair the line or move the file away."
                ) from error
        return rows

    def add(self, rows: Iterable[RowT], path: Path) -> list[RowT]:
        """Add records, and return all that the file then holds, oldest first.

        Raises:
            DataError: The file is damaged; it is left as it is.
            StorageError: The file could not be written, or another process holds it for a minute; the old file stays.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_name(f".{path.name}.lock"), timeout=LOCK_SECONDS):
                merged: dict[Hashable, RowT] = {}
                for row in [*self.read(path), *rows]:
                    key = self.key(row)
                    merged[key] = merged.get(key, row) if self.keeps_first else row
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
        return list(merged.values())


FILE_NAME = "test_looks.jsonl"
_LINES = JsonLines(
    Look,
    "the ledger of looks at test images",
    "a look at test images",
    key=lambda look: look.key,
    keeps_first=True,  # what looked first opened the images
)
_HALF_WIDTH = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""


def add_look(look: Look, file: Path | None = None) -> list[Look]:
    """Add a look, unless it is there already; returns the looks at the same test images up to this one, oldest first.

    Raises:
        DataError: The ledger is damaged; it is left as it is.
        StorageError: The ledger cannot be written.
    """
    path = user_file(FILE_NAME) if file is None else file
    looks = [each for each in _LINES.add([look], path) if each.test == look.test]
    return looks[: [each.key for each in looks].index(look.key) + 1]


def count_looks(
    look: Look, *, low: float | None, high: float | None, reporter: Reporter, file: Path | None = None
) -> LooksRecord | None:
    """Add a look and say its place; None, with a warning, where the ledger cannot be used.

    Args:
        look: The look.
        low: Lower end of the 95 % interval of the primary metric, if there is one.
        high: Upper end.
        reporter: Reporter of the warning.
        file: Another file than the user's.
    """
    looks: list[Look] = []
    with secondary(
        "This look at the test images was not counted",
        reporter,
        advice="The result itself is complete; --no-ledger counts nothing.",
    ):
        looks = add_look(look, file)
    if not looks:
        return None
    error = None if low is None or high is None else (high - low) / (2 * _HALF_WIDTH)
    results = sum(each.is_result for each in looks)
    return LooksRecord(
        number=len(looks),
        by_command=dict(Counter(each.command for each in looks)),
        num_results=results,
        optimism=None if error is None else error * expected_maximum(max(results, 1)),
    )
