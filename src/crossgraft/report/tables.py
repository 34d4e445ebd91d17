"""A table of the page: what a cell shows, how it sorts, and its CSV twin with every digit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from crossgraft.words.formatting import MISSING, NumberFormat, count
from crossgraft.words.visible import csv_text

Value = str | int | float | None


@dataclass(frozen=True)
class Column:
    """One column; ``csv_titles`` names its fields in the CSV when they differ from the heading.

    The terminal, which is narrow, leaves out columns that are ``page_only``, and may have no room for the last ones; it has those
    of a smaller ``place`` first.
    """

    title: str
    numeric: bool = False
    csv_titles: tuple[str, ...] = ()
    page_only: bool = False
    place: int = 0

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the CSV fields that this column fills."""
        return self.csv_titles or (self.title,)


@dataclass(frozen=True)
class Cell:
    """What is shown, and the exact values behind it (one for each CSV field of the column)."""

    text: str
    values: tuple[Value, ...]
    strong: bool = False
    href: str | None = None

    @property
    def sort_key(self) -> float | None:
        """The number to sort by; None when there is none, which sorts last."""
        value = self.values[0]
        return value if isinstance(value, int | float) and math.isfinite(value) else None


@dataclass(frozen=True)
class Table:
    """Rows under columns, with a caption, notes and a link to the same rows as CSV.

    Args:
        caption: Content of the table.
        columns: The headings.
        rows: Cells in the order of the columns.
        file_name: Name of the CSV file, without its suffix.
        row_heading: Index of the column that names a row.
        muted_rows: Indices of rows that are controls, shown quieter.
        notes: Sentences under the table: why something is missing, what a mark means.
        page_only: Whether the terminal leaves it out.
    """

    template: ClassVar[str] = "block_table.html"

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    file_name: str
    row_heading: int = 0
    muted_rows: frozenset[int] = frozenset()
    notes: Sequence[str] = ()
    page_only: bool = False

    @property
    def csv_uri(self) -> str:
        """The table as a ``data:`` address of a CSV file in UTF-8."""
        header = [field for column in self.columns for field in column.fields]
        rows = [[value for cell in row for value in cell.values] for row in self.rows]
        return "data:text/csv;charset=utf-8," + quote(csv_text(header, rows, line_end="\r\n"))


RowT = TypeVar("RowT")
INTERVAL = Column("95 % interval", numeric=True, csv_titles=("low", "high"))
"""Both ends of an interval."""


def table_of(
    rows: Iterable[RowT],
    columns: Sequence[tuple[Column, Callable[[RowT], Cell]]],
    *,
    caption: str,
    file_name: str,
    row_heading: int = 0,
    muted_rows: frozenset[int] = frozenset(),
    notes: Sequence[str] = (),
    page_only: bool = False,
) -> Table:
    """One row for each of ``rows``; a column is its heading and what its cells show. Other arguments as in ``Table``."""
    return Table(
        caption=caption,
        columns=[column for column, _ in columns],
        rows=[[cell(row) for _, cell in columns] for row in rows],
        file_name=file_name,
        row_heading=row_heading,
        muted_rows=muted_rows,
        notes=notes,
        page_only=page_only,
    )


@dataclass(frozen=True)
class Shown:
    """How a field of a record shows itself: ``accuracy: Annotated[float, Shown("Accuracy", NumberFormat(3))]``.

    Attributes:
        title: Heading of its column.
        as_text: Decimals of a number, or what makes the cell; None: ``yes_or_no`` for a bool, else ``words``.
        csv_titles: As in ``Column``.
        page_only: As in ``Column``.
    """

    title: str
    as_text: NumberFormat | Callable[[Any], Cell] | None = None
    csv_titles: tuple[str, ...] = ()
    page_only: bool = False

    @property
    def column(self) -> Column:
        """Its column; numbers stand to the right."""
        numeric = self.as_text not in (None, words, yes_or_no)
        return Column(self.title, numeric=numeric, csv_titles=self.csv_titles, page_only=self.page_only)

    def cell(self, value: Any) -> Cell:
        """The cell of one value."""
        if isinstance(self.as_text, NumberFormat):
            return number(value, self.as_text)
        if self.as_text is not None:
            return self.as_text(value)
        return yes_or_no(value) if isinstance(value, bool) else words(value)


def columns_of(record_type: type[BaseModel], *fields: str) -> list[tuple[Column, Callable[[Any], Cell]]]:
    """The columns of ``fields``, as ``table_of`` takes them, by what their annotations say."""
    by_name = {name: x for name in fields for x in record_type.model_fields[name].metadata if isinstance(x, Shown)}
    if untold := [name for name in fields if name not in by_name]:
        raise LookupError(f"{record_type.__name__} does not say how to show {', '.join(untold)}.")
    return [(shown.column, lambda row, name=name, shown=shown: shown.cell(getattr(row, name))) for name, shown in by_name.items()]


def words(text: str | None, *, strong: bool = False, href: str | None = None) -> Cell:
    """A cell of text; a dash for None."""
    return Cell(text=MISSING if text is None else text, values=(text,), strong=strong, href=href)


def number(value: float | None, as_text: NumberFormat, *, strong: bool = False) -> Cell:
    """A cell with one number."""
    return Cell(text=as_text(value), values=(value,), strong=strong)


def whole(value: int | None, text: str | None = None) -> Cell:
    """A cell with a count or a rank, shown as ``text`` if given."""
    shown = MISSING if value is None else str(value)
    return Cell(text=shown if text is None else text, values=(value,))


def counts(value: int | None) -> Cell:
    """A cell with a count, its digits in groups of three."""
    return whole(value, None if value is None else count(value))


def interval(low: float | None, high: float | None, as_text: NumberFormat) -> Cell:
    """A cell with both ends of an interval; it sorts by the lower one."""
    return Cell(text=as_text.interval(low, high), values=(low, high))


def yes_or_no(value: bool | None) -> Cell:
    """A cell that answers a question; a dash when it was not asked."""
    return words(None if value is None else "yes" if value else "no")
