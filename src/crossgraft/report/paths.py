"""Absolute paths leave the page: they name people, institutes and patients."""

from __future__ import annotations

import re
from pathlib import PurePosixPath, PureWindowsPath
from typing import cast

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
