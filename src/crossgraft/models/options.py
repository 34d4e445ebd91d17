"""Options about models that hold objects of a program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from crossgraft.options._option import FromProgram, Options, option, options

if TYPE_CHECKING:
    from crossgraft.models.spec import ModelSpec
else:
    ModelSpec = FromProgram


@options
class Candidates(Options):
    """Which models are compared."""

    group: ClassVar[str] = "Models"

    models: str | Path | Sequence[str | ModelSpec] | None = option(
        "Names, checkpoints or folders of them with commas, or a zoo YAML file.",
        default=None,
        default_text="models whose weights are on this machine",
        is_common=True,
    )
