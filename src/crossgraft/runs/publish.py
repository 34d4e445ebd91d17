"""How a run ends: what is below the verbs is told by them how to make a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, runtime_checkable

from crossgraft.progress import Reporter
from crossgraft.records import Thumbnail
from crossgraft.runs.run_directory import RunDirectory

PAGE_FILE = "report.html"
THUMBNAILS_FILE = "thumbnails.json"


@runtime_checkable
class Publish(Protocol):
    """Ends a run and makes its page."""

    def __call__(
        self, run: RunDirectory, reporter: Reporter, *, thumbnails: Callable[[], list[Thumbnail]] | None = None
    ) -> Path | None:
        """The page; None where it could not be written."""
        ...
