"""Options about how and where a command runs, and what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options


@options
class ReportOptions(Options):
    """Options of ``crossgraft report``."""

    group: ClassVar[str] = "Output"

    out: str | Path | None = option(
        "File to write.", default=None, default_text="report.html in the (first) run directory", is_common=True
    )
    checklist: str | None = option(
        "Write a filled checklist of a reporting guideline instead of the page: claim (CLAIM 2024) or tripod-ai (TRIPOD+AI); "
        "the file ends in .md or .csv.",
        default=None,
        default_text="the page",
        is_common=True,
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
class Verbose(Options):
    """How much is printed."""

    group: ClassVar[str] = "Terminal"

    verbose: bool = option("Print every table, and keep the lines of progress.", default=False, decides=False)


@options
class Debug(Options):
    """What is said about errors."""

    group: ClassVar[str] = "Terminal"

    debug: bool = option("Show the traceback of an error.", default=False, decides=False)


@options
class Terminal(Debug, ConfigFile, Verbose, Quiet, Json):
    """Options that change what a terminal shows and no result; Python has none of them."""


if TYPE_CHECKING:
    from crossgraft.progress import Reporter
else:
    Reporter = FromProgram


@options
class Output(Options):
    """Where results and progress go."""

    group: ClassVar[str] = "Output"

    out: str | Path | None = option(
        "Run directory.",
        default=None,
        decides=False,
        is_common=True,
        default_text="runs/COMMAND-DATA, then -2 …; nothing is written from Python",
    )
    overwrite: bool = option("Replace another run in the run directory.", default=False, decides=False)
    reporter: Reporter | None = option(
        "Receiver of progress; when None, it is shown in a notebook and on a terminal.",
        default=None,
        decides=False,
        is_typed=False,
    )


@options
class Looking(Options):
    """Whether a look at test images is counted."""

    group: ClassVar[str] = "Output"

    ledger: bool = option(
        "Count this look at the test images, so that pages say when a result is the best of many; only fingerprints are kept.",
        default=True,
        decides=False,
    )


@options
class Thumbnails(Options):
    """Images in the report."""

    group: ClassVar[str] = "Output"

    no_images: bool = option("Put no thumbnails into the report.", default=False)


@options
class Page(Thumbnails):
    """What the report shows."""

    group: ClassVar[str] = "Output"

    show_names: bool = option("Write names of image files into the run directory.", default=False)


@options
class Strictness(Options):
    """What is done about unsound data."""

    group: ClassVar[str] = "Data"

    strict: bool = option("Refuse unsound data, instead of warning and going on.", default=False)


@options
class Reported(Looking, Page, Strictness):
    """What a page shows, and what findings stop a run."""


@options
class Seed(Options):
    """Randomness."""

    group: ClassVar[str] = "Computing"

    seed: int = option("Random seed.", default=0, is_common=True)


@options
class Workers(Options):
    """Threads."""

    group: ClassVar[str] = "Computing"

    workers: int | None = option(
        "Number of threads that read images and compute; another number rounds differently.",
        default=None,
        decides=False,
        least=1,
        default_text="all cores",
    )


@options
class Device(Options):
    """Where networks run."""

    group: ClassVar[str] = "Computing"

    device: str = option("auto, cpu, cuda, cuda:N or mps.", default="auto", decides=False, is_common=True)


@options
class LookingPrecision(Options):
    """Number type of networks that look."""

    group: ClassVar[str] = "Computing"

    precision: str = option("32, bf16 (faster on a GPU, and coarser), or auto, which is 32.", default="auto", only_if_given=True)


@options
class Parallel(Options):
    """Several devices, and what a kill loses."""

    group: ClassVar[str] = "Computing"

    checkpoint_every: int | None = option(
        "Steps between two checkpoints.", default=None, decides=False, least=1, default_text="an epoch"
    )
    devices: int = option(
        "Number of devices that share each batch; results depend on it only by rounding.", default=1, decides=False, least=1
    )


@options
class Computing(Workers, Device, Parallel, Seed):
    """Where and how trainings run."""


@options
class Cache(Options):
    """What is kept between runs."""

    group: ClassVar[str] = "Computing"

    cache_dir: str | Path | None = option("Folder of the features kept between runs.", default=None, decides=False)
