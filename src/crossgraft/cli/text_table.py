"""Plain text tables that fit a terminal; the same in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

WIDTH = 100
"""Columns that a terminal is expected to have."""


def wrap(text: str, *, indent: str = "") -> str:
    """Break a sentence into lines of at most ``WIDTH`` columns."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> str:
    """Align columns with two spaces between them; columns named in ``right`` are right-aligned.

    >>> print(text_table(["rank", "model"], [["1", "a"], ["2", "long name"]], right=["rank"]))
    rank  model
       1  a
       2  long name
    """
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(header, cells, widths, strict=True)
        ]
        return "  ".join(aligned).rstrip()

    return "\n".join(line(cells) for cells in [header, *rows])
