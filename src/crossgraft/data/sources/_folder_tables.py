"""Folders that a table beside the images describes: an ``imagefolder`` of Hugging Face, or what ``crossgraft edit`` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crossgraft.data.medical.formats import is_image_file
from crossgraft.data.sources._column_names import SPLIT_COLUMNS
from crossgraft.data.sources._inventory import take_inventory
from crossgraft.data.sources._split_names import canonical_split, is_split_name
from crossgraft.data.sources._table import TextTable, read_table, require_path_column
from crossgraft.errors import DataError
from crossgraft.words.formatting import counted

_TABLES = ("metadata.csv", "metadata.tsv", "labels.csv", "labels.tsv")
_IMAGES = "images"
_CLASSES = "classes.txt"


@dataclass(frozen=True, repr=False)
class _JoinedTable(TextTable):
    """Tables of several parts; ``places`` names the file and the line of each row."""

    places: tuple[str, ...]

    def keep(self, rows: Sequence[int]) -> TextTable:
        """Only these rows."""
        kept = super().keep(rows)
        places = tuple(self.places[row] for row in rows)
        return _JoinedTable(kept.name, kept.columns, kept.rows, kept.line_numbers, places)

    def row_name(self, row: int) -> str:
        """The line of the file that it comes from."""
        return self.places[row]


def is_described_by_a_table(folder: Path) -> bool:
    """Whether ``metadata.csv`` or ``labels.csv`` lies beside images that are in no folder of a class.

    Images are loose, or all in ``images``; or each folder is a part (train, val, test) of this kind.
    """
    return _table_beside_images(folder) is not None or bool(_tables_of_parts(folder))


def read_folder(folder: Path, path_column: str | None) -> TextTable:
    """The table of such a folder; of parts the tables one below the other, with a column of the part.

    Args:
        folder: Folder of which ``is_described_by_a_table`` is true.
        path_column: Column of image files; None: one with a usual name.

    Raises:
        DataError: A table is damaged, or those of two parts have other columns.
    """
    table = _table_beside_images(folder)
    if table is not None:
        return read_table(table)
    parts = {path.parent.name: read_table(path) for path in _tables_of_parts(folder)}
    first = next(iter(parts.values()))
    for name, part in parts.items():
        if part.columns != first.columns:
            raise DataError(
                f"{part.name} of the part {name} has the columns {', '.join(part.columns)}, and that of another part has "
                f"{', '.join(first.columns)}. Make them equal."
            )
    place = first.columns.index(require_path_column(first, path_column))
    says_part = SPLIT_COLUMNS[0] in first.columns
    return _JoinedTable(
        first.name,
        first.columns if says_part else (*first.columns, SPLIT_COLUMNS[0]),
        tuple(
            (*row[:place], f"{name}/{row[place]}", *row[place + 1 :], *(() if says_part else (canonical_split(name),)))
            for name, part in parts.items()
            for row in part.rows
        ),
        tuple(number for part in parts.values() for number in part.line_numbers),
        tuple(f"{part.row_name(row)} in {name}" for name, part in parts.items() for row in range(len(part.rows))),
    )


def images_without_a_row(folder: Path, table: TextTable) -> tuple[str, ...]:
    """A notice where such a folder holds more images than its table has rows."""
    number = len(take_inventory(folder).images) - len(table.rows)
    if number <= 0:
        return ()
    return (f"{counted(number, 'image')} of the folder {folder.name} without a row in {table.name}: not used.",)


def labels_beside(folder: Path) -> tuple[str, ...]:
    """Names of the labels that ``crossgraft edit`` wrote into ``classes.txt`` beside its table; empty where there are none."""
    names = folder / _CLASSES
    return tuple(names.read_text(encoding="utf-8", errors="replace").splitlines()) if names.is_file() else ()


def _table_beside_images(folder: Path) -> Path | None:
    if not folder.is_dir():
        return None
    visible = [path for path in folder.iterdir() if not path.name.startswith(".")]
    tables = [path for name in _TABLES for path in visible if path.name.casefold() == name and path.is_file()]
    folders = [path for path in visible if path.is_dir()]
    loose = not folders and any(is_image_file(path) for path in visible)
    return tables[0] if tables and (loose or [path.name for path in folders] == [_IMAGES]) else None


def _tables_of_parts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    folders = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    tables = [_table_beside_images(path) for path in folders if is_split_name(path.name)]
    found = [table for table in tables if table is not None]
    return found if len(found) == len(folders) else []
