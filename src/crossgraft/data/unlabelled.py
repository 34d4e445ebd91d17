"""Open images to predict: as ``open_dataset`` does, but labels may be missing, and a plain folder or one file will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.data._letters import whole_letters
from crossgraft.data.class_names import name_classes
from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.data.inspection import InspectedImages, inspect_images, summarise_kinds
from crossgraft.data.medical.formats import is_image_file
from crossgraft.data.opening import list_rows, location_text, make_request
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

_NO_LABEL = ""
_OPTIONS_OF_TABLES = ("label_columns", "label_separator", "group_column", "path_column", "image_root")


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in a fixed order, with labels where the data have them; immutable.

    Attributes:
        name: What to call it, without an absolute path.
        source: Kind of source, ``image_file`` for one file.
        class_names: Of the labels that the data have; empty without labels.
        targets: (n,) place of each label in ``class_names``, or (n, L) of 0 and 1; None without labels.
        groups: (n,) patient of each image, or None.
        group_column: Where the groups come from, or None.
        rows_used: Which rows of the source these are, in words.
        skipped_unreadable: Names of images that were left out because they can not be decoded.
        reading: How files of scanners were read, in words.
    """

    name: str
    source: str
    class_names: tuple[str, ...]
    targets: np.ndarray | None
    groups: np.ndarray | None
    group_column: str | None
    rows_used: str
    skipped_unreadable: tuple[str, ...]
    reading: tuple[str, ...]
    _images: InspectedImages = field(repr=False)
    _image_rows: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self._image_rows)

    @property
    def image_kinds(self) -> dict[str, int]:
        """Height × width, channels and depth → number of images."""
        return summarise_kinds(self._images.kinds[int(row)] for row in self._image_rows)

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits: equal only if pixels, labels and groups are equal, in the same order."""
        digests = [self._images.digests[int(row)] for row in self._image_rows]
        labels = np.zeros(len(self), dtype=np.int64) if self.targets is None else self.targets
        return dataset_fingerprint(digests, labels, self.groups)

    def read(self, index: int) -> np.ndarray:
        """Pixels of one image: (height, width, 1 or 3), uint8, uint16 or float32 in [0, 1]; read-only."""
        return self._images.read(int(self._image_rows[index]))

    def image_name(self, index: int) -> str:
        """The file or row an image comes from, relative to the data."""
        return self._images.names[int(self._image_rows[index])]


def open_images(
    location: str | Path,
    *,
    known_classes: Sequence[str] = (),
    several_labels: bool = False,
    use_split: str | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    window: str | None = None,
    slices: str | None = None,
    allow_download: bool = False,
    skip_unreadable: bool = False,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
) -> ImageSet:
    """Open images that need no labels, and decode each of them once.

    Args:
        location: One image file, a folder of images (in folders or not), a table with a column of paths, an ``.npz`` file
            with images, or anything else that ``open_dataset`` takes.
        known_classes: Folders with these names are labels; other folders are only places where images lie. A table with a
            column for each of them has several labels an image.
        several_labels: May an image have several of ``known_classes``?
        use_split: Where the data have splits, the rows of this one only; None: all rows.
        label_column: As in ``open_dataset``; may be missing.
        label_separator: As in ``open_dataset``.
        group_column: As in ``open_dataset``.
        path_column: As in ``open_dataset``.
        image_root: As in ``open_dataset``.
        window: As in ``open_dataset``.
        slices: As in ``open_dataset``.
        allow_download: As in ``open_dataset``.
        skip_unreadable: Leave out images that can not be decoded, and list them.
        num_threads: Threads that decode images; by default one a core, at most 8.
        reporter: Told about progress and about what the user should know.

    Raises:
        DataError: There is no image, or a table or array is damaged.
        UnreadableImageError: An image can not be decoded, and ``skip_unreadable`` is off.
        MissingExtraError: The images have a format whose reader is not installed.
        UsageError: An option has no meaning for this kind of data.
    """
    reporter = reporter if reporter is not None else Reporter(quiet=True)
    request = make_request(
        use_split=use_split,
        label_column=label_column,
        label_separator=label_separator,
        group_column=group_column,
        path_column=path_column,
        image_root=image_root,
        window=window,
        slices=slices,
        allow_download=allow_download,
    )
    listed = _list(location_text(location), request, tuple(known_classes), several_labels, reporter)
    inspected = inspect_images(
        listed.rows.image_names,
        listed.rows.decode,
        skip_unreadable=skip_unreadable,
        num_threads=num_threads,
        reporter=reporter,
    )
    readable = np.asarray([row for row in range(len(inspected.names)) if row not in inspected.unreadable])
    if readable.size == 0:
        raise DataError(f"None of the {len(inspected.names)} images of {listed.rows.name} can be decoded.")
    if inspected.unreadable:
        reporter.warn(f"{len(inspected.unreadable)} of {len(inspected.names)} images can not be read and are left out.")
    return _image_set(listed, inspected, readable, use_split)


@dataclass(frozen=True)
class _Listed:
    """Rows of a source; their labels mean something only if ``has_labels``."""

    source: str
    rows: SourceRows
    has_labels: bool


def _image_set(listed: _Listed, inspected: InspectedImages, readable: np.ndarray, use_split: str | None) -> ImageSet:
    rows = listed.rows
    class_names, targets = ((), None)
    if listed.has_labels:
        class_names, targets, _ = name_classes(rows.labels, rows.label_names, None)
    left_out = f", {len(inspected.unreadable)} unreadable left out" if inspected.unreadable else ""
    return ImageSet(
        name=rows.name,
        source=listed.source,
        class_names=class_names,
        targets=None if targets is None else targets[readable],
        groups=None if rows.groups is None else rows.groups[readable],
        group_column=rows.group_column,
        rows_used=("all rows" if use_split is None else f"split {use_split}") + left_out,
        skipped_unreadable=tuple(inspected.names[row] for row in inspected.unreadable),
        reading=rows.reading,
        _images=inspected,
        _image_rows=readable,
    )


def _list(
    location: str, request: SourceRequest, known_classes: tuple[str, ...], several_labels: bool, reporter: Reporter
) -> _Listed:
    path = Path(location)
    suffix = path.suffix.casefold()
    listed: _Listed | None = None
    if path.is_file() and is_image_file(path):
        listed = _Listed("image_file", _files([path], [path.name], path.stem, request), has_labels=False)
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
        return _Listed(source, rows, has_labels=True)
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
        labels=np.asarray([_NO_LABEL] * len(files) if labels is None else labels)[images.rows],
        image_names=images.names,
        decode=images.decode,
        groups=images.groups,
        group_column=images.group_column,
        notices=images.notices,
        reading=images.reading,
    )


def _list_folder(folder: Path, request: SourceRequest, known_classes: tuple[str, ...]) -> _Listed:
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
    return _Listed("image_folder", rows, has_labels=has_labels)


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
    """Ask for one column a label where the table has them all and the user named none."""
    if request.label_columns or not set(known_classes) <= set(read_table(path).columns):
        return request
    return replace(request, label_columns=known_classes)


def _has_labels(path: Path, request: SourceRequest) -> bool:
    if request.label_columns:
        return True
    table = read_table(path)
    choose = "Name it with --label-column."
    return find_column(table, None, kind="labels", usual_names=LABEL_COLUMNS, choose=choose) is not None


def _list_table(path: Path, request: SourceRequest) -> _Listed:
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
    files = find_image_files(cells, root, row_name=table.row_name)
    rows = _files(files, [display_name(cell) for cell in cells], path.stem, request)
    return _Listed("csv_table", rows, has_labels=False)


def _list_arrays(path: Path, request: SourceRequest) -> _Listed | None:
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
        labels=np.full(len(places), _NO_LABEL),
        image_names=[
            f"{prefix}row {row}" for prefix, block in zip(prefixes, blocks, strict=True) for row in range(len(block))
        ],
        decode=lambda row: image_in_row(*places[row]),
    )
    return _Listed("npz_file", rows, has_labels=False)
