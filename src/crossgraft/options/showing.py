"""Options of commands that no verb has: the demo, the list of plug-ins, the page of a run, and how a terminal is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, SourceOptions, Unreadable
from crossgraft.options.models import Weights
from crossgraft.options.running import Cache, Output, Seed, Thumbnails


@options
class DemoOptions(Output, Thumbnails, Cache, Seed):
    """Options of ``crossgraft demo``."""

    group: ClassVar[str] = "Computing"

    out: str | Path = option("Run directory.", default="runs/demo", decides=False, is_common=True)
    fast: bool = option("Use fewer models and steps, to see that it runs.", default=False)


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
class KnownFilters(Options):
    """Which known results are listed."""

    group: ClassVar[str] = "Known results"

    only_model: str | None = option("List results of models whose name holds this text.", default=None, is_common=True)
    only_target: str | None = option(
        "List results on targets whose name holds this text.", default=None, is_common=True
    )
    only_from: str | None = option(
        "List results of a publication whose name holds this text.", default=None, is_common=True
    )


@options
class ListOptions(Weights, KnownFilters):
    """Options of ``crossgraft list``."""

    group: ClassVar[str] = "Model"

    available: bool = option("List only models whose weights are on this machine.", default=False, is_common=True)


@options
class Sheets(Options):
    """Images that confounders are shown on."""

    group: ClassVar[str] = "Contact sheets of confounders"

    data: Any = option(
        "Labelled images that every confounder is shown on: folder, table, .npz file …",
        is_path=True,
        is_common=True,
        takes="a path, a Dataset, a DataFrame or a list of files",
    )
    num_images: int = option(
        "Number of images on each sheet, spread over the classes.", default=4, flag="images", least=1, is_common=True
    )


@options
class SheetOptions(Output, Seed, Unreadable, ClassOptions, SourceOptions, Sheets):
    """Options of ``show_confounders``."""

    group: ClassVar[str] = "Output"

    out: str | Path | None = option(
        "Folder of the contact sheets and their report.",
        default=None,
        decides=False,
        is_common=True,
        default_text="nothing is written from Python; the command needs one with --data",
    )


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
