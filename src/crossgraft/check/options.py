"""Options of ``check_data``."""

from __future__ import annotations

from crossgraft.options._option import option, options
from crossgraft.options.command import DATA_HELP, Command, Input
from crossgraft.options.data import ClassOptions, Splits, TableOptions, Volumes
from crossgraft.options.models import Download
from crossgraft.options.running import Output, Page, Seed, Terminal, Workers


@options
class CheckOptions(Output, Workers, Seed, Page, Download, Splits, Volumes, ClassOptions, TableOptions):
    """Options of ``check_data``."""

    fold: int = option("Index of the fold that is held out, from 0.", default=0)


COMMAND = Command(
    "check",
    "Look for what makes results wrong: copies and patients across splits, wrong labels, damaged images.",
    example="check digits",
    inputs=(Input("data", DATA_HELP),),
    options=(CheckOptions, Terminal),
    verb="crossgraft.check.verb:check_data",
    notes="All rows of all splits are looked at. The exit code is 3 if something unsound was found, and 0 if there are "
    "only warnings and notices.",
    place=20,
)
