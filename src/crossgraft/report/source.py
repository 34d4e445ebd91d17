"""One run as the sections see it, and no absolute path of it: those name people, institutes and patients."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Generic, TypeVar, cast

from crossgraft.options.command import TypedCommand
from crossgraft.records.base import Record, RunRecord, Thumbnail

RecordT = TypeVar("RecordT", bound=Record, covariant=True)
OtherT = TypeVar("OtherT", bound=Record)


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


_START = r"(?:/|~/|[A-Za-z]:[\\/]|\\\\)"
_QUOTED = re.compile(rf"(?P<quote>['\"])(?P<path>{_START}[^'\"\n]+)(?P=quote)")
# Not after a word or a slash, so that "and/or", "a/b.csv" and "https://…" stay as they are.
_BARE = re.compile(rf"(?<![\w./:\\…]){_START}(?:\\.|[^\s'\",;()\[\]])+")


def without_absolute_paths(text: str) -> str:
    r"""``text`` with every absolute path cut to ``…/`` and its last part.

    >>> without_absolute_paths("rank /home/jane/breast.npz --out 'C:\\my runs\\a' --models zoo/b.yaml")
    "rank …/breast.npz --out '…/a' --models zoo/b.yaml"
    """
    text = _QUOTED.sub(lambda match: match["quote"] + _last_part(match["path"]) + match["quote"], text)
    return _BARE.sub(lambda match: _last_part(match[0]), text)


def configuration_without_absolute_paths(value: object) -> object:
    """The same for every text inside nested lists and mappings."""
    if isinstance(value, str):
        # A whole value may hold spaces, which the pattern for running text takes as the end of a path.
        return _last_part(value) if re.match(_START, value) else without_absolute_paths(value)
    if isinstance(value, list | tuple):
        return [configuration_without_absolute_paths(item) for item in cast("list[object]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).items()
        return {key: configuration_without_absolute_paths(item) for key, item in items}
    return value


def _last_part(path: str) -> str:
    kind = PurePosixPath if path.startswith(("/", "~")) else PureWindowsPath
    return "…/" + kind(path).name
