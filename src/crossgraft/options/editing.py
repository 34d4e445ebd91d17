"""Options of ``edit_data``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from crossgraft.options._option import Options, option, options
from crossgraft.options.data import ClassOptions, SourceOptions, Unreadable
from crossgraft.options.running import Output, Seed, Thumbnails


@options
class Edits(Options):
    """What is done, and to which images."""

    group: ClassVar[str] = "Edits"

    edits: str | Sequence[Any] = option(
        "Edits in their order, with options: tag, low_pass:0.125, whiten_spectrum …; crossgraft list confounders shows them.",
        default=(),
        flag="with",
        repeats=True,
        is_common=True,
    )
    share: float = option("Share of these images that is edited.", default=1.0, is_common=True)
    among: str | Sequence[str] | None = option(
        "Classes whose images are edited, with commas.", default=None, default_text="all", is_common=True
    )
    unit: Literal["image", "patient"] = option(
        "What is drawn: single images, or all images of a patient in a part of the data.", default="image"
    )
    strength: float = option("Multiple of what an edit changes; 0 writes the images as they are.", default=1.0)
    classes: str | Path | None = option(
        "Table with the columns class and merged, that gives every class a coarser one.", default=None, is_path=True
    )


@options
class EditOptions(Output, Thumbnails, Seed, Unreadable, ClassOptions, SourceOptions, Edits):
    """Options of ``edit_data``."""
