"""Options of commands that no verb has: the demo, the list of plug-ins, the page of a run, and how a terminal is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from crossgraft.options._option import Options, option, options


@options
class ReportOptions(Options):
    """Options of ``crossgraft report``."""

    group: ClassVar[str] = "Output"

    out: str | Path | None = option(
        "File to write.", default=None, default_text="report.html in the (first) run directory", is_common=True
    )


@options
class PageOptions(ReportOptions):
    """What ``write_report`` takes."""

    run_directory: str | Path | Sequence[str | Path] = option("The folder of one run, or a list of folders.")


@options
class Json(Options):
    """What is printed."""

    group: ClassVar[str] = "Terminal"

    json: bool = option("Print one JSON document instead of text.", default=False, decides=False)


@options
class Quiet(Options):
    """What is said while a command runs."""

    group: ClassVar[str] = "Terminal"

    quiet: bool = option("Show no progress, only warnings and results.", default=False, decides=False)


@options
class ConfigFile(Options):
    """Where options stand that are not typed."""

    group: ClassVar[str] = "Terminal"

    config: str | Path | None = option("YAML file of options; those that are typed win.", default=None, decides=False)


@options
class Debug(Options):
    """What is said about errors."""

    group: ClassVar[str] = "Terminal"

    debug: bool = option("Show the traceback of an error.", default=False, decides=False)


@options
class Terminal(Debug, ConfigFile, Quiet, Json):
    """Options that change what a terminal shows and no result; Python has none of them."""
