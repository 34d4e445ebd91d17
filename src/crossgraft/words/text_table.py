"""Plain text that fits the terminal: sentences in lines, and tables."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import repeat

from crossgraft.words.visible import is_plain, visible

WIDTH = 100
"""Columns of a pipe or a file; sentences are never longer, because long lines are hard to read."""
NARROWEST = 40
"""Columns that text needs at least; a narrower terminal breaks the lines itself."""

_GAP = "  "
_MOST_PIECES = 3
_MARKS = "_-./:=,"
"""A long name is broken after one of these, where it has one."""
_NARROWEST = 12
"""Columns that a text keeps where a table has to become narrower."""


def terminal_width() -> int:
    """Columns of the terminal that stdout is, or of the variable ``COLUMNS``; ``WIDTH`` where there is neither."""
    return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def sentence_width() -> int:
    """Columns of a line of text: those of the terminal, but at most ``WIDTH``."""
    return min(WIDTH, terminal_width())


def wrap(text: str, *, indent: str = "", first: str = "", less: int = 0) -> str:
    """Break a sentence, with the names in it, into lines that fit the terminal.

    Args:
        text: Without line breaks of its own; those of names are shown as escapes.
        indent: Before each line but the first.
        first: Before the first line.
        less: Columns that each line leaves free.
    """
    return textwrap.fill(
        visible(text),
        sentence_width() - less,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


_SENTENCE_ENDS = re.compile(r"(?<![.\s]\w)[.!?] (?=[A-Z0-9])")


def wrap_in(num_lines: int, text: str, *, indent: str = "", first: str = "", less: int = 0) -> list[str]:
    """``wrap`` in at most so many lines: the first sentences that fit whole, or else the beginning of the first one.

    Args:
        num_lines: At least 1.
        text: The most important sentence first.
        indent: Before each line but the first.
        first: Before the first line.
        less: Columns that each line leaves free.
    """
    lines = wrap(text, indent=indent, first=first, less=less).split("\n")
    if len(lines) <= num_lines:
        return lines
    ends = [match.end() - 1 for match in _SENTENCE_ENDS.finditer(text)]
    for end in reversed(ends):
        shorter = wrap(text[:end], indent=indent, first=first, less=less).split("\n")
        if len(shorter) <= num_lines:
            return shorter
    last = lines[num_lines - 1]
    if len(last) + 2 > sentence_width() - less:
        last = last.rpartition(" ")[0]
    return [*lines[: num_lines - 1], f"{last.rstrip(' ,;:.')} …"]


def place(what: str, path: object) -> str:
    """Where something lies, on a line of its own that is not broken.

    >>> place("Report", "runs/check/report.html")
    'Report: runs/check/report.html'
    """
    return f"{what}: {visible(str(path))}"


def shorten(text: str, width: int) -> str:
    """Cut the middle of a long name.

    >>> shorten("mobilenetv2_100.imagenet", 12)
    'mobile…genet'
    """
    if len(text) <= width:
        return text
    head = width // 2
    return f"{text[:head]}…{text[len(text) - (width - head - 1) :]}"


def text_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = (), is_whole: bool = False
) -> str:
    """Align columns with two spaces between them.

    A table that is too wide gets headings of several lines; then texts and names of several lines, or very long names without
    their middle; then the last columns are left out, and named below. Numbers keep all their digits.

    Args:
        header: Headings.
        rows: One text a column.
        right: Headings of the columns that are right-aligned, which keep all their characters.
        is_whole: Whether nothing is broken or cut, however wide it gets, because names are to be copied.

    >>> print(text_table(["rank", "model"], [["1", "a"], ["2", "long name"]], right=["rank"]))
    rank  model
       1  a
       2  long name
    """
    if not is_plain("".join(map("".join, (header, *rows)))):
        header, *rows = [[visible(cell) for cell in line] for line in (header, *rows)]
    is_right = [name in right for name in header]
    columns: list[Sequence[str]] = list(zip(*rows, strict=True)) if rows else [()] * len(header)
    needed = [max(map(len, column), default=0) for column in columns]
    longest_words = [max(map(len, name.split()), default=0) for name in header]
    widest = [max(len(name), longest) for name, longest in zip(header, needed, strict=True)]
    width = _total(widest) if is_whole else terminal_width()
    unbroken = list(map(max, needed, longest_words))
    least = [own if right else _NARROWEST for own, right in zip(unbroken, is_right, strict=True)]
    widths = _narrowed(_narrowed(widest, unbroken, width), least, width)
    shown = next((number for number in range(len(header), 1, -1) if _total(widths[:number]) <= width), 1)
    if shown < len(header):  # what the others leave goes back to those that stay
        widths = _narrowed(_narrowed(widest[:shown], unbroken[:shown], width), least[:shown], width)
    if widths == widest[:shown]:  # the usual case, and a fast one for 100 000 rows
        columns = [(name, *column) for name, column in zip(header[:shown], columns, strict=False)]
    else:
        columns = list(
            zip(*(line for cells in (header, *rows) for line in _lines(cells[:shown], widths, cells is header)), strict=True)
        )
    padded = [
        map(str.rjust if right else str.ljust, column, repeat(own))
        for column, own, right in zip(columns, widths, is_right, strict=False)
    ]
    lines = [_GAP.join(line).rstrip() for line in zip(*padded, strict=True)]
    left_out = [wrap(f"Columns left out here: {', '.join(header[shown:])}.")] if shown < len(header) else []
    return "\n".join([*lines, *left_out])


def _lines(cells: Sequence[str], widths: Sequence[int], is_heading: bool) -> Iterable[Sequence[str]]:
    """One row of the table; headings of fewer lines stand beside the last line of the others."""
    broken = [_broken(cell, width) for cell, width in zip(cells, widths, strict=False)]
    height = max(map(len, broken))
    filled = [[""] * (height - len(each)) + each if is_heading else each + [""] * (height - len(each)) for each in broken]
    return zip(*filled, strict=True)


def _broken(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    parts = textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False)
    return [piece for part in parts for piece in _pieces(part, width)]


def _pieces(name: str, width: int) -> list[str]:
    """A long name in a few pieces, so that it differs from others; one that needs more of them loses its middle.

    >>> _pieces("mobilenetv2_100.imagenet_qat", 12)
    ['mobilenetv2_', '100.imagenet', '_qat']
    >>> _pieces("rho_sim:placebo=true", 19)
    ['rho_sim:placebo=', 'true']
    """
    pieces: list[str] = []
    rest = name
    while len(rest) > width:
        end = max(rest.rfind(mark, 0, width) for mark in _MARKS) + 1
        end = end if end >= width // 2 else width
        pieces, rest = [*pieces, rest[:end]], rest[end:]
    pieces.append(rest)
    return pieces if len(pieces) <= _MOST_PIECES else [shorten(name, width)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrowed(widths: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """Take from the columns that are furthest above their least width until all fit, or none can give more."""
    narrowed = list(widths)
    while _total(narrowed) > width:
        spare = [own - smallest for own, smallest in zip(narrowed, least, strict=True)]
        if max(spare) <= 0:
            break
        narrowed[spare.index(max(spare))] -= 1
    return narrowed
