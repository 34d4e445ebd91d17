"""Read the records of a run directory, and refuse what a page could not be true to."""

from __future__ import annotations

import base64
import binascii
import io
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

from pydantic import TypeAdapter, ValidationError

from crossgraft.errors import DataError, RunDirectoryError
from crossgraft.options.command import TypedCommand
from crossgraft.paths import read_whole
from crossgraft.records.base import SCHEMA_VERSION, Record, RunRecord, Thumbnail
from crossgraft.report.paths import without_absolute_paths

RecordT = TypeVar("RecordT", bound=Record, covariant=True)
OtherT = TypeVar("OtherT", bound=Record)
LARGEST_THUMBNAIL_PIXELS = 96
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Source(Generic[RecordT]):
    """One run as the sections see it.

    Args:
        record: Record of the results.
        run: Record of how the run was made; None in a terminal and on a page that is not of a run.
        thumbnails: Small images, or none.
        prefix: Put before every anchor and every id of a figure; empty for a page of one run.
        is_at_home: Whether the page lies in the run directory, so that links to other files there hold.
        out: Run directory, for a reader who is outside it; None for a page, which lies in it.
        command_line: The command as it was typed, for the terminal; a page has that of ``run``.
    """

    record: RecordT
    run: RunRecord | None = None
    thumbnails: tuple[Thumbnail, ...] = ()
    prefix: str = ""
    is_at_home: bool = True
    out: Path | None = None
    command_line: str | None = None

    @property
    def typed(self) -> TypedCommand:
        """The command, with no more of its places than the page shows elsewhere."""
        if self.command_line is not None:
            return TypedCommand.read(self.command_line)
        line = "" if self.run is None else self.run.as_typed or self.run.command_line
        return TypedCommand.read(without_absolute_paths(line))

    def showing(self, record: OtherT) -> Source[OtherT]:
        """The same run with another record in view."""
        return replace(cast("Source[Any]", self), record=record)


@runtime_checkable
class ReadableKind(Protocol):
    """As much of a kind of report as reading one needs."""

    @property
    def record_type(self) -> type[Record]:
        """Its record."""
        ...

    @property
    def refuse(self) -> Callable[[Any, Path], None] | None:
        """Raises ``DataError`` for a record that contradicts itself."""
        ...


class KnownKinds(Protocol):
    """Finds kinds of report."""

    def find(self, name: str, *, room: str = "") -> ReadableKind | None:
        """One kind, which the room of the command of a run probably has; None where there is none of this name."""
        ...

    def names(self) -> list[str]:
        """All names."""
        ...


def read_run(directory: Path, kinds: KnownKinds, *, prefix: str = "", is_at_home: bool = True) -> Source[Any]:
    """Read ``run.json``, ``report.json`` and, when there, ``thumbnails.json``.

    Args:
        directory: A run directory.
        kinds: The kinds of report.
        prefix: See ``Source``.
        is_at_home: See ``Source``.

    Raises:
        RunDirectoryError: The directory or a file of it is missing.
        DataError: A file, named in the message, is damaged, newer, or contradicts itself.
    """
    if not directory.is_dir():
        raise RunDirectoryError(f"No such run directory: {directory}. Pass the folder that a crossgraft command wrote (--out).")
    run = _validated(directory / "run.json", RunRecord)
    report = directory / "report.json"
    name, version = _kind(report)
    kind = kinds.find(name, room=run.command)
    if kind is None:
        raise DataError(f"{report} is a report of kind {name!r}; known kinds: {', '.join(kinds.names())}.")
    _check_version(report, version, kind.record_type)
    record = _validated(report, kind.record_type)
    if kind.refuse is not None:
        kind.refuse(record, report)
    thumbnails = _thumbnails(directory / "thumbnails.json")
    return Source(run=run, record=record, thumbnails=thumbnails, prefix=prefix, is_at_home=is_at_home)


def _text(path: Path) -> str:
    try:
        return read_whole(path).decode("utf-8")
    except FileNotFoundError as error:
        raise RunDirectoryError(
            f"{path} is missing, so there is nothing to report on. Run the command again into this directory."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {path}: {error}.") from error


def _check_version(path: Path, version: object, record_type: type[Record]) -> None:
    field = record_type.model_fields.get("schema_version")
    expected = SCHEMA_VERSION if field is None else int(field.default)
    if not isinstance(version, int) or version == expected:
        return
    if version > expected:
        raise DataError(f"{path} has schema version {version}; this crossgraft reads up to {expected}. Upgrade it.")
    raise DataError(
        f"{path} was written by an earlier version of crossgraft, which decided by another rule; this one reads schema version "
        f"{expected}, and this is {version}. Run the command again with --overwrite, or open the report.html beside it."
    )


def _kind(path: Path) -> tuple[str, object]:
    """Kind and schema version of a report."""
    text = _text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:  # also an integer too long, and nesting too deep, to be parsed
        raise DataError(f"{path} is damaged: {error}. Run the command again to rewrite it.") from error
    if not isinstance(document, dict):
        raise DataError(f"{path} is damaged: expected a JSON object. Run the command again to rewrite it.")
    return str(document.get("kind")), document.get("schema_version", SCHEMA_VERSION)


def _validated(path: Path, record_type: type[RecordT]) -> RecordT:
    try:
        return record_type.model_validate_json(_text(path))
    except ValidationError as error:
        raise DataError(_damaged(path, error)) from error


def _thumbnails(path: Path) -> tuple[Thumbnail, ...]:
    if not path.exists():
        return ()
    try:
        thumbnails = TypeAdapter(list[Thumbnail]).validate_json(_text(path))
    except ValidationError as error:
        raise DataError(_damaged(path, error)) from error
    if len({tuple(answer.model for answer in each.answers) for each in thumbnails if each.answers}) > 1:
        raise DataError(f"{path} is damaged: its images have answers of different models. Run the command again.")
    for index, thumbnail in enumerate(thumbnails):
        size = _jpeg_size if thumbnail.jpeg_base64 else _png_size
        width, height = size(thumbnail.jpeg_base64 or thumbnail.png_base64, where=f"{path}, image {index}")
        if max(width, height) > LARGEST_THUMBNAIL_PIXELS:
            raise DataError(
                f"{path}, image {index}: {width} × {height} pixels; a report shows at most {LARGEST_THUMBNAIL_PIXELS} a "
                "side, to protect patients. Run the command again."
            )
    return tuple(thumbnails)


def _png_size(png_base64: str, *, where: str) -> tuple[int, int]:
    """Width and height in pixels from the first chunk of a PNG file."""
    try:
        data = base64.b64decode(png_base64, validate=True)
        if not data.startswith(_PNG_SIGNATURE):
            raise DataError(f"{where}: not a PNG file. Run the command again.")
        return struct.unpack(">II", data[16:24])
    except (binascii.Error, ValueError, struct.error) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: damaged ({error}). Run the command again.") from error


def _jpeg_size(jpeg_base64: str, *, where: str) -> tuple[int, int]:
    """Width and height in pixels from the frame header of a JPEG file; nothing is decoded."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(base64.b64decode(jpeg_base64, validate=True)), formats=["JPEG"]) as image:
            return image.size
    except UnidentifiedImageError as error:
        raise DataError(f"{where}: not a JPEG file. Run the command again.") from error
    except (binascii.Error, ValueError, OSError) as error:
        raise DataError(f"{where}: damaged ({error}). Run the command again.") from error


def _damaged(path: Path, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    location = f" at {where}" if where else ""
    return f"{path} is damaged: {first['msg']}{location}. Run the command again to rewrite it."
