"""From the path cells of a table to image files: relative to a folder, with or without an extension."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from crossgraft.data._letters import whole_letters
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension, file_stem
from crossgraft.data.sources._image_root import ImageRoot, listed_rows, refuse_outside
from crossgraft.data.sources._inventory import folder_passed_over, is_visible
from crossgraft.errors import DataError
from crossgraft.paths import is_file, is_folder, shortened
from crossgraft.words.formatting import counted

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
            folders = [Path(parent) for parent, _, _ in _visible_tree(root)] if is_folder(root) else []
            tree: defaultdict[str, list[Path]] = defaultdict(list)
            for folder in folders:
                names = self._listing(folder)
                for stem, files in names.by_stem.items():
                    for name in files:
                        for key in {stem, whole_letters(name)}:
                            tree[key].append(folder / name)
            self._trees[root] = tree
        parts = [whole_letters(part) for part in PureWindowsPath(cell).parts]
        found = self._trees[root].get(parts[-1], []) if parts else []
        agreeing = [_shared_end(path.parent.parts, parts[:-1]) for path in found]
        return [path for path, number in zip(found, agreeing, strict=True) if number == max(agreeing)]

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
        folders[:] = [
            name for name in sorted(folders) if is_visible(name) and folder_passed_over(Path(parent, name)) is None
        ]
        yield parent, folders, files


def _shared_end(path: Sequence[str], wanted: Sequence[str]) -> int:
    """How many folders agree, counted from the file up."""
    pairs = zip(reversed(path), reversed(wanted), strict=False)
    return sum(1 for _ in takewhile(lambda pair: whole_letters(pair[0]) == pair[1], pairs))


def find_image_files(
    cells: Sequence[str], root: Path, *, allow_outside: bool, row_name: Callable[[int], str]
) -> FoundFiles:
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
    below: list[Path] = []
    for row, cell in enumerate(cells):
        path = root / cell.replace("\\", "/")
        # Before anything is looked up: whether a file is there is nobody's business outside.
        if cell and not (allow_outside or bounds.holds_folder(path.parent)):
            outside.append(row)
            continue
        matches = listing.matches(path) if cell else []
        if cell and not matches and "\0" not in cell:  # which no file is called
            matches = listing.below(root, cell)
            below += matches[:1]
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
        _raise_missing(cells, missing, root, row_name)
    _refuse_duplicates(cells, files, row_name)
    return FoundFiles(files, _notices_of_places(below, root, len(cells)))


def _ambiguous(cell: str, matches: Sequence[Path], root: Path, where: str) -> DataError:
    places = [path.relative_to(root).as_posix() if path.is_relative_to(root) else path.name for path in matches]
    shown = ", ".join(places[:_MOST_PLACES]) + (" …" if len(places) > _MOST_PLACES else "")
    one_folder = len({path.parent for path in matches}) == 1
    advice = "the extension" if one_folder else "the folder, too,"
    return DataError(f"{where} names {cell}, which could be {shown}. Write {advice} into the table.")


def _notices_of_places(below: Sequence[Path], root: Path, num_rows: int) -> tuple[str, ...]:
    if not below:
        return ()
    places = list(dict.fromkeys(path.parent.relative_to(root).as_posix() for path in below))
    shown = ", ".join(places[:_MOST_PLACES]) + (
        f" and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
    )
    return (
        f"Found by name in folders below ({shown}): {len(below)} of {counted(num_rows, 'image')}, not where the table says.",
    )


def _raise_missing(cells: Sequence[str], missing: list[int], root: Path, row_name: Callable[[int], str]) -> None:
    raise DataError(
        f"{len(missing)} of {len(cells)} image files do not exist in {root}: {listed_rows(cells, missing, row_name)}. "
        f"{_advice(cells[missing[0]], root)}"
    )


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
