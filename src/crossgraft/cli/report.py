"""``crossgraft report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crossgraft.cli import options
from crossgraft.cli.output import show
from crossgraft.words.visible import visible

app = typer.Typer(rich_markup_mode=None)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Run directories; several are put into one page.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write. [default: report.html in the (first) run directory]"),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Write the page of a finished run again, or put several runs side by side.

    Example: crossgraft report runs/rank-digits
    """
    from crossgraft.report.page import write_report

    show(visible(str(write_report(runs[0] if len(runs) == 1 else runs, out=out))))
