r"""Characters that steer a terminal, turn text around or cannot be seen, shown as escapes such as ``\x1b``.

Names of files, classes and columns, headers of files and messages of libraries come from other people. Shown as they are,
they could move the cursor, hide or reorder what stands beside them, or write to the clipboard.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: control, format (direction, zero width), half of a pair (no UTF-8), line and paragraph separator."""

_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Joiner and fillers that Unicode counts as letters or marks, but that nobody sees."""

_THIN_SPACE = "\u202f"
"""Between thousands in numbers of our own; Python does not count it as printable."""

_JOINERS = frozenset("\u200c\u200d")
_VARIATION_SELECTOR = "\ufe0f"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")
_JOINING_SCRIPTS = (("\u0600", "\u1cff"), ("\ua800", "\uabff"), ("\U00010a00", "\U00011fff"))
_VIRAMA = 9  # canonical combining class


def escaped(character: str) -> str:
    r"""The escape that Python would write.

    >>> print(escaped("\x1b"), escaped("\u202e"), escaped("\n"))
    \x1b \u202e \n
    """
    return character.encode("unicode_escape").decode("ascii")


def visible(text: str, *, keep: str = "", escape: Callable[[str], str] = escaped) -> str:
    r"""``text`` with every character escaped that steers, reorders or is not seen; other text stays as it is.

    The joiners U+200C and U+200D stay inside emoji and inside words of scripts whose letters join (Persian, Hindi), where
    they are part of the spelling.

    Args:
        text: Text to show.
        keep: Characters that stay, such as line breaks of a layout of our own.
        escape: Function that gives the replacement of a character.

    >>> print(visible("scan\u202egnp.exe"), visible("a\nb"))
    scan\u202egnp.exe a\nb
    >>> visible("a\nb", keep="\n") == "a\nb"
    True
    """
    if "\n" in keep and "\n" in text:  # line by line, most of which have nothing to escape
        if is_plain(text.replace("\n", "")):
            return text
        return "\n".join(visible(line, keep=keep, escape=escape) for line in text.split("\n"))
    if is_plain(text):
        return text
    return "".join(
        escape(character) if _is_hidden(text, place) and character not in keep else character
        for place, character in enumerate(text)
    )


def is_plain(text: str) -> bool:
    """Whether ``visible`` leaves ``text``, and every part of it, as it is; False where that takes longer to find out."""
    shown = text if text.isprintable() else text.replace(_THIN_SPACE, " ")
    return shown.isprintable() and (text.isascii() or _BLANK_LETTERS.isdisjoint(text))


def storable(text: str) -> str:
    r"""``text`` as UTF-8 can hold it: bytes of a file name that are no UTF-8 become escapes.

    >>> print(storable("gr\udcfcn"), storable("grün"))
    gr\udcfcn grün
    """
    return text.encode("utf-8", errors="backslashreplace").decode("utf-8")


def _is_hidden(text: str, place: int) -> bool:
    character = text[place]
    if character in _JOINERS:
        return not _joins(text[max(place - 2, 0) : place].rstrip(_VARIATION_SELECTOR)[-1:], text[place + 1 : place + 2])
    return unicodedata.category(character) in _HIDDEN or character in _BLANK_LETTERS or _is_no_character(ord(character))


def _is_no_character(code: int) -> bool:
    """The last two of each plane, and 32 more, will never be characters, and have no place in a page."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _joins(before: str, after: str) -> bool:
    """Whether a joiner between these two characters has a meaning. Either may be missing."""
    if before and unicodedata.combining(before) == _VIRAMA:
        return True
    if not before or not after:
        return False
    if _is_emoji(before):
        return _is_emoji(after)
    return _is_of_joining_script(before) and _is_of_joining_script(after)


def _is_emoji(character: str) -> bool:
    return unicodedata.category(character) == "So" or _SKIN_TONES[0] <= character <= _SKIN_TONES[1]


def _is_of_joining_script(character: str) -> bool:
    is_letter = unicodedata.category(character)[0] in "LM"
    return is_letter and any(first <= character <= last for first, last in _JOINING_SCRIPTS)


# CSV files that a spreadsheet can open without running what stands in them.
#
# A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, whoever wrote it: a file name is
# enough. Such text is written with an apostrophe in front, which is taken off again when crossgraft reads the file. Text that
# begins with apostrophes before one of these gets one more, so that every text comes back as it was. Numbers stay numbers.
#
# The characters are those of OWASP (CSV injection: also tab, line breaks and the full-width forms, which spreadsheets of East
# Asia accept) and of OWASP ASVS (also NUL). White space before them is skipped here as some programs skip it.

_FORMULA = re.compile(r"'*(?:[\t\r\n\0]|\s*[=+\-@＝＋－＠])")
_QUOTED = re.compile(r'[,"\r\n]')


def guarded(text: str) -> str:
    """``text`` as a cell that no spreadsheet runs.

    >>> guarded("=1+1"), guarded("'=1"), guarded("'tis benign")
    ("'=1+1", "''=1", "'tis benign")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unguarded(cell: str) -> str:
    """The text that ``guarded`` was given.

    >>> unguarded("'=1+1"), unguarded("''=1"), unguarded("'tis benign")
    ('=1+1', "'=1", "'tis benign")
    """
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell[1:]) else cell


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], *, line_end: str = "\n") -> str:
    """A CSV file; text is guarded, None and NaN are empty cells.

    Args:
        header: Names of the columns.
        rows: Cells in the order of the columns.
        line_end: End of each line.

    >>> csv_text(["file", "value"], [["=a.png", -0.5], ["b,c.png", None]]).splitlines()
    ['file,value', "'=a.png,-0.5", '"b,c.png",']
    """
    return "".join(",".join(map(_cell, row)) + line_end for row in (header, *rows))


def frame_csv(frame: pd.DataFrame) -> str:
    """A table of numbers and text as a CSV file, without its index."""
    header = [str(name) for name in frame.columns]
    known = frame.notna().to_numpy().tolist()
    rows = zip(*(frame.iloc[:, place].array for place in range(len(header))), strict=True)
    cells = (
        [value if is_known else None for value, is_known in zip(row, row_known, strict=True)]
        for row, row_known in zip(rows, known, strict=True)
    )
    return csv_text(header, cells, line_end=os.linesep)


def csv_rows(text: str) -> tuple[list[str], list[dict[str, str]]]:
    """Names of the columns and the rows of a CSV file, unguarded; cells that a row lacks are empty.

    Raises:
        csv.Error: The text is no CSV.
    """
    lines = [[unguarded(cell) for cell in line] for line in csv.reader(io.StringIO(text, newline="")) if line]
    header, *rows = lines or [[]]
    return header, [dict(zip_longest(header, row[: len(header)], fillvalue="")) for row in rows]


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if not isinstance(value, str):
        return str(value)
    text = storable(guarded(value))
    # The writer of the standard library leaves a lone line break without quotes before Python 3.13 (and 3.12.3).
    return '"{}"'.format(text.replace('"', '""')) if _QUOTED.search(text) else text
