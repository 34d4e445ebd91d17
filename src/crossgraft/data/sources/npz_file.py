"""A ``.npz`` file with MedMNIST's keys (``train_images`` …) or plain ``images`` and ``labels``.

Only the arrays of the split that is used are read; the others may be damaged without any effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgraft.data._groups import NO_GROUPS, Confidential, find_groups, is_first_group_name, refuse_missing_groups
from crossgraft.data.cells import attribute_values
from crossgraft.data.decoding import composite_on_black
from crossgraft.data.sources._labels import (
    SourceLabels,
    certain_rows,
    known_labels,
    label_set_from_numbers,
    labels_from_numbers,
    labels_from_text,
    left_out_notices,
    refuse_none_label,
    without_none,
)
from crossgraft.data.sources._npz_arrays import NpzArrays
from crossgraft.data.sources._source import (
    NO_LABEL,
    DataSource,
    SourceRequest,
    SourceRows,
    canonical_split,
    refuse_missing_split,
    refuse_options,
)
from crossgraft.errors import DataError

CLASS_KEYS = ("classes", "class_names")


def one_class_each(labels: np.ndarray, label_names: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """One-hot rows of one array become classes; several arrays that the user named stay several labels."""
    if labels.ndim == 1 or label_names or not (labels.sum(axis=1) == 1).all():
        return labels, ()
    notice = f"Each row of labels has exactly one 1 in its {labels.shape[1]} columns, so they are read as classes, one per image."
    return labels.argmax(axis=1), (notice,)


def names_of_numbers(arrays: NpzArrays, labels: np.ndarray) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Names of the label numbers, if the file has them, and a notice about names without images."""
    key = arrays.first_of(CLASS_KEYS)
    if key is None or labels.dtype.kind not in "iu":
        return None, ()
    names = tuple(str(name) for name in arrays.read(key).ravel())
    if labels.ndim == 2:
        if len(names) != labels.shape[1]:
            raise DataError(
                f"The labels of {arrays.name} have {labels.shape[1]} columns, but its array {key} holds {len(names)} names. "
                "Save one name per column."
            )
        return names, ()
    if labels.min() < 0 or labels.max() >= len(names):
        raise DataError(
            f"The labels of {arrays.name} go from {labels.min()} to {labels.max()}, but its array {key} names the "
            f"classes 0 to {len(names) - 1}. Labels must be places in {key}."
        )
    unused = [name for number, name in enumerate(names) if number not in set(labels.tolist())]
    notices = (f"No image of the classes {', '.join(unused)} in the rows used.",) if unused else ()
    return names, notices


_MEANING = "uint8 (0 … 255), uint16 (0 … 65535), bool, or float (0 … 1)"


def images_in_rows(array: np.ndarray, where: str) -> np.ndarray:
    """A view of ``array`` as (n, height, width, channels) with 1, 3 or 4 channels.

    Args:
        array: (n, height, width), (n, height, width, channels) or (n, channels, height, width).
        where: Name of the array in messages.

    Raises:
        DataError: Another shape; no image; or a type whose range from black to white is not known.
    """
    if array.dtype.kind not in "fb" and array.dtype.name not in ("uint8", "uint16"):
        raise DataError(f"The {where} has pixels of type {array.dtype}, whose range is not known. Save them as {_MEANING}.")
    if array.ndim == 3:
        array = array[..., np.newaxis]
    elif array.ndim == 4 and array.shape[-1] not in (1, 3, 4) and array.shape[1] in (1, 3, 4):
        array = np.moveaxis(array, 1, -1)
    if array.ndim != 4 or array.shape[-1] not in (1, 3, 4):
        raise DataError(
            f"The {where} has shape {array.shape}; expected (images, height, width) or (images, height, width, "
            "channels) with 1, 3 or 4 channels."
        )
    if 0 in array.shape:
        raise DataError(f"The {where} is empty: its shape is {array.shape}.")
    return array


