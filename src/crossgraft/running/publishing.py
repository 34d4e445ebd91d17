"""The end of a run: it is done when its results are written, and only then come the pictures and the report about them."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from crossgraft.errors import UsageError
from crossgraft.options._values import checked
from crossgraft.options.running import PageOptions
from crossgraft.progress import Reporter
from crossgraft.records.base import Record, Thumbnail
from crossgraft.report.checklists import CHECKLISTS
from crossgraft.report.checklists.checklist import is_filled_checklist
from crossgraft.report.checklists_of_runs import filled_checklist
from crossgraft.report.page import render_page
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.unattended import is_unattended
from crossgraft.running.verb import PAGE, THUMBNAILS_FILE, secondary
from crossgraft.running.written_files import is_page, refuse_file_of_a_run
from crossgraft.storage.atomic import refuse_to_replace, write_atomically
from crossgraft.words.visible import frame_csv

if TYPE_CHECKING:
    import pandas as pd


def write_report(
    run_directory: str | Path | Sequence[str | Path], *, out: str | Path | None = None, checklist: str | None = None
) -> Path:
    """Write one self-contained HTML page for one run, or for several side by side; or a checklist that they fill.

    Reads ``run.json``, ``report.json`` and, when there, ``thumbnails.json`` of each run; computes nothing.
    The same records give the same bytes, but for a next command that depends on which models are on this machine.

    Args:
        run_directory: The folder of one run, or a sequence of folders.
        out: The file to write; ``report.html`` inside the folder of a single run by default, or the name of the checklist.
        checklist: Name of a reporting guideline (``claim``, ``tripod-ai``, or one of another package): a file in Markdown, or
            CSV if ``out`` ends so, with what the runs answer of each item and what is left to people.

    Returns:
        The file that was written.

    Raises:
        UsageError: No run, several runs without ``out``, a folder that is no run, another file where the page would be, or an
            ending that is not of a checklist.
        UnknownNameError: No such checklist.
        OtherRunError: The page of another run is there.
        DataError: A record is damaged; the message names the file.
        StorageError: The page could not be written; an older page stays as it was.
    """
    options = checked(PageOptions, {"run_directory": run_directory, "out": out, "checklist": checklist})
    run_directory, out, checklist = options.run_directory, options.out, options.checklist
    single = isinstance(run_directory, str | Path)
    directories = [Path(run_directory)] if single else [Path(directory) for directory in run_directory]
    if not directories:
        raise UsageError("No run directory was given. Name at least one folder that a crossgraft command wrote.")
    if out is None and len(directories) > 1:
        raise UsageError("A page of several runs needs a file to go to: give out=… (--out FILE).")
    if checklist is not None:
        return _write_checklist(directories, checklist, out=out)
    target = directories[0] / "report.html" if out is None else Path(out)
    refuse_to_replace(target, is_page, what="a page")
    refuse_file_of_a_run(target, but=directories[0] if len(directories) == 1 else None)
    return write_atomically(target, render_page(directories, at=target.parent))


def _write_checklist(directories: Sequence[Path], name: str, *, out: str | Path | None) -> Path:
    CHECKLISTS.get(name)  # a name that is wrong is told before an ending that is
    target = directories[0] / f"{name}.md" if out is None else Path(out)
    if target.suffix.lower() not in (".md", ".csv"):
        raise UsageError(f"A checklist is written as Markdown or CSV, not as {target.name}. Let --out end in .md or .csv.")
    refuse_to_replace(target, is_filled_checklist, what="a checklist")
    text = filled_checklist(directories, name, as_table=target.suffix.lower() == ".csv")
    return write_atomically(target, text)


def publish(
    run: RunDirectory,
    record: Record,
    reporter: Reporter,
    *,
    tables: Mapping[str, pd.DataFrame | str] | None = None,
    split: Record | None = None,
    thumbnails: Callable[[], list[Thumbnail]] | None = None,
) -> Path | None:
    """Write tables, split and record, mark the run as done, then write its pictures and its report, which it can do without.

    Args:
        run: Where everything goes.
        record: Becomes ``report.json``.
        reporter: Reporter of what could not be written.
        tables: File name → table, or its text.
        split: Becomes ``split.json``.
        thumbnails: Makes the pictures; None: the report has none.

    Returns:
        The HTML report; None where it could not be written, or nobody waits for it.

    Raises:
        StorageError: A table, the split or the record cannot be written.
    """
    with reporter.part(*PAGE.place):
        for name, table in (tables or {}).items():
            run.write(name, table if isinstance(table, str) else frame_csv(table))
        if split is not None:
            run.write_record("split.json", split)
        run.write_record("report.json", record)
        run.finish()
        if thumbnails is not None:
            with secondary("The pictures of the report were not written", reporter):
                run.write(THUMBNAILS_FILE, TypeAdapter(list[Thumbnail]).dump_json(thumbnails(), exclude_defaults=True))
        if is_unattended():
            return None
        page: Path | None = None
        with secondary(
            "The page of the run was not written",
            reporter,
            advice=f"Everything else is there; write the page with: crossgraft report {shlex.quote(str(run.path))}",
        ):
            page = write_report(run.path)
        return page
