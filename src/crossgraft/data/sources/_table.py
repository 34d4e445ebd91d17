"""Reading a CSV or TSV file, or lines of JSON, as text, and finding its columns by the names that people give them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from crossgraft.data._groups import NO_GROUPS, Confidential, find_groups
from crossgraft.data.class_names import whole_letters
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension
from crossgraft.data.sources._labels import PATH_COLUMNS, RARER_PATH_COLUMNS
from crossgraft.errors import DataError, nearest_names
from crossgraft.words.visible import unguarded

TABLE_EXTENSIONS = (".csv", ".tsv", ".jsonl")
_DELIMITERS = (",", "\t", ";", "|")
_LINE_ADVICE = 'Write one object per line, such as {"file_name": "1.png", "label": "benign"}.'
_EXCEL_SEPARATOR = re.compile(r"[\r\n]*\"?sep=([,;|\t])\"?[ ;,\t]*(\r\n|\r|\n)", re.IGNORECASE)
"""What Excel wants in the first line to know the separator; it is no row."""


@dataclass(frozen=True, repr=False)
class Header(Confidential):
    """What columns there are.

    Attributes:
        name: Name of the data that have them.
        columns: Column names as written.
    """

    name: str
    columns: tuple[str, ...]

    def listed(self) -> str:
        """All columns, for a message."""
        return f"Columns: {', '.join(self.columns)}."


@dataclass(frozen=True, repr=False)
class TextTable(Header):
    """Cells as text, without leading and trailing blanks.

    Attributes:
        rows: One tuple of cells per row.
        line_numbers: Line of the file in which each row ends; the header is line 1.
    """

    rows: tuple[tuple[str, ...], ...]
    line_numbers: tuple[int, ...]

    def listed(self) -> str:
        """All columns, for a message.

        Raises:
            DataError: The first line looks like something else than their names.
        """
        _refuse_data_as_header(self.name, self.columns)
        return super().listed()

    def column(self, name: str) -> list[str]:
        """The cells of one column."""
        position = self.columns.index(name)
        return [row[position] for row in self.rows]

    def keep(self, rows: Sequence[int]) -> TextTable:
        """Only these rows."""
        kept, numbers = tuple(self.rows[i] for i in rows), tuple(self.line_numbers[i] for i in rows)
        return TextTable(self.name, self.columns, kept, numbers)

    def row_name(self, row: int) -> str:
        """How to call a row in a message, so that it is found in an editor."""
        return f"line {self.line_numbers[row]} of {self.name}"


def read_table(path: Path) -> TextTable:
    """Read a table whose first line names the columns; comma, semicolon, tab or | separate the cells, as ``sep=`` above says.

    A ``.jsonl`` file has one JSON object per line, whose names are the columns; what a line lacks, and null, is an empty cell.

    Raises:
        DataError: The file is empty, not UTF-8 text, a row has more or fewer cells than the header, or a line is no object.
    """
    try:
        text = whole_letters(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"The table {path.name} is not UTF-8 text (byte {error.start}). Save it in UTF-8.") from error
    if not text.strip():
        raise DataError(f"The table {path.name} is empty.")
    if text.count("\0") >= len(text) // 3:  # half of the characters of most languages; a path with one is named in its row
        raise DataError(f"The table {path.name} is UTF-16. Save it in UTF-8.")
    if path.suffix.casefold() == ".jsonl":
        return _table_of_lines(path.name, text)
    mark = _EXCEL_SEPARATOR.match(text)
    text, first_line = (text, 0) if mark is None else (text[mark.end() :], 1)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text) if mark is None else mark[1], strict=True)
    try:
        filled = [(tuple(map(_plain, row)), reader.line_num + first_line) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        line = reader.line_num + first_line
        raise DataError(f"The table {path.name} is damaged near line {line}: {error}.") from error
    if not filled:
        raise DataError(f"The table {path.name} is empty.")
    (columns, _), *numbered = filled
    _refuse_bad_shape(path.name, columns, numbered)
    return TextTable(path.name, columns, tuple(row for row, _ in numbered), tuple(number for _, number in numbered))


def _table_of_lines(name: str, text: str) -> TextTable:
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    rows = [(_object_in_line(name, number, line), number) for number, line in lines]
    columns = tuple(dict.fromkeys(key for row, _ in rows for key in row))
    if not columns:
        raise DataError(f"The lines of {name} name no columns. {_LINE_ADVICE}")
    cells = tuple(tuple(row.get(column, "") for column in columns) for row, _ in rows)
    return TextTable(name, columns, cells, tuple(number for _, number in rows))


def _object_in_line(name: str, number: int, line: str) -> dict[str, str]:
    """Its values as a CSV file would hold them; lists and objects as JSON."""

    def refuse_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
        twice = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]
        if twice:
            raise DataError(f"Line {number} of {name} says {twice[0]} twice. Keep one.")
        return dict(pairs)

    try:
        parsed: object = json.loads(line, object_pairs_hook=refuse_twice)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"Line {number} of {name} is no JSON. {_LINE_ADVICE}") from error
    if not isinstance(parsed, dict):
        raise DataError(f"Line {number} of {name} is no JSON object. {_LINE_ADVICE}")
    values = cast("dict[str, object]", parsed)
    return {key.strip(): _cell(value) for key, value in values.items()}


def _cell(value: object) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _delimiter(text: str) -> str:
    """What stands oftenest in both of the first two lines: a name of a column may hold commas, too."""
    header, second = (*re.split(r"[\r\n]+", text.lstrip("\r\n"), maxsplit=2), "")[:2]
    return max(_DELIMITERS, key=lambda mark: (min(header.count(mark), second.count(mark)), header.count(mark)))


def find_column(
    table: Header, wanted: str | None, *, kind: str, usual_names: Sequence[str], choose: str, rarer_names: Sequence[str] = ()
) -> str | None:
    """The column called ``wanted``, or else the one column with a usual name, or else the one with a rarer name.

    Args:
        table: Columns that are searched.
        wanted: Name that the user gave, if any.
        kind: Content of the column, for messages.
        usual_names: Names that are recognised, in lower case.
        choose: Instruction how to name the column, for messages.
        rarer_names: Names that are recognised where no column has a usual one.

    Returns:
        The column, or None if no column has such a name.

    Raises:
        DataError: The column ``wanted`` does not exist, or several columns could be meant; all columns are
            listed, unless the header looks like a row of data.
    """
    if wanted is not None:
        if wanted in table.columns:
            return wanted
        listed = table.listed()
        near = nearest_names(wanted, table.columns)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise DataError(f"The table {table.name} has no column {wanted}.{hint} {listed}")
    candidates = _called(table, usual_names) or _called(table, rarer_names)
    if len(candidates) > 1:
        listed = table.listed()
        raise DataError(f"Several columns of {table.name} could hold the {kind}: {', '.join(candidates)}. {choose} {listed}")
    return candidates[0] if candidates else None


def _called(table: Header, names: Sequence[str]) -> list[str]:
    alike = {_letters_alone(name) for name in names}
    return [column for column in table.columns if _letters_alone(column) in alike]


def find_group_column(table: Header, wanted: str | None, *, taken: Collection[str | None]) -> str | None:
    """The column of patients; None where there is none, or where the user says so.

    Raises:
        DataError: As ``find_column``; the message names the way out.
    """
    if wanted == NO_GROUPS:
        return None
    if wanted is not None:
        return find_column(table, wanted, kind="groups", usual_names=(), choose="")
    return find_groups(table.columns, taken=taken, holder=table.name, kind="columns")


def require_column(
    table: Header, wanted: str | None, *, kind: str, usual_names: Sequence[str], choose: str, rarer_names: Sequence[str] = ()
) -> str:
    """Like ``find_column``, for a column that must be there.

    Raises:
        DataError: No column, or several columns, could hold the ``kind``; all columns are listed.
    """
    column = find_column(table, wanted, kind=kind, usual_names=usual_names, choose=choose, rarer_names=rarer_names)
    if column is None:
        listed, usual = table.listed(), ", ".join(usual_names)
        raise DataError(f"No column of {table.name} holds the {kind} (looked for {usual}). {choose} {listed}")
    return column


def require_path_column(table: Header, wanted: str | None) -> str:
    """The column of image files. Arguments and errors as of ``require_column``."""
    looks = [name for name in table.columns if wanted is None and isinstance(table, TextTable) and _names_images(table, name)]
    choose = f"Name it with --path-column{f' {looks[0]}, whose cells look like files' if len(looks) == 1 else ''}."
    return require_column(
        table, wanted, kind="image files", usual_names=PATH_COLUMNS, choose=choose, rarer_names=RARER_PATH_COLUMNS
    )


def _names_images(table: TextTable, column: str) -> bool:
    """Whether every cell of a column ends as an image file does."""
    extensions = {*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS}
    return bool(table.rows) and all(file_extension(cell) in extensions for cell in table.column(column))


def _refuse_data_as_header(name: str, columns: Sequence[str]) -> None:
    """Raise if the names of columns look like a row of data, without a word of them: they may be about a patient."""
    looks = [(number, kind) for number, cell in enumerate(columns, start=1) if (kind := _kind_of_data(cell))]
    if looks:
        number, kind = looks[0]
        raise DataError(
            f"The table {name} seems to have no header: cell {number} of its first line is {kind}, not the name of a "
            "column. Add a line above it that names the columns, for example path,label,patient; a column that is "
            "called so on purpose needs another name."
        )


def _kind_of_data(cell: str) -> str | None:
    """What a cell holds that is hardly the name of a column, or None."""
    if "/" in cell or "\\" in cell or file_extension(cell) in (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS):
        return "a path"
    try:
        float(cell)
    except ValueError:
        return None
    return "a number"


def _letters_alone(name: str) -> str:
    """``Image Index``, ``image_index`` and ``ImageIndex`` are one name."""
    return re.sub(r"[\s_.-]+", "", name.casefold())


def _plain(cell: str) -> str:
    """Without blanks around it, and without the apostrophe that our own tables put before what looks like a formula."""
    return unguarded(cell.strip())


def _refuse_bad_shape(name: str, columns: tuple[str, ...], numbered: list[tuple[tuple[str, ...], int]]) -> None:
    duplicated = [column for column, count in Counter(columns).items() if count > 1]
    if duplicated:
        _refuse_data_as_header(name, columns)
        raise DataError(f"The table {name} has several columns called {duplicated[0] or '(empty)'}. Rename them.")
    for row, line_number in numbered:
        if len(row) != len(columns):
            raise DataError(
                f"Line {line_number} of {name} has {len(row)} cells where the header has {len(columns)}. Put quotes "
                "around cells that contain the separator."
            )
    if not numbered:
        raise DataError(f"The table {name} has a header but no rows.")
