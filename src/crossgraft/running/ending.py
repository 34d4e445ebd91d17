"""How a run ends: what is below the verbs is told by them how to write it down and make its report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from crossgraft.progress import Piece, Reporter
from crossgraft.records.base import Record, Thumbnail
from crossgraft.running.run_directory import RunDirectory

if TYPE_CHECKING:
    import pandas as pd

PAGE_FILE = "report.html"
THUMBNAILS_FILE = "thumbnails.json"
PAGE = Piece(("page",), 1.3, "page", is_measured=False)
"""Tables, pictures and page of a run: 0.8 (``check``) to 1.8 CPU seconds (``tune``), whatever the data."""


@runtime_checkable
class Publish(Protocol):
    """Writes tables, split and record into a run directory, ends the run and makes its report."""

    def __call__(
        self,
        run: RunDirectory,
        record: Record,
        reporter: Reporter,
        *,
        tables: Mapping[str, pd.DataFrame] | None = None,
        split: Record | None = None,
        thumbnails: Callable[[], list[Thumbnail]] | None = None,
    ) -> Path | None:
        """The HTML report; None where it could not be written."""
        ...
