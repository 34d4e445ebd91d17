"""The end of a run: it is done when its results are written, and only then come the pictures and the report about them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from crossgraft.progress import Reporter
from crossgraft.records.base import Record, Thumbnail
from crossgraft.running.ending import PAGE, THUMBNAILS_FILE
from crossgraft.running.page import write_report
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.secondary import secondary
from crossgraft.words.csv_cells import frame_csv

if TYPE_CHECKING:
    import pandas as pd


def publish(
    run: RunDirectory,
    record: Record,
    reporter: Reporter,
    *,
    tables: Mapping[str, pd.DataFrame] | None = None,
    split: Record | None = None,
    thumbnails: Callable[[], list[Thumbnail]] | None = None,
) -> Path | None:
    """Write tables, split and record, mark the run as done, then write its pictures and its report, which it can do without.

    Args:
        run: Where everything goes.
        record: Becomes ``report.json``.
        reporter: Reporter of what could not be written.
        tables: File name → table.
        split: Becomes ``split.json``.
        thumbnails: Makes the pictures; None: the report has none.

    Returns:
        The HTML report; None where it could not be written.

    Raises:
        StorageError: A table, the split or the record cannot be written.
    """
    with reporter.part(*PAGE.place):
        for name, table in (tables or {}).items():
            run.write(name, frame_csv(table))
        if split is not None:
            run.write_record("split.json", split)
        run.write_record("report.json", record)
        run.finish()
        if thumbnails is not None:
            with secondary("The pictures of the report were not written", reporter):
                run.write(THUMBNAILS_FILE, TypeAdapter(list[Thumbnail]).dump_json(thumbnails(), exclude_defaults=True))
        page: Path | None = None
        with secondary(
            "The page of the run was not written",
            reporter,
            advice=f"Everything else is there; write the page with: crossgraft report {shlex.quote(str(run.path))}",
        ):
            page = write_report(run.path)
        return page
