"""Options of ``check_data``."""

from __future__ import annotations

from crossgraft.options._option import option, options
from crossgraft.options.data import ClassOptions, Splits, TableOptions, Volumes
from crossgraft.options.models import Download
from crossgraft.options.running import Output, Page, Seed, Workers


@options
class CheckOptions(Output, Workers, Seed, Page, Download, Splits, Volumes, ClassOptions, TableOptions):
    """Options of ``check_data``."""

    fold: int = option("Index of the fold that is held out, from 0.", default=0)
