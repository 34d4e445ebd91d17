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


COMMAND = Command(
    "demo",
    "See everything once, offline, on real handwriting: toy models are trained, ranked and checked.",
    example="demo",
    inputs=(),
    options=(DemoOptions, Json, Quiet, Debug),
    verb="crossgraft.demo:write_demo",
    place=10,
)
