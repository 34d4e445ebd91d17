"""Names that people take for one: they differ only by case, white space, the form of letters or the spelling of a number."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from crossgraft.data.cells import plain_number, without_leading_zeros


class LookAlikes(NamedTuple):
    """Two or more names that become one when what they differ by is taken away.

    Attributes:
        names: Names, in the order in which they were given.
        differ_by: Differences in words, for example ``case and white space``.
    """

    names: tuple[str, ...]
    differ_by: str

    def listed(self, counts: Mapping[str, int] | None = None) -> str:
        """The names in running text, in quotation marks where their difference cannot be seen otherwise.

        Args:
            counts: Number of images of each, to be said behind the name.
        """
        quoted = [name if self.differ_by == "case" else f"“{name}”" for name in self.names]
        if counts is None:
            return " and ".join(quoted)
        return " and ".join(f"{shown} ({counts[name]})" for shown, name in zip(quoted, self.names, strict=True))


def _without_spaces(name: str) -> str:
    """White space, and characters that are not drawn at all, such as a byte order mark."""
    return "".join(letter for letter in name if not letter.isspace() and unicodedata.category(letter) != "Cf")


def _of_one_form(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _without_hyphens(name: str) -> str:
    """All hyphens, dashes and underscores as one, and none between a letter and a number; ``1-12`` is not ``11-2``."""
    alike = re.sub(r"[_\u2010-\u2015\u2212]", "-", name)
    return re.sub(r"(?<=[^\W\d])-+(?=\d)", "", alike)


_DIFFERENCES: Mapping[str, Callable[[str], str]] = {
    "case": str.casefold,
    "white space": _without_spaces,
    "the Unicode form of their letters (NFC, NFD)": _of_one_form,
    "leading zeros": without_leading_zeros,
    "the spelling of a number": plain_number,
}
"""What names may differ by, and what takes it away."""
_ID_DIFFERENCES: Mapping[str, Callable[[str], str]] = {"hyphens": _without_hyphens, **_DIFFERENCES}


def look_alikes(names: Sequence[str], *, are_ids: bool = False) -> list[LookAlikes]:
    """Groups of names that look alike, in the order of their first names: BKL and bkl, “MEL” and “MEL ”.

    Args:
        names: Names, each once.
        are_ids: Whether ``P-3``, ``P_3`` and ``P3`` look alike, too.
    """
    differences = _ID_DIFFERENCES if are_ids else _DIFFERENCES
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        alike[_without(differences, name)].append(name)
    return [LookAlikes(tuple(group), _difference(group, differences)) for group in alike.values() if len(group) > 1]


def _without(differences: Mapping[str, Callable[[str], str]], name: str) -> str:
    for take_away in differences.values():
        name = take_away(name)
    # Case may take letters apart (İ becomes i and a dot), which the form of the letters must not depend on.
    return _of_one_form(name) if _of_one_form in differences.values() else name


def _difference(group: Sequence[str], differences: Mapping[str, Callable[[str], str]]) -> str:
    """Each difference without which some of these names would still be two.

    Several may take the same away, as case and form do with the sign of the kelvin and a K; then the first one counts.
    """
    needed = [
        words
        for words in differences
        if _are_several(group, {name: take_away for name, take_away in differences.items() if name != words})
    ]
    alone = [words for words, take_away in differences.items() if not _are_several(group, {words: take_away})]
    return " and ".join(needed or alone[:1])


def _are_several(group: Sequence[str], differences: Mapping[str, Callable[[str], str]]) -> bool:
    return len({_without(differences, name) for name in group}) > 1
