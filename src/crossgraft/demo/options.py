"""Options of ``crossgraft demo``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from crossgraft.options._option import option, options
from crossgraft.options.command import Command
from crossgraft.options.running import Cache, Debug, Json, Output, Quiet, Seed, Thumbnails


@options
class DemoOptions(Output, Thumbnails, Cache, Seed):
    """Options of ``crossgraft demo``."""

    group: ClassVar[str] = "Computing"

    out: str | Path = option("Run directory.", default="runs/demo", decides=False, is_common=True)
    fast: bool = option("Use fewer models and steps, to see that it runs.", default=False)
    toy: bool = option(
        "Instead of the networks of crossgraft[weights], train toy networks here, and check their ranking.", default=False
    )


COMMAND = Command(
    "demo",
    "See everything once, offline: real networks on real handwriting, from the first check to a model in use.",
    example="demo",
    inputs=(),
    options=(DemoOptions, Json, Quiet, Debug),
    verb="crossgraft.demo:show_demo",
    place=10,
)