def about_channels(arrays: Iterable[np.ndarray]) -> tuple[str, ...]:
    """What is made of a fourth channel, as a sentence; none where there is none."""
    if all(array.shape[-1] != 4 for array in arrays):
        return ()
    return (
        "The images have 4 channels: the fourth is taken for transparency, over black. If it is a channel of its own, such as "
        "near infrared or a sequence of MR, save three channels.",
    )


def image_in_row(array: np.ndarray, row: int) -> np.ndarray:
    """Image ``row`` of such an array as (height, width, 1 or 3) uint8, uint16 or float32."""
    pixels = array[row]
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype.kind == "f":
        pixels = pixels.astype(np.float32)
    return composite_on_black(pixels)


_SPLITS = ("train", "val", "test")
_SPLIT_KEYS = ("splits", "split")


class NpzFile(DataSource):
    """Arrays in one file; an array with one entry per image is an attribute."""

    name = "npz_file"
    description = "an .npz file with MedMNIST's keys, or with images and labels"

    def accepts(self, location: str) -> bool:
        """Any existing file with the extension ``.npz``."""
        path = Path(location)
        return path.suffix.casefold() == ".npz" and path.is_file()

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """Read the arrays of the split; other arrays stay on disk."""
        if not request.needs_labels and (images := _images_alone(NpzArrays(Path(location)), request)) is not None:
            return images
        refuse_options(
            request,
            "an .npz file",
            unused=("path_column", "image_root", "label_separator", "group_from", "window", "slices"),
            advice="Its images are arrays, not files.",
        )
        arrays = NpzArrays(Path(location))
        official = [split for split in _SPLITS if f"{split}_images" in arrays.keys]
        if not official:
            return _source_rows(arrays, [_plain_block(arrays, request)])
        if request.use_split is None:
            return _source_rows(arrays, [_official_block(arrays, split, request) for split in official])
        refuse_missing_split(request.use_split, official, f"The file {arrays.name}")
        return _source_rows(arrays, [_official_block(arrays, request.use_split, request)])


def _images_alone(arrays: NpzArrays, request: SourceRequest) -> SourceRows | None:
    """The images of a file without labels; None where it has labels."""
    splits = [split for split in _SPLITS if f"{split}_images" in arrays.keys]
    if request.use_split is not None:
        refuse_missing_split(request.use_split, splits, f"The file {arrays.name}")
        splits = [request.use_split]
    keys = [f"{split}_images" for split in splits] or [key for key in ("images",) if key in arrays.keys]
    names = request.label_columns or ("labels",)
    have_labels = [any(key.replace("images", name) in arrays.keys for name in names) for key in keys]
    may_lack = request.may_lack_labels or not request.label_columns
    if not may_lack or all(have_labels):
        return None
    blocks = [images_in_rows(arrays.read(key), f"array {key} of {arrays.name}") for key in keys]
    located = [(block, row) for block in blocks for row in range(len(block))]
    prefixes = [key.removesuffix("images").replace("_", " ") for key in keys]
    return SourceRows(
        name=arrays.path.stem,
        labels=np.full(len(located), NO_LABEL),
        image_names=[f"{prefix}row {row}" for prefix, block in zip(prefixes, blocks, strict=True) for row in range(len(block))],
        decode=lambda row: image_in_row(*located[row]),
        reading=about_channels(blocks),
        has_labels=False,
    )


@dataclass(frozen=True, eq=False, repr=False)
class _Block(Confidential):
    """Images of one array with all that belongs to them; ``rows`` are the places that are used."""

    images: np.ndarray
    rows: np.ndarray
    names: list[str]
    labels: np.ndarray
    label_names: tuple[str, ...] | None
    group_key: str | None
    groups: np.ndarray | None
    splits: np.ndarray | None
    split_names: tuple[str, ...]
    split_method: str
    attributes: dict[str, np.ndarray]
    notices: tuple[str, ...]


def _official_block(arrays: NpzArrays, split: str, request: SourceRequest) -> _Block:
    """One split of a file with MedMNIST's keys: the usual ones behind ``train_``, ``val_``, ``test_``."""
    images_key = f"{split}_images"
    images = images_in_rows(arrays.read(images_key), f"array {images_key} of {arrays.name}")
    columns = _ArrayColumns(arrays, request, images_key, len(images), prefix=f"{split}_")
    rows = np.arange(len(images))
    names = tuple(name for name in _SPLITS if f"{name}_images" in arrays.keys)
    return columns.block(images, rows, np.asarray([split] * len(images)), names, "official split of the file")


