"""Flags with one meaning everywhere."""

from __future__ import annotations

import json as json_module
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from crossgraft.errors import OtherRunError
from crossgraft.progress import Reporter
from crossgraft.words.visible import visible

T = TypeVar("T")

Out = Annotated[Path | None, typer.Option("--out", help="Run directory. [default: runs/<command>-<data>, then -2 …]")]
Seed = Annotated[int, typer.Option("--seed", help="Of every random choice.")]
Device = Annotated[str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Threads. [default: all cores]")]
LabelColumn = Annotated[
    str | None,
    typer.Option("--label-column", help="Column of labels; several with commas: several labels an image."),
]
LabelSeparator = Annotated[
    str | None, typer.Option("--label-separator", help="Between the labels of one cell, for several labels an image.")
]
ClassNames = Annotated[
    Path | None, typer.Option("--class-names", help="Text file, one class a line: names and order of the classes.")
]
Ordinal = Annotated[bool, typer.Option("--ordinal", help="The order of the classes means something (grades).")]
Window = Annotated[
    str | None,
    typer.Option("--window", help="DICOM, NIfTI: which intensities are black and white. [default: as the file says]"),
]
Slices = Annotated[
    str | None, typer.Option("--slices", help="Of volumes: middle, all, a count or a place. [default: middle]")
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse unsound data instead of warning.")]
ShowNames = Annotated[bool, typer.Option("--show-names", help="Write names of image files into the run directory.")]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--group-column", help="Column of patients, who stay together in splits and intervals; none: no groups."
    ),
]
PathColumn = Annotated[str | None, typer.Option("--path-column", help="Column of image paths of a table.")]
ImageRoot = Annotated[
    Path | None,
    typer.Option("--image-root", help="Folder that the paths of a table start from. [default: that of the table]"),
]
AllowOutside = Annotated[
    bool, typer.Option("--allow-outside", help="Let paths of a table lead out of the folder that they start from.")
]
Split = Annotated[Path | None, typer.Option("--split", help="Saved split (JSON) whose train rows are used.")]
Holdout = Annotated[
    float | None, typer.Option("--holdout", help="Share of the images to set aside as test in a new split.")
]
Folds = Annotated[int | None, typer.Option("--folds", help="Make this many folds and use the training part of one.")]
Fold = Annotated[int, typer.Option("--fold", help="Which fold is held out, from 0.")]
PerClass = Annotated[int | None, typer.Option("--per-class", min=1, help="This many images of each class.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most this many images, class shares kept.")]
SkipUnreadable = Annotated[bool, typer.Option("--skip-unreadable", help="Leave unreadable images out and count them.")]
Models = Annotated[
    str | None,
    typer.Option("--models", help="Names or checkpoints with commas, or a zoo YAML file. [default: what is offline]"),
]
WeightsDir = Annotated[Path | None, typer.Option("--weights-dir", help="Folder of checkpoints.")]
AllowDownload = Annotated[
    bool, typer.Option("--allow-download", help="Let missing weights (and data of a hub) be fetched.")
]
AllowCode = Annotated[
    list[str] | None,
    typer.Option(
        "--code",
        "--allow-code",
        help="Python file, folder or package.module:factory that may run to build a network of your own.",
    ),
]
CacheDir = Annotated[Path | None, typer.Option("--cache-dir", help="Where features are kept between runs.")]
NoImages = Annotated[bool, typer.Option("--no-images", help="Put no thumbnails into the report.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, only warnings and results.")]
Config = Annotated[Path | None, typer.Option("--config", help="YAML file of flags; typed flags win.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace another run in the run directory.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

NOT_ARGUMENTS = {"json", "quiet", "config", "debug", "data"}
"""Flags of the terminal, which the public functions do not have."""


def typed_flags(context: typer.Context) -> dict[str, object]:
    """The arguments that were typed, under the names of the public function; defaults are left to it."""
    return {
        name: value
        for name, value in context.params.items()
        if name not in NOT_ARGUMENTS
        and (origin := context.get_parameter_source(name)) is not None
        and origin.name != "DEFAULT"
    }


def models_of_file(arguments: dict[str, Any], given: Mapping[str, object]) -> None:
    """Take the consent from what --config names as models: only what is typed may run code (see ``models.trusted_code``)."""
    from crossgraft.models.zoo import named_in_a_file

    if arguments.get("models") is not None and "models" not in given:
        arguments["models"] = named_in_a_file(arguments["models"], arguments["allow_code"])
    if isinstance(arguments.get("model"), str) and "model" not in given:
        (arguments["model"],) = named_in_a_file([arguments["model"]], arguments["allow_code"])


def print_json(document: str) -> None:
    """One JSON document on stdout; what the stream or a person cannot see is escaped, so that the document stays whole."""
    document = visible(document, keep="\n", escape=_json_escape)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        document.encode(encoding)
    except UnicodeEncodeError:
        document = re.sub(r"[^\x00-\x7f]", lambda found: _json_escape(found[0]), document)
    typer.echo(document)


def _json_escape(character: str) -> str:
    # The standard library takes DEL for a character that can be seen.
    return json_module.dumps(character)[1:-1] if character != "\x7f" else "\\u007f"


def make_reporter(*, quiet: bool) -> Reporter:
    """Progress on stderr."""
    return Reporter(quiet=quiet)


def run_directories(out: Path | None, command: str, data: str) -> Iterator[Path]:
    """Where a run may go: ``out`` alone if it was given, else ``runs/<command>-<data>``, then the same with -2, -3 and so on."""
    if out is not None:
        yield out
        return
    from crossgraft.runs.names import portable_name

    base = Path("runs") / f"{command}-{portable_name(Path(data).stem) or 'data'}"
    yield base
    yield from (base.with_name(f"{base.name}-{number}") for number in count(2))


def in_own_directory(directories: Iterator[Path], work: Callable[[Path], T]) -> T:
    """Do ``work`` in the first directory that is free or holds the same run.

    Raises:
        OtherRunError: The only directory holds another run.
    """
    refusal: OtherRunError | None = None
    for directory in directories:
        try:
            return work(directory)
        except OtherRunError as error:
            refusal = error
    raise refusal or OtherRunError("No run directory was given.")
