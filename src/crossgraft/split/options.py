"""Options of ``split_data``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from crossgraft.options._objects import Reporter
from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, Splits, TableOptions, Validating, Volumes
from crossgraft.options.models import Download
from crossgraft.options.running import Seed


@options
class SplitFile(Options):
    """Where the split goes."""

    group: ClassVar[str] = "Output"

    out: str | Path | None = option(
        "File of the split.",
        default=None,
        default_text="split.json; nothing is written from Python",
        is_common=True,
    )
    overwrite: bool = option("Replace another split in that file.", default=False)
    reporter: Reporter | None = option("Receiver of progress; silent when None.", default=None, is_typed=False)


@options
class SplitOptions(SplitFile, Seed, Validating, Download, Splits, Volumes, ClassOptions, TableOptions):
    """Options of ``split_data``."""

    fold: int = option("Index of the fold that becomes test, from 0.", default=0)
