"""The keys of ``rank_pattern`` and ``alpha_pattern`` of PEFT: regular expressions, of which only the simple ones are read.

A file of somebody else is never compiled as an expression: Python's may take forever. What is here goes along the name once
for each part of the pattern, and remembers all places that were reached.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crossgraft.errors import DataError
from crossgraft.paths import shortened

_DEEPEST = 20
_TOKEN = re.compile(r"\.\*|\.|\\d\+|\\d|\\[^A-Za-z0-9]|\(\?:|[()|^$]|[^\\\[\]{}*+?()|^$.]")
_QUANTIFIERS = "*+?{"
_READ = r"names, '.', '.*', '\d', '\d+', '|', '^', '$', groups, and a backslash before a sign"


@dataclass(frozen=True)
class _Group:
    """Alternatives, each a sequence of tokens and groups."""

    alternatives: list[list[str | _Group]]


def of_pattern(pattern: Mapping[str, Any], name: str, default: Any) -> Any:
    """The value of the first key that is, as a regular expression, the name or its last words."""
    starts = {0, *(place + 1 for place, letter in enumerate(name) if letter == ".")}
    return next((value for key, value in pattern.items() if len(name) in _ends(_parsed(key), name, starts)), default)


def refuse_unread_patterns(pattern: Mapping[str, Any], where: str) -> None:
    """Raise if a key is more than the simple expressions that are read here.

    Args:
        pattern: Pattern made of such keys.
        where: The file and the setting, for the message.

    Raises:
        DataError: The first such key is quoted.
    """
    for key in pattern:
        try:
            _parsed(key)
        except ValueError as error:
            raise DataError(
                f"{where} holds a pattern that cannot be read: {shortened(key)} ({error}). Write {_READ} only, or the full "
                "names of the layers."
            ) from error


def _parsed(key: str) -> _Group:
    """The pattern as a group; ValueError says what is not read."""
    whole = _Group([[]])
    opened = [whole]
    place = 0
    while place < len(key):
        token = _TOKEN.match(key, place)
        if token is None:
            raise ValueError(f"it has {key[place]} where that is not read")
        place = token.end()
        _add(token[0], opened)
        if token[0] == ")" and key[place : place + 1] in tuple(_QUANTIFIERS):
            raise ValueError("it repeats a group")
    if len(opened) > 1:
        raise ValueError("a group is not closed")
    return whole


def _add(token: str, opened: list[_Group]) -> None:
    """Put a token into the innermost group that is open."""
    if token in ("(", "(?:"):
        if len(opened) > _DEEPEST:
            raise ValueError("its groups are nested too deeply")
        group = _Group([[]])
        opened[-1].alternatives[-1].append(group)
        opened.append(group)
    elif token == ")":
        if len(opened) == 1:
            raise ValueError("a group is closed that was not opened")
        opened.pop()
    elif token == "|":
        opened[-1].alternatives.append([])
    else:
        opened[-1].alternatives[-1].append(token)


def _ends(group: _Group, name: str, starts: set[int]) -> set[int]:
    """Where a match may end that begins at one of ``starts``."""
    ends: set[int] = set()
    for parts in group.alternatives:
        places = starts
        for part in parts:
            places = _after(part, name, places) if isinstance(part, str) else _ends(part, name, places)
        ends |= places
    return ends


def _after(token: str, name: str, places: set[int]) -> set[int]:
    if token == "^":
        return places & {0}
    if token == "$":
        return places & {len(name)}
    if token == ".*":
        return set(range(min(places), len(name) + 1)) if places else places
    if token == r"\d+":
        return _after_digits(name, places)
    return {place + 1 for place in places if place < len(name) and _is_one(token, name[place])}


def _after_digits(name: str, places: set[int]) -> set[int]:
    reached: set[int] = set()
    step = _after(r"\d", name, places)
    while not step <= reached:
        reached |= step
        step = _after(r"\d", name, step)
    return reached


def _is_one(token: str, letter: str) -> bool:
    """Whether it is a letter that a token of one letter stands for."""
    if token == ".":
        return True
    return letter.isdecimal() if token == r"\d" else letter == token[-1]