def _plain_block(arrays: NpzArrays, request: SourceRequest) -> _Block:
    """A file with ``images`` and ``labels``, and perhaps ``splits`` that say which rows to use."""
    if "images" not in arrays.keys:
        raise DataError(
            f"{arrays.name} has neither train_images nor images. Its arrays: {', '.join(arrays.keys) or 'none'}. Save "
            "the images under one of these names, and the labels as train_labels or labels."
        )
    images = images_in_rows(arrays.read("images"), f"array images of {arrays.name}")
    columns = _ArrayColumns(arrays, request, "images", len(images))
    split_key = arrays.first_of(_SPLIT_KEYS)
    if split_key is None:
        if request.use_split is not None and request.use_split != "train":
            refuse_missing_split(request.use_split, [], f"The file {arrays.name}")
        return columns.block(images, np.arange(len(images)), None, (), "no split")
    words = arrays.read_column(split_key, len(images), "images")
    splits = np.asarray([canonical_split(str(word)) for word in words])
    if request.use_split is None:
        rows = np.arange(len(images))
    else:
        refuse_missing_split(request.use_split, splits.tolist(), f"The file {arrays.name}")
        rows = np.flatnonzero(splits == request.use_split)
    names = tuple(np.unique(splits).tolist())
    return columns.block(images, rows, splits[rows], names, f"array {split_key} of the file")


