"""Kinds of reports: record, heading, sections, and which the terminal shows; and runs of them, read from their folders."""

from __future__ import annotations

import base64
import binascii
import io
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from crossgraft.errors import DataError, RunDirectoryError
from crossgraft.paths import read_whole
from crossgraft.records.base import SCHEMA_VERSION, Record, RunRecord, Thumbnail
from crossgraft.registry import Registry
from crossgraft.report.blocks import Block, Heading, Section
from crossgraft.report.checklists import AnswerOf, Topic
from crossgraft.report.source import Source

SectionBuilder = Callable[[Source[Any]], Section | None]
"""Makes one section, or None when the record has nothing for it."""


@dataclass(frozen=True)
class Kind:
    """One kind of report.

    Attributes:
        record_type: Its record.
        heading: What the page begins with.
        builders: Its sections in the order of the page.
        terminal: What the terminal shows of it, the answer last; the same builders, or others where a page shows a figure.
        only_in_the_file: Fields that are left out of the copy of the record on the page: thousands of numbers that no reader of
            it needs.
        together: What a page of several runs of this kind shows of all of them, above each by itself; they come with the number
            that the page gives them.
        tables_answer: Whether its tables are what was asked for, so that a terminal shows them without ``--verbose``.
        refuse: Raises ``DataError`` for a record, read from a file, that contradicts itself.
        answers: What a record says about topics of checklists; empty: nothing that such guidelines ask for.
    """

    record_type: type[Record]
    heading: Callable[[Source[Any]], Heading]
    builders: Sequence[SectionBuilder]
    terminal: Sequence[SectionBuilder]
    only_in_the_file: tuple[str, ...] = ()
    tables_answer: bool = False
    refuse: Callable[[Any, Path], None] | None = None
    together: Callable[[Mapping[int, Source[Any]]], Sequence[Block]] | None = None
    answers: Mapping[Topic, AnswerOf] = field(default_factory=dict[Topic, AnswerOf], hash=False)

    @property
    def name(self) -> str:
        """What the field ``kind`` of its record says."""
        return str(self.record_type.model_fields["kind"].default)


KINDS: Registry[Kind] = Registry("kind of report", group="crossgraft.reports", plugin_type=Kind, rooms="page:REPORT")
"""Kind of record (its field ``kind``) → how it is shown; other packages add theirs through the entry point."""


def kind_of(source: Source[Any]) -> Kind:
    """The kind of a run that was read."""
    return KINDS.get(source.record.kind, room="" if source.run is None else source.run.command)


AnyRecord = TypeVar("AnyRecord", bound=Record)
LARGEST_THUMBNAIL_PIXELS = 96
_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def read_run(directory: Path, *, prefix: str = "", is_at_home: bool = True) -> Source[Any]:
    """Read ``run.json``, ``report.json`` and, when there, ``thumbnails.json``.

    Args:
        directory: A run directory.
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
    kind = KINDS.find(name, room=run.command)
    if kind is None:
        raise DataError(f"{report} is a report of kind {name!r}; known kinds: {', '.join(KINDS.names())}.")
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


def _validated(path: Path, record_type: type[AnyRecord]) -> AnyRecord:
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
    except (binascii.Error, ValueError, OSError, Image.DecompressionBombError) as error:
        raise DataError(f"{where}: damaged ({error}). Run the command again.") from error


def _damaged(path: Path, error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    location = f" at {where}" if where else ""
    return f"{path} is damaged: {first['msg']}{location}. Run the command again to rewrite it."
