"""The end of a run: it is done when its results are written, and only then come the pictures and the page about them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from crossgraft.progress import Reporter
from crossgraft.records import Thumbnail
from crossgraft.report.page import write_report
from crossgraft.runs import THUMBNAILS_FILE, RunDirectory
from crossgraft.runs.secondary import secondary


def finish_run(
    run: RunDirectory, reporter: Reporter, *, thumbnails: Callable[[], list[Thumbnail]] | None = None
) -> Path | None:
    """Mark the run as done and write its pictures and its page, which it can do without.

    Args:
        run: With ``report.json`` and all tables.
        reporter: Told what could not be written.
        thumbnails: Makes the pictures; None: the page has none.

    Returns:
        The page; None where it could not be written.

    Raises:
        StorageError: The run can not be marked as done.
    """
    run.finish()
    if thumbnails is not None:
        with secondary("The pictures of the report were not written", reporter):
            run.write(THUMBNAILS_FILE, TypeAdapter(list[Thumbnail]).dump_json(thumbnails()))
    page: Path | None = None
    with secondary(
        "The page of the run was not written",
        reporter,
        advice=f"Everything else is there; write the page with: crossgraft report {shlex.quote(str(run.path))}",
    ):
        page = write_report(run.path)
    return page
