"""Plain text tables that fit a terminal; the same in a pipe."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

from crossgraft.words.visible import visible

WIDTH = 100
"""Columns that a terminal is expected to have."""


def wrap(text: str, *, indent: str = "", first: str = "") -> str:
    """Break a sentence, with the names in it, into lines of at most ``WIDTH`` columns.

    Args:
        text: Without line breaks of its own; those of names are shown as escapes.
        indent: Before each line but the first.
        first: Before the first line.
    """
    return textwrap.fill(
        visible(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def place(what: str, path: object) -> str:
    """Where something lies, on a line of its own that is not broken.

    >>> place("Report", "runs/check/report.html")
    'Report: runs/check/report.html'
    """
    return f"{what}: {visible(str(path))}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> str:
    """Align columns with two spaces between them; columns named in ``right`` are right-aligned.

    >>> print(text_table(["rank", "model"], [["1", "a"], ["2", "long name"]], right=["rank"]))
    rank  model
       1  a
       2  long name
    """
    aligned_right = [name in right for name in header]
    header, *rows = [[visible(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        aligned = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for is_right, cell, width in zip(aligned_right, cells, widths, strict=True)
        ]
        return "  ".join(aligned).rstrip()

    return "\n".join(line(cells) for cells in [header, *rows])
