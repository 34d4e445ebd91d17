"""Folders that a table beside the images describes: an ``imagefolder`` of Hugging Face, or what ``crossgraft edit`` wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from crossgraft.data._letters import whole_letters
from crossgraft.data.file_counts import NO_ROW, NOT_READ, ROW_LEFT_OUT, PassedOver, joined_counts
from crossgraft.data.medical.formats import file_stem
from crossgraft.data.sources._column_names import SPLIT_COLUMNS
from crossgraft.data.sources._derived_pictures import is_called_images, is_called_masks
from crossgraft.data.sources._inventory import kind_of_file, take_inventory
from crossgraft.data.sources._part_folders import files_in, folders_in
from crossgraft.data.sources._split_names import canonical_split, is_split_name
from crossgraft.data.sources._table import TABLE_EXTENSIONS, TextTable, read_table, require_path_column
from crossgraft.errors import DataError
from crossgraft.words.formatting import counted

_TABLES = tuple(name + extension for name in ("metadata", "labels") for extension in TABLE_EXTENSIONS)
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
    """Whether ``metadata.csv`` or ``labels.csv`` (``.tsv``, ``.jsonl``) lies beside images that are in no folder of a class.

    Images are loose, or all in ``images``; or each folder is a part (train, val, test) of this kind. Masks, runs and what
    programs leave may lie beside.

    Cost: a walk where there is such a table.
    """
    return bool(tables_of(folder))


def read_folder(folder: Path, path_column: str | None) -> TextTable:
    """The table of such a folder; of parts the tables one below the other, with a column of the part.

    Args:
        folder: Folder of which ``is_described_by_a_table`` is true.
        path_column: Column of image files; None: one with a usual name.

    Raises:
        DataError: A table is damaged, or those of two parts have other columns.
    """
    tables = tables_of(folder)
    if tables[0].parent == folder:
        return read_table(tables[0])
    parts = {path.parent.name: read_table(path) for path in tables}
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


def tables_of(folder: Path) -> list[Path]:
    """The tables of such a folder: one, or one of each part."""
    table = _table_beside_images(folder)
    return _tables_of_parts(folder) if table is None else [table]


class FolderFiles(NamedTuple):
    """Files below such a folder that are no images of the rows that are used.

    Attributes:
        tables: What was read of them.
        passed_over: The others.
        notices: A notice where there are images that no row names.
    """

    tables: tuple[Path, ...] = ()
    passed_over: tuple[PassedOver, ...] = ()
    notices: tuple[str, ...] = ()


NOT_COUNTED = FolderFiles()


def count_folder(
    folder: Path,
    files: Collection[Path],
    table: str,
    *,
    left_out: Collection[str] = (),
    of_other_parts: Collection[str] = (),
) -> FolderFiles:
    """What there is beside the images that are used.

    Args:
        folder: Folder of which ``is_described_by_a_table`` is true.
        files: Images of the rows that are used.
        table: Name of the table.
        left_out: Paths of rows that are not used, as the table writes them.
        of_other_parts: Paths of rows of other parts (train, val, test), which are no part of the question.

    Cost: a walk.
    """
    inventory = take_inventory(folder, keep_masks=True)
    resolved = {parent: parent.resolve() for parent in {path.parent for path in (*files, *inventory.images)}}
    used = {resolved[path.parent] / path.name for path in files}
    in_row, elsewhere = _ways_to_write(left_out), _ways_to_write(of_other_parts)
    reasons: list[tuple[Path, str]] = []
    for path in inventory.images:
        ways = _ways_to_write([path.relative_to(folder).as_posix()])
        if resolved[path.parent] / path.name not in used and not ways & elsewhere:
            reasons.append((path, ROW_LEFT_OUT if ways & in_row else NO_ROW))
    without_row = sum(reason == NO_ROW for _, reason in reasons)
    notice = f"{counted(without_row, 'image')} of the folder {folder.name} without a row in {table}: not used."
    tables = [*tables_of(folder), *(path for path in files_in(folder) if path.name == _CLASSES)]
    found = [
        *(each._replace(place="") for each in inventory.passed_over),  # here a folder is no class, and may be a patient
        *(PassedOver(kind_of_file(path), reason, "", 1) for path, reason in reasons),
        *(PassedOver(kind_of_file(path), NOT_READ, "", -1) for path in tables),  # they are read
    ]
    return FolderFiles(tuple(tables), joined_counts(found), (notice,) if without_row else ())


def _ways_to_write(cells: Iterable[str]) -> set[str]:
    """How tables write the same files: with their folders or without, with their extension or without."""
    paths = [PureWindowsPath(cell) for cell in cells]
    return {whole_letters(way) for path in paths for way in (path.as_posix(), path.name, file_stem(path.name))}


def labels_beside(folder: Path) -> tuple[str, ...]:
    """Names of the labels that ``crossgraft edit`` wrote into ``classes.txt`` beside its table; empty where there are none."""
    names = folder / _CLASSES
    return tuple(names.read_text(encoding="utf-8", errors="replace").splitlines()) if names.is_file() else ()


def _table_beside_images(folder: Path) -> Path | None:
    if not folder.is_dir():
        return None
    tables = [path for name in _TABLES for path in files_in(folder) if path.name.casefold() == name]
    if not tables:
        return None
    places = {path.relative_to(folder).parts[:-1][:1] for path in take_inventory(folder, keep_masks=True).images}
    places -= {place for place in places if place and is_called_masks(place[0])}
    return tables[0] if places and all(not place or is_called_images(place[0]) for place in places) else None


def _tables_of_parts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    tables = {path: _table_beside_images(path) for path in folders_in(folder)}
    found = [table for path, table in tables.items() if table is not None and is_split_name(path.name)]
    others = [path for path, table in tables.items() if table not in found]
    return found if found and not any(take_inventory(path).images for path in others) else []
