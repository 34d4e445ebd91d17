"""CSV files that a spreadsheet can open without running what stands in them.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-`` or ``@`` for a formula, whoever wrote it: a file name is
enough. Such text is written with an apostrophe in front, which is taken off again when crossgraft reads the file. Text that
begins with apostrophes before one of these gets one more, so that every text comes back as it was. Numbers stay numbers.

The characters are those of OWASP (CSV injection: also tab, line breaks and the full-width forms, which spreadsheets of East
Asia accept) and of OWASP ASVS (also NUL). White space before them is skipped here as some programs skip it.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from crossgraft.words.visible import storable

if TYPE_CHECKING:
    import pandas as pd

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
