"""Options of ``edit_data``, and of ``fine_tune`` about the same edits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from crossgraft.errors import UsageError
from crossgraft.options._option import Options, option, options
from crossgraft.options.command import DATA_HELP, Command, Input, Typed, VerbCall
from crossgraft.options.data import ClassBalance, ClassOptions, SourceOptions, Unreadable
from crossgraft.options.running import Output, Seed, Terminal, Thumbnails

EDITED_PARTS = "train,val,test"
_NAMED = "tag, low_pass:0.125, whiten_spectrum …; crossgraft list confounders shows them."
_SHARE = "Share of these images that is edited."
_AMONG = "Classes whose images are edited, with commas."
_UNIT = "What is drawn: single images, or all images of a patient in a part of the data."
_STRENGTH = "Multiple of what an edit changes; 0 leaves the images as they are."


@options
class Edits(Options):
    """What is done, and to which images."""

    group: ClassVar[str] = "Edits"

    edits: str | Sequence[Any] = option(
        f"Edits in their order, with options: {_NAMED}",
        default=(),
        flag="with",
        repeats=True,
        is_common=True,
        takes="names with commas or a list of names and edits",
    )
    share: float = option(_SHARE, default=1.0, is_common=True)
    among: str | Sequence[str] | None = option(_AMONG, default=None, default_text="all", is_common=True)
    unit: Literal["image", "patient"] = option(_UNIT, default="image")
    strength: float = option(_STRENGTH, default=1.0)
    classes: str | Path | None = option(
        "Table with the columns class and merged, that gives every class a coarser one.", default=None, is_path=True
    )


@options
class EditOptions(Output, Thumbnails, Seed, ClassBalance, Unreadable, ClassOptions, SourceOptions, Edits):
    """Options of ``edit_data``."""


@options
class EditsBefore(Options):
    """The same edits on the fly, before anything else sees the images."""

    group: ClassVar[str] = "Edits"

    edits: str | Sequence[Any] = option(
        f"What is done to images before anything else, in this order: {_NAMED}",
        default=(),
        flag="with",
        repeats=True,
        only_if_given=True,
        takes="names with commas or a list of names and edits",
    )
    edit_parts: str | Sequence[str] = option(
        "Parts of the data whose images are edited, with commas.", default=EDITED_PARTS, only_if_given=True, needs="edits"
    )
    edit_share: float = option(_SHARE, default=1.0, only_if_given=True, needs="edits")
    edit_among: str | Sequence[str] | None = option(_AMONG, default=None, default_text="all", only_if_given=True, needs="edits")
    edit_unit: Literal["image", "patient"] = option(_UNIT, default="image", only_if_given=True, needs="edits")
    edit_strength: float = option(_STRENGTH, default=1.0, only_if_given=True, needs="edits")


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


def _edit(call: Typed) -> VerbCall:
    """``crossgraft edit``, into the folder that was named."""
    asked, folder = call.asked(EditOptions), call.inputs["to"]
    if (folder is None) == (asked.get("out") is None):
        raise UsageError("Name one folder to write, for example: crossgraft edit digits edited --with tag.")
    asked = {**asked, "out": folder or asked["out"]}
    return VerbCall("crossgraft.edit.verb:edit_data", EditOptions, (call.inputs["data"],), named="edit", asked=asked)


COMMAND = Command(
    "edit",
    "Write a data set again with edited images: an artefact in some, or cues taken away from all.",
    example="edit digits edited --with low_pass:0.125",
    inputs=(Input("data", DATA_HELP), Input("to", "Folder that is written; or --out.", type=Path, is_required=False)),
    options=(EditOptions, Terminal),
    action=_edit,
    notes="labels.csv in the folder is what other commands open; labels, splits, groups and other columns stay. Which images "
    "are edited is drawn by --seed, the same share of each part, and a larger share has those of a smaller one.",
    place=130,
)
