"""Options of ``split_data``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options
from crossgraft.options.command import DATA_HELP, Command, Input, Typed, VerbCall
from crossgraft.options.data import ClassOptions, Splits, TableOptions, Validating, Volumes
from crossgraft.options.models import Download
from crossgraft.options.running import Seed, Terminal

if TYPE_CHECKING:
    from crossgraft.progress import Reporter
else:
    Reporter = FromProgram


@options
class SplitFile(Options):
    """Where the split goes."""

    group: ClassVar[str] = "Output"

    out: str | Path | None = option(
        "File of the split.", default=None, default_text="split.json; nothing is written from Python", is_common=True
    )
    overwrite: bool = option("Replace another split in that file.", default=False)
    reporter: Reporter | None = option("Receiver of progress; silent when None.", default=None, is_typed=False)


@options
class SplitOptions(SplitFile, Seed, Validating, Download, Splits, Volumes, ClassOptions, TableOptions):
    """Options of ``split_data``."""

    fold: int = option("Index of the fold that becomes test, from 0.", default=0)


def _split(call: Typed) -> VerbCall:
    """``crossgraft split``, to split.json where no file was named."""
    asked = {"out": "split.json", **call.asked(SplitOptions)}
    verb = "crossgraft.split.verb:split_data"
    return VerbCall(verb, SplitOptions, (call.inputs["data"],), named="split", asked=asked)


COMMAND = Command(
    "split",
    "Write the split that every command uses to a file: train, val and test, with whole patients on one side.",
    example="split digits --out split.json",
    inputs=(Input("data", DATA_HELP),),
    options=(SplitOptions, Terminal),
    action=_split,
    notes="check, rank and tune draw the same split from the same data, groups and seed by themselves. Parts that come with "
    "the data are kept. No image is opened.",
    place=30,
)
