"""Which column or array says whose image it is: one list of names for every source, and no unknown patient taken as one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from crossgraft.data.cells import is_empty, is_no_id
from crossgraft.errors import DataError, UsageError
from crossgraft.paths import shortened
from crossgraft.words.formatting import counted


class Confidential:
    """Base of objects that hold patients, ages or sites: shown by their class alone, and sent to no other process."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``.

        Raises:
            TypeError: Always.
        """
        raise TypeError(f"{type(self).__name__} holds what data say of people, and is not pickled. Pickle a Dataset.")


def group_numbers(groups: np.ndarray | None) -> np.ndarray | None:
    """0 … G−1 instead of names, in the order of the names: splits and folds come out as with the names themselves."""
    return None if groups is None else np.unique(groups, return_inverse=True)[1]


NO_GROUPS = "none"
"""What ``--group-column`` says where there are no groups, whatever columns are called."""

PATH_GROUPS = "path (--group-from)"
"""What groups are called that a regular expression found in paths."""

_FIRST = ("group", "groups", "patient", "patients", "patient_id", "subject", "subject_id", "lesion_id")
"""The most usual names: where there is one, the others are looked at no further."""

_OTHERS = re.compile(
    r"(patient|subject|person|participant|case|lesion|donor|writer)s?"
    r"(_?(id|ids|uid|no|nr|num|number|code|key|index|ref|hash|name|identifier|pseudonym))?"
)
"""In lower case, with an underscore for blanks and hyphens. ``patient_age`` and the like are properties, not patients."""


def is_group_name(name: str) -> bool:
    """Whether a column of this name holds patients, or the like.

    >>> [is_group_name(name) for name in ("Patient ID", "lesion_id", "caseNumber", "patient_age", "staircase")]
    [True, True, True, False, False]
    """
    return _plain(name) in _FIRST or _OTHERS.fullmatch(_plain(name)) is not None


def is_first_group_name(name: str) -> bool:
    """Whether it is one of the most usual names."""
    return _plain(name) in _FIRST


def find_groups(names: Sequence[str], *, taken: Collection[str | None], holder: str, kind: str) -> str | None:
    """The one name that holds patients; None where there is none.

    Args:
        names: Names of all columns or arrays that could be meant.
        taken: Those that hold something else, such as the labels.
        holder: Owner of the names, for the message.
        kind: Kind of the names in the plural: columns, arrays.

    Raises:
        DataError: Several could be meant.
    """
    known = [name for name in names if name not in taken and is_group_name(name)]
    candidates = [name for name in known if is_first_group_name(name)] or known
    if len(candidates) > 1:
        raise DataError(
            f"Several {kind} of {holder} could hold the groups: {', '.join(candidates)}. Name it with --group-column, or say "
            f"{NO_GROUPS}. {kind.capitalize()}: {', '.join(names)}."
        )
    return candidates[0] if candidates else None


def refuse_missing_groups(groups: Sequence[object] | np.ndarray, *, where: str, row_name: Callable[[int], str]) -> None:
    """Images of unknown patients are not of one patient, which a common empty name would make of them.

    Args:
        groups: One per row; missing ones are None, NaN, blank, or what says so (``is_no_id``).
        where: The column or array, for the message.
        row_name: Function that names row i.

    Raises:
        DataError: The group of a row is missing.
    """
    unnamed = [row for row, group in enumerate(groups) if is_no_id(group)]
    if unnamed:
        word = "" if is_empty(groups[unnamed[0]]) else f", which says {str(groups[unnamed[0]]).strip()},"
        raise DataError(
            f"The group is missing in {row_name(unnamed[0])}{word} ({where}), and in {counted(len(unnamed), 'row')} in all. "
            "Fill it in; an image of which nothing is known gets a group of its own."
        )


def groups_from_paths(paths: Sequence[str], pattern: str | None) -> np.ndarray | None:
    r"""The group of each image: what the parentheses of a regular expression match in its path, or the whole match.

    Args:
        paths: Path of each image below the data, with slashes.
        pattern: Regular expression, such as ``patient(\d+)``; None: no groups.

    Raises:
        UsageError: It is no regular expression.
        DataError: It matches nothing in some of the paths, or a word that says that nothing is known.

    >>> groups_from_paths(["train/p7_left.png", "train/p7_right.png"], r"p(\d+)_").tolist()
    ['7', '7']
    """
    if pattern is None:
        return None
    try:
        expression = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--group-from {pattern} is no regular expression: {error}.") from error
    matches = [expression.search(path) for path in paths]
    groups = ["" if match is None else _name_in(match) for match in matches]
    unnamed = [row for row, group in enumerate(groups) if is_no_id(group.strip("/ "))]
    if unnamed:
        raise DataError(
            f"--group-from {pattern} finds no group in {len(unnamed)} of {len(paths)} paths, the first is "
            f"{shortened(paths[unnamed[0]])}. It is searched in the path below the data; put what names the group in "
            "parentheses."
        )
    return np.asarray(groups)


def _name_in(match: re.Match[str]) -> str:
    """What parentheses matched, be it nothing; the whole match where none of them took part."""
    parts = [part for part in match.groups() if part is not None]
    return "/".join(part or "" for part in match.groups()) if parts else match[0]


def _plain(name: str) -> str:
    return re.sub(r"[\s.-]+", "_", name.strip().casefold())
