"""The page of a run, written anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossgraft.errors import UsageError
from crossgraft.options._values import checked
from crossgraft.options.terminal import PageOptions
from crossgraft.report.page import render_page
from crossgraft.running.inputs import refuse_file_of_a_run
from crossgraft.running.written_files import is_page
from crossgraft.storage.atomic import write_atomically
from crossgraft.storage.replacing import refuse_to_replace


def write_report(run_directory: str | Path | Sequence[str | Path], *, out: str | Path | None = None) -> Path:
    """Write one self-contained HTML page for one run, or for several side by side.

    Reads ``run.json``, ``report.json`` and, when there, ``thumbnails.json`` of each run; computes nothing.
    The same records give the same bytes, but for a next command that depends on which models are on this machine.

    Args:
        run_directory: The folder of one run, or a sequence of folders.
        out: The file to write; ``report.html`` inside the folder of a single run by default.

    Returns:
        The file that was written.

    Raises:
        UsageError: No run, several runs without ``out``, a folder that is no run, or another file where the page would be.
        OtherRunError: The page of another run is there.
        DataError: A record is damaged; the message names the file.
        StorageError: The page could not be written; an older page stays as it was.
    """
    asked = checked(PageOptions, {"run_directory": run_directory, "out": out})
    run_directory, out = asked.run_directory, asked.out
    single = isinstance(run_directory, str | Path)
    directories = [Path(run_directory)] if single else [Path(directory) for directory in run_directory]
    if not directories:
        raise UsageError("No run directory was given. Name at least one folder that a crossgraft command wrote.")
    if out is None and len(directories) > 1:
        raise UsageError("A page of several runs needs a file to go to: give out=… (--out FILE).")
    target = directories[0] / "report.html" if out is None else Path(out)
    refuse_to_replace(target, is_page, what="a page")
    refuse_file_of_a_run(target, but=directories[0] if len(directories) == 1 else None)
    return write_atomically(target, render_page(directories, at=target.parent))
