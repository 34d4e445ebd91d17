"""From the path cells of a table to image files: relative to a folder, with or without an extension."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from crossgraft.data.class_names import whole_letters
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.file_counts import NO_ROW, NOT_READ, ROW_LEFT_OUT, PassedOver, joined_counts
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension, file_stem
from crossgraft.data.sources._image_files import ImageRoot, listed_rows, refuse_outside
from crossgraft.data.sources._inventory import (
    folder_passed_over,
    is_called_images,
    is_called_masks,
    is_visible,
    kind_of_file,
    take_inventory,
)
from crossgraft.data.sources._labels import SPLIT_COLUMNS
from crossgraft.data.sources._source import canonical_split, is_split_name
from crossgraft.data.sources._table import TABLE_EXTENSIONS, TextTable, read_table, require_path_column
from crossgraft.data.sources.image_folder import files_in, folders_in
from crossgraft.errors import DataError
from crossgraft.paths import is_file, is_folder, shortened
from crossgraft.words.formatting import counted, listed

_TABLES = tuple(name + extension for name in ("metadata", "labels") for extension in TABLE_EXTENSIONS)
_CLASSES = "classes.txt"


@dataclass(frozen=True, repr=False)
class _JoinedTable(TextTable):
    """Tables of several parts; ``locations`` names the file and the line of each row."""

    locations: tuple[str, ...]

    def keep(self, rows: Sequence[int]) -> TextTable:
        """Only these rows."""
        kept = super().keep(rows)
        locations = tuple(self.locations[row] for row in rows)
        return _JoinedTable(kept.name, kept.columns, kept.rows, kept.line_numbers, locations)

    def row_name(self, row: int) -> str:
        """The line of the file that it comes from."""
        return self.locations[row]


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
    column = first.columns.index(require_path_column(first, path_column))
    says_part = SPLIT_COLUMNS[0] in first.columns
    return _JoinedTable(
        first.name,
        first.columns if says_part else (*first.columns, SPLIT_COLUMNS[0]),
        tuple(
            (*row[:column], f"{name}/{row[column]}", *row[column + 1 :], *(() if says_part else (canonical_split(name),)))
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


def describes_its_folder(table: Path) -> bool:
    """Whether it is the table of such a folder, of no parts; not where somebody may not look into all of the folder."""
    with suppress(PermissionError):
        return _table_beside_images(table.parent) == table
    return False


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
    folder: Path, files: Collection[Path], table: str, *, left_out: Collection[str] = (), of_other_parts: Collection[str] = ()
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
    passed_over = [
        *(skipped._replace(place="") for skipped in inventory.passed_over),  # here a folder is no class, and may be a patient
        *(PassedOver(kind_of_file(path), reason, "", 1) for path, reason in reasons),
        *(PassedOver(kind_of_file(path), NOT_READ, "", -1) for path in tables),  # they are read
    ]
    return FolderFiles(tuple(tables), joined_counts(passed_over), (notice,) if without_row else ())


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
    top_folders = {path.relative_to(folder).parts[:-1][:1] for path in take_inventory(folder, keep_masks=True).images}
    top_folders -= {top for top in top_folders if top and is_called_masks(top[0])}
    return tables[0] if top_folders and all(not top or is_called_images(top[0]) for top in top_folders) else None


def _tables_of_parts(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    tables = {path: _table_beside_images(path) for path in folders_in(folder)}
    of_parts = [table for path, table in tables.items() if table is not None and is_split_name(path.name)]
    others = [path for path, table in tables.items() if table not in of_parts]
    return of_parts if of_parts and not any(take_inventory(path).images for path in others) else []


_MOST_PLACES = 5


class _Names(NamedTuple):
    """Files of one folder: all; by name in whole letters; images by name without extension; those that are links."""

    exact: set[str]
    by_letters: dict[str, str]
    by_stem: dict[str, list[str]]
    links: set[str]


class FoundFiles(NamedTuple):
    """The file of each row, and notices to the user."""

    files: list[Path]
    notices: tuple[str, ...]


class _FolderListing:
    """File names of folders, each read once: a look-up costs no system call a row.

    Letters that are stored in parts (see ``whole_letters``) and letters that are whole are the same here.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, Path] = {}
        self._listings: dict[Path, _Names] = {}
        self._trees: dict[Path, dict[str, list[Path]]] = {}
        self._divided: dict[tuple[Path, tuple[str, ...]], dict[str | None, list[Path]]] = {}

    def matches(self, path: Path) -> list[Path]:
        """``path`` itself, or else the images that are called so but for their extension."""
        folder = self._real_folder(path.parent)
        names = self._listing(folder)
        wanted = whole_letters(path.name)
        if path.name in names.exact:
            return [folder / path.name]
        if wanted in names.by_letters:
            return [folder / names.by_letters[wanted]]
        if wanted in names.by_stem:
            return [folder / name for name in names.by_stem[wanted]]
        if not is_file(path):
            return []
        # Windows and macOS find a file whatever the case of its letters; two rows may then mean the same file.
        return [folder / name for name in names.exact if whole_letters(name).casefold() == wanted.casefold()]

    def below(self, root: Path, cell: str) -> list[Path]:
        """Images anywhere below ``root`` that are called as ``cell`` is, from its end on as far as their folders agree.

        Cost: the first call walks through all folders below ``root``, but for linked and hidden ones.
        """
        if root not in self._trees:
            folders = [Path(parent) for parent, _, _ in _visible_tree(root)]
            tree: defaultdict[str, list[Path]] = defaultdict(list)
            for folder in folders:
                names = self._listing(folder)
                for stem, files in names.by_stem.items():
                    for name in files:
                        for key in {stem, whole_letters(name)}:
                            tree[key].append(folder / name)
            self._trees[root] = tree
        ending = [whole_letters(part) for part in reversed(PureWindowsPath(cell).parts)]
        matches = self._trees[root].get(ending[0], []) if ending else []
        # Each patient may have a file of the same name, and each row asks: they are divided once by each folder, not a row.
        for depth, folder in enumerate(ending[1:], start=1):
            if len(matches) < 2:
                break
            key = (root, tuple(ending[:depth]))
            if key not in self._divided:
                self._divided[key] = _by_folder(matches, depth)
            if folder not in self._divided[key]:
                break
            matches = self._divided[key][folder]
        return matches

    def is_link(self, match: Path) -> bool:
        """Whether what ``matches`` found is a symbolic link."""
        return match.name in self._listing(match.parent).links

    def _real_folder(self, folder: Path) -> Path:
        """The folder as it is stored, where ``folder`` writes its letters in another way."""
        unknown: list[Path] = []
        while folder not in self._folders and not is_folder(folder) and folder != folder.parent:
            unknown.append(folder)
            folder = folder.parent
        real = self._folders.setdefault(folder, folder)
        for below in reversed(unknown):
            real = self._folders[below] = self._folder_inside(real, below.name)
        return real

    def _folder_inside(self, parent: Path, name: str) -> Path:
        """The folder of this name, in whichever letters it is stored; ``parent`` may not exist."""
        entries = list(os.scandir(parent)) if is_folder(parent) else []
        wanted = whole_letters(name)
        alike = [entry.name for entry in entries if whole_letters(entry.name) == wanted and is_folder(Path(entry.path))]
        return parent / (alike[0] if alike else name)

    def _listing(self, folder: Path) -> _Names:
        if folder not in self._listings:
            entries = list(os.scandir(folder)) if is_folder(folder) else []
            # Of a link the file system is asked, and without DirEntry, which raises where it leads in a circle.
            files = [e for e in entries if (is_file(Path(e.path)) if e.is_symlink() else e.is_file())]
            exact = {entry.name for entry in files}
            by_stem: dict[str, list[str]] = {}
            for name in sorted(exact):
                if file_extension(name) in (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS):
                    by_stem.setdefault(file_stem(whole_letters(name)), []).append(name)
            self._listings[folder] = _Names(
                exact,
                {whole_letters(name): name for name in sorted(exact)},
                by_stem,
                {entry.name for entry in files if entry.is_symlink()},
            )
        return self._listings[folder]