class _ArrayColumns:
    """The arrays with one entry per image that belong to one array of images."""

    def __init__(self, arrays: NpzArrays, request: SourceRequest, images_key: str, num_rows: int, *, prefix: str = "") -> None:
        self.arrays = arrays
        self.images_key = images_key
        self.num_rows = num_rows
        self.prefix = prefix
        self.request = request
        self.label_names = request.label_columns
        self.label_keys = [prefix + name for name in request.label_columns or ("labels",)]
        if request.group_column == NO_GROUPS:
            self.group_key: str | None = None
        elif request.group_column is not None:
            self.group_key = prefix + request.group_column
        else:
            self.group_key = self._usual_groups()

    def block(
        self, images: np.ndarray, rows: np.ndarray, splits: np.ndarray | None, split_names: tuple[str, ...], split_method: str
    ) -> _Block:
        """All columns at ``rows``, but for those that the user leaves out."""
        kept = self._rows_to_keep(rows)
        left_out = left_out_notices(len(kept), len(rows))
        rows, splits = rows[kept], None if splits is None else splits[kept]
        labels = self._labels(rows)
        split_keys = [] if self.prefix else [*_SPLIT_KEYS, *CLASS_KEYS]
        known = [self.images_key, *self.label_keys, self.group_key, *split_keys]
        others = self.arrays.columns_beside(known, self.num_rows, prefix=self.prefix)
        return _Block(
            images=images,
            rows=rows,
            names=[f"{self.prefix.replace('_', ' ')}row {row}" for row in rows],
            labels=labels.values,
            label_names=labels.names,
            group_key=None if self.group_key is None else self.group_key.removeprefix(self.prefix),
            groups=None if self.group_key is None else self._groups(self.group_key, rows),
            splits=splits,
            split_names=split_names,
            split_method=split_method,
            attributes={key.removeprefix(self.prefix): _attribute(self._read(key)[rows]) for key in others},
            notices=(*left_out, *labels.notices),
        )

    def _usual_groups(self) -> str | None:
        """The array of patients by its name; one with a rarer name must have one entry per image."""
        keys = [key.removeprefix(self.prefix) for key in self.arrays.keys if key.startswith(self.prefix)]
        of_images = self.arrays.columns_beside([], self.num_rows, prefix=self.prefix)
        could_be = [key for key in keys if is_first_group_name(key) or self.prefix + key in of_images]
        taken = [key.removeprefix(self.prefix) for key in self.label_keys]
        name = find_groups(could_be, taken=taken, holder=self.arrays.name, kind="arrays")
        return None if name is None else self.prefix + name

    def _groups(self, key: str, rows: np.ndarray) -> np.ndarray:
        groups = self._read(key)[rows]
        refuse_missing_groups(
            groups.tolist(), where=f"array {key}", row_name=lambda row: f"row {rows[row]} of {self.arrays.name}"
        )
        return groups

    def _read(self, key: str) -> np.ndarray:
        return self.arrays.read_column(key, self.num_rows, self.images_key)

    def _label_values(self, rows: np.ndarray) -> np.ndarray:
        """(n,), or (n, L) from an array of that shape or from several arrays."""
        if len(self.label_keys) > 1:
            return np.column_stack([self._read(key) for key in self.label_keys])[rows]
        return self.arrays.read_labels(self.label_keys[0], self.num_rows, self.images_key)[rows]

    def _rows_to_keep(self, rows: np.ndarray) -> np.ndarray:
        """Places in ``rows`` whose labels are known, or all where none is to be left out."""
        values = self._label_values(rows)
        if values.ndim == 1:
            return known_labels(values.tolist(), self.request.uncertain)
        return certain_rows(values) if self.request.uncertain == "leave-out" else np.arange(len(rows))

    def _labels(self, rows: np.ndarray) -> SourceLabels:
        """One label per row; or 0 and 1, one column per label."""
        labels = self._label_values(rows)
        where = f"array {' and '.join(self.label_keys)} of {self.arrays.name}"

        def row_name(row: int) -> str:
            return f"row {rows[row]}"

        if labels.ndim == 2:
            label_set = label_set_from_numbers(
                labels, uncertain=self.request.uncertain, none_label=None, where=where, row_name=row_name
            )
            names = self.label_names if len(self.label_names) > 1 else None
            if self.request.none_label is not None:
                names = names or self._names_in_file()
                return without_none(label_set._replace(names=names), self.request.none_label, row_name)
            return label_set._replace(names=names)
        refuse_none_label(self.request.none_label)
        if labels.dtype.kind == "U":
            return SourceLabels(labels_from_text(labels.tolist(), where=where, row_name=row_name))
        return SourceLabels(labels_from_numbers(labels, where=where, row_name=row_name))

    def _names_in_file(self) -> tuple[str, ...]:
        key = self.arrays.first_of(CLASS_KEYS)
        return () if key is None else tuple(map(str, self.arrays.read(key).ravel()))


def _attribute(values: np.ndarray) -> np.ndarray:
    return attribute_values(values.tolist()) if values.dtype.kind == "U" and values.ndim == 1 else values


def _source_rows(arrays: NpzArrays, blocks: Sequence[_Block]) -> SourceRows:
    labels, one_hot = one_class_each(_joined([block.labels for block in blocks]), blocks[0].label_names)
    groups = [block.groups for block in blocks if block.groups is not None]
    splits = [block.splits for block in blocks if block.splits is not None]
    shared = set.intersection(*(set(block.attributes) for block in blocks))
    own = blocks[0].label_names if labels.ndim == 2 else None
    label_names, notices = (own, ()) if own else names_of_numbers(arrays, labels)
    located = [(block.images, int(row)) for block in blocks for row in block.rows]
    return SourceRows(
        name=arrays.path.stem,
        labels=labels,
        image_names=[name for block in blocks for name in block.names],
        decode=lambda row: image_in_row(*located[row]),
        label_names=label_names,
        splits=_joined(splits) if splits else None,
        split_names=blocks[0].split_names,
        split_method=blocks[0].split_method,
        groups=_joined(groups) if len(groups) == len(blocks) else None,
        group_column=blocks[0].group_key if len(groups) == len(blocks) else None,
        attributes={key: _joined([block.attributes[key] for block in blocks]) for key in sorted(shared)},
        notices=(*(notice for block in blocks for notice in block.notices), *one_hot, *notices),
        reading=about_channels([block.images for block in blocks]),
    )


def _joined(columns: Sequence[np.ndarray]) -> np.ndarray:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)
