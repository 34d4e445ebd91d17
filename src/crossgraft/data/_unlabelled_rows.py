"""Rows of images that need no labels, for every kind of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.data._letters import whole_letters
from crossgraft.data.medical.formats import is_image_file
from crossgraft.data.opening import list_rows
from crossgraft.data.sources import SourceRequest, SourceRows
from crossgraft.data.sources._column_names import LABEL_COLUMNS, PATH_COLUMNS
from crossgraft.data.sources._hf_tables import is_saved_folder
from crossgraft.data.sources._image_files import open_image_files
from crossgraft.data.sources._npz_arrays import NpzArrays
from crossgraft.data.sources._pixel_arrays import image_in_row, images_in_rows
from crossgraft.data.sources._source import refuse_options
from crossgraft.data.sources._split_names import refuse_missing_split
from crossgraft.data.sources._table import find_column, read_table, require_column
from crossgraft.data.sources._table_files import find_image_files
from crossgraft.data.sources.csv_table import display_name
from crossgraft.data.sources.image_folder import find_split_folders, images_below
from crossgraft.data.sources.npz_file import SPLITS
from crossgraft.errors import DataError
from crossgraft.progress import Reporter

NO_LABEL = ""
_OPTIONS_OF_TABLES = ("label_columns", "label_separator", "group_column", "path_column", "image_root")


@dataclass(frozen=True)
class ListedRows:
    """Rows of a source; their labels mean something only if ``has_labels``."""

    source: str
    rows: SourceRows
    has_labels: bool


def list_images(
    location: str, request: SourceRequest, known_classes: tuple[str, ...], several_labels: bool, reporter: Reporter
) -> ListedRows:
    """The rows of ``location``; arguments as in ``open_images``."""
    path = Path(location)
    suffix = path.suffix.casefold()
    listed: ListedRows | None = None
    if path.is_file() and is_image_file(path):
        listed = ListedRows("image_file", _files([path], [path.name], path.stem, request), has_labels=False)
    elif path.is_dir() and not is_saved_folder(path):
        listed = _list_folder(path, request, () if several_labels else known_classes)
    elif path.is_file() and suffix in (".csv", ".tsv"):
        if several_labels:
            request = _with_label_columns(path, request, known_classes)
        listed = None if _has_labels(path, request) else _list_table(path, request)
    elif path.is_file() and suffix == ".npz":
        listed = _list_arrays(path, request)
    if listed is None:
        source, rows = list_rows(location, request, reporter)
        return ListedRows(source, rows, has_labels=True)
    for sentence in listed.rows.reading:
        reporter.say(sentence)
    for notice in listed.rows.notices:
        reporter.warn(notice)
    return listed


def _files(
    files: Sequence[Path], names: Sequence[str], name: str, request: SourceRequest, labels: Sequence[str] | None = None
) -> SourceRows:
    """The images of ``files`` (a file of slices holds several), with a label a file or without."""
    images = open_image_files(files, names, request)
    return SourceRows(
        name=name,
        labels=np.asarray([NO_LABEL] * len(files) if labels is None else labels)[images.rows],
        image_names=images.names,
        decode=images.decode,
        groups=images.groups,
        group_column=images.group_column,
        groups_known=images.groups_known,
        notices=images.notices,
        reading=images.reading,
    )


def _list_folder(folder: Path, request: SourceRequest, known_classes: tuple[str, ...]) -> ListedRows:
    """Every image below; the folders of the first level are labels if each of them is the name of a class."""
    refuse_options(request, "a folder of images", unused=_OPTIONS_OF_TABLES, advice="Give a table instead.")
    split_of = {name: split for split, name in find_split_folders(folder).items()}
    if request.use_split is not None:
        refuse_missing_split(request.use_split, list(split_of.values()), f"The folder {folder}")
    found = [
        _Found(path, split_of.get(path.relative_to(folder).parts[0], ""), path.relative_to(folder).parts)
        for path in images_below(folder)
    ]
    found = [image for image in found if request.use_split in (None, image.split)]
    if not found:
        raise DataError(f"No images in the folder {folder}. Give a folder of images, one image, or a table of paths.")
    labels = [image.label for image in found]
    has_labels = set(labels) <= set(known_classes)
    names = [whole_letters("/".join(image.parts)) for image in found]
    files = [image.path for image in found]
    rows = _files(files, names, folder.resolve().name, request, labels if has_labels else None)
    return ListedRows("image_folder", rows, has_labels=has_labels)


class _Found(NamedTuple):
    """A file of a folder: its split (empty: none) and the parts of its path below the folder."""

    path: Path
    split: str
    parts: tuple[str, ...]

    @property
    def label(self) -> str:
        """Name of the outermost folder that is no split; the file's own name where there is none."""
        return whole_letters(self.parts[1 if self.split else 0])


def _with_label_columns(path: Path, request: SourceRequest, known_classes: tuple[str, ...]) -> SourceRequest:
    """Ask for one column per label where the table has them all and the user named none."""
    if request.label_columns or not set(known_classes) <= set(read_table(path).columns):
        return request
    return replace(request, label_columns=known_classes)


def _has_labels(path: Path, request: SourceRequest) -> bool:
    if request.label_columns:
        return True
    table = read_table(path)
    choose = "Name it with --label-column."
    return find_column(table, None, kind="labels", usual_names=LABEL_COLUMNS, choose=choose) is not None


def _list_table(path: Path, request: SourceRequest) -> ListedRows:
    """A table without labels: only its column of paths (and of groups, if it is named) is looked at."""
    table = read_table(path)
    column = require_column(
        table,
        request.path_column,
        kind="image files",
        usual_names=PATH_COLUMNS,
        choose="Name it with --path-column.",
    )
    cells = table.column(column)
    root = request.image_root if request.image_root is not None else path.parent
    files = find_image_files(cells, root, allow_outside=request.allow_outside, row_name=table.row_name)
    rows = _files(files, [display_name(cell) for cell in cells], path.stem, request)
    return ListedRows("csv_table", rows, has_labels=False)


def _list_arrays(path: Path, request: SourceRequest) -> ListedRows | None:
    """The images of an ``.npz`` file without labels; None where it has labels, which its source reads."""
    arrays = NpzArrays(path)
    splits = [split for split in SPLITS if f"{split}_images" in arrays.keys]
    if request.use_split is not None:
        refuse_missing_split(request.use_split, splits, f"The file {arrays.name}")
        splits = [request.use_split]
    keys = [f"{split}_images" for split in splits] or [key for key in ("images",) if key in arrays.keys]
    if request.label_columns or not keys or all(key.replace("images", "labels") in arrays.keys for key in keys):
        return None
    blocks = [images_in_rows(arrays.read(key), f"array {key} of {arrays.name}") for key in keys]
    places = [(block, row) for block in blocks for row in range(len(block))]
    prefixes = [key.removesuffix("images").replace("_", " ") for key in keys]
    rows = SourceRows(
        name=path.stem,
        labels=np.full(len(places), NO_LABEL),
        image_names=[
            f"{prefix}row {row}" for prefix, block in zip(prefixes, blocks, strict=True) for row in range(len(block))
        ],
        decode=lambda row: image_in_row(*places[row]),
    )
    return ListedRows("npz_file", rows, has_labels=False)