def _visible_tree(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    for parent, folders, files in os.walk(root):
        folders[:] = [name for name in sorted(folders) if is_visible(name) and folder_passed_over(Path(parent, name)) is None]
        yield parent, folders, files


def _by_folder(files: Sequence[Path], depth: int) -> dict[str | None, list[Path]]:
    """Files by the name of the folder so many steps above them; under None where there is none."""
    divided: defaultdict[str | None, list[Path]] = defaultdict(list)
    for path in files:
        parts = path.parent.parts
        divided[whole_letters(parts[-depth]) if depth <= len(parts) else None].append(path)
    return divided


def find_image_files(cells: Sequence[str], root: Path, *, allow_outside: bool, row_name: Callable[[int], str]) -> FoundFiles:
    """The file of each row.

    Args:
        cells: Paths relative to ``root`` (or absolute), with slashes or backslashes; the extension may
            be missing where exactly one image has that name. What is not there is looked for in all folders below.
        root: Folder of the images.
        allow_outside: Whether paths may lead out of ``root``.
        row_name: Function that names row i in messages.

    Raises:
        DataError: Files are outside of ``root``, missing, ambiguous, or named by two rows.
    """
    listing, bounds = _FolderListing(), ImageRoot([root])
    files: list[Path] = []
    missing: list[int] = []
    outside: list[int] = []
    below: dict[int, Path] = {}
    for row, cell in enumerate(cells):
        path = root / cell.replace("\\", "/")
        # Before anything is looked up: whether a file is there is nobody's business outside.
        if cell and not (allow_outside or bounds.holds_folder(path.parent)):
            outside.append(row)
            continue
        matches = listing.matches(path) if cell else []
        if cell and not matches and "\0" not in cell:  # which no file is called
            matches = listing.below(root, cell)
            if matches:
                below[row] = matches[0]
        if not allow_outside and any(not bounds.holds_file(m, is_link=listing.is_link(m)) for m in matches):
            outside.append(row)
            continue
        if len(matches) > 1:
            raise _ambiguous(cell, matches, root, row_name(row))
        files += matches[:1] or [root / cell]
        if not matches:
            missing.append(row)
    refuse_outside(cells, outside, root=str(root), of_what="a table", row_name=row_name)
    if missing:
        raise DataError(
            f"{len(missing)} of {len(cells)} image files do not exist in {root}: {listed_rows(cells, missing, row_name)}. "
            f"{_advice(cells[missing[0]], root)}"
        )
    if len(below) < len(cells):
        _refuse_other_folders(cells, below, root, row_name)
    _refuse_duplicates(cells, files, row_name)
    return FoundFiles(files, _notices_of_places(list(below.values()), root, len(cells)))


def _refuse_other_folders(cells: Sequence[str], below: Mapping[int, Path], root: Path, row_name: Callable[[int], str]) -> None:
    """Where other rows are right about their folders, a file of the same name in another one is another image.

    Raises:
        DataError: A row names a folder, and the file was found in one that is called otherwise.
    """
    homes = {row: path.parent.relative_to(root).name for row, path in below.items()}
    wanted = {row: PureWindowsPath(cells[row]).parent.name for row in below}
    others = [row for row, home in homes.items() if home and wanted[row] and whole_letters(home) != whole_letters(wanted[row])]
    if others:
        place = below[others[0]].relative_to(root).as_posix()
        raise DataError(
            f"{len(others)} of {len(cells)} image files do not exist in {root}: {listed_rows(cells, others, row_name)}. "
            f"{place} has the name of the first, and may be another image: correct the table, or remove these rows."
        )


def _ambiguous(cell: str, matches: Sequence[Path], root: Path, where: str) -> DataError:
    locations = [path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name for path in matches]
    shown = ", ".join(locations[:_MOST_PLACES]) + (" …" if len(locations) > _MOST_PLACES else "")
    one_folder = len({path.parent for path in matches}) == 1
    advice = "the extension" if one_folder else "the folder, too,"
    return DataError(f"{where} names {cell}, which could be {shown}. Write {advice} into the table.")


def _notices_of_places(below: Sequence[Path], root: Path, num_rows: int) -> tuple[str, ...]:
    if not below:
        return ()
    homes = list(dict.fromkeys(path.parent.relative_to(root).as_posix() for path in below))
    where = listed(homes, _MOST_PLACES)
    return (f"Found by name in folders below ({where}): {len(below)} of {counted(num_rows, 'image')}, not where the table says.",)


def _advice(cell: str, root: Path) -> str:
    """Where the first missing file is, if it is close by."""
    parent, listing = root.resolve().parent, _FolderListing()
    beside = sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []
    for folder in [parent, *beside] if cell else []:
        if listing.matches(folder / cell.replace("\\", "/")):
            return f"{shortened(cell)} is in {folder.name}: pass --image-root {shlex.quote(str(parent))}"
    return "Say with --image-root FOLDER where the images are, or remove these rows."


def _refuse_duplicates(cells: Sequence[str], files: list[Path], row_name: Callable[[int], str]) -> None:
    first_row: dict[Path, int] = {}
    for row, path in enumerate(files):
        earlier = first_row.setdefault(path, row)
        if earlier != row:
            raise DataError(
                f"{row_name(row)} names the image {cells[row]} again, which {row_name(earlier)} already has. Keep one "
                "row for each image."
            )
