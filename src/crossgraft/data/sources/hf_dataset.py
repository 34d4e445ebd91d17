"""A dataset of Hugging Face: a folder written by ``save_to_disk``, or ``hf:OWNER/NAME`` from the local cache.

Images are decoded here and not by ``datasets``, whose pictures of 16-bit files depend on how they were stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crossgraft.data._groups import Confidential
from crossgraft.data.cells import is_empty
from crossgraft.data.sources._hf_columns import (
    GROUP_KINDS,
    decode_cell,
    find_columns,
    is_no_label,
    kind_of,
    read_attribute,
    read_groups,
    read_indicators,
    read_label_columns,
    read_labels,
    unused_classes,
)
from crossgraft.data.sources._hf_tables import (
    HUB_PREFIX,
    ArrowRows,
    ArrowSplits,
    hub_splits,
    is_saved_folder,
    read_rows,
    saved_splits,
)
from crossgraft.data.sources._image_files import ImageRoot, refuse_outside
from crossgraft.data.sources._labels import (
    SourceLabels,
    certain_rows,
    known_labels,
    label_set_from_cells,
    left_out_notices,
    refuse_none_label,
    without_none,
)
from crossgraft.data.sources._source import (
    DataSource,
    SourceRequest,
    SourceRows,
    canonical_split,
    refuse_missing_split,
    refuse_options,
)
from crossgraft.errors import DataError, UsageError
from crossgraft.paths import is_link


class HfDataset(DataSource):
    """Columns are recognised by what they hold and by their usual names, or named by the user."""

    name = "hf_dataset"
    description = "a folder written by save_to_disk of Hugging Face datasets, or hf:OWNER/NAME"

    def accepts(self, location: str) -> bool:
        """``hf:…``, or a folder with the files that ``save_to_disk`` writes."""
        return location.startswith(HUB_PREFIX) or is_saved_folder(Path(location))

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """Map the files of the split that was asked for; the others stay closed."""
        refuse_options(
            request,
            "a Hugging Face dataset",
            unused=("image_root", "group_from", "window", "slices"),
            advice="Its images are inside.",
        )
        if location.startswith(HUB_PREFIX):
            splits = hub_splits(location, allow_download=request.allow_download)
        else:
            splits = saved_splits(Path(location), allow_outside=request.allow_outside)
        if None in splits.files:
            return _without_splits(splits, request)
        hidden = [name for name in splits.files if name != request.use_split and _is_unlabelled(splits, name, request)]
        used = [name for name in splits.files if name not in hidden] or list(splits.files)
        listed = ", ".join(map(str, hidden))
        notices = (
            (f"{splits.name} has no label in the split {listed}, which is left out.",) if len(used) < len(splits.files) else ()
        )
        if request.use_split is None:
            return _source_rows(_Rows(splits, used, request), notices=notices)
        names = tuple(map(str, used))
        refuse_missing_split(request.use_split, names, f"The dataset {splits.name}")
        return replace(_source_rows(_Rows(splits, [request.use_split], request), notices=notices), split_names=names)


def _is_unlabelled(splits: ArrowSplits, name: str | None, request: SourceRequest) -> bool:
    """Whether no row of a split has a label, as that of a competition: −1 or nothing in all of them.

    Its images are not opened. A split that cannot be read is none of these; whoever uses it hears of it.
    """
    try:
        rows = _Rows(splits, [name], request)
    except DataError:
        return False
    if not request.needs_labels or len(rows.columns.labels) != 1:
        return False
    (column,) = rows.columns.labels
    if kind_of(rows.features[column]) not in ("class", "text"):
        return False
    cells = rows.column(column)  # most splits say in their first row that they have labels
    return all(map(is_no_label, cells.slice(0, 1).to_pylist())) and all(map(is_no_label, cells.to_pylist()))


def _without_splits(splits: ArrowSplits, request: SourceRequest) -> SourceRows:
    """One saved dataset: all rows, or those that its column of splits says."""
    rows = _Rows(splits, [None], request)
    column = rows.columns.split
    if column is None:
        saved_as = canonical_split(splits.saved_as or "train")
        if request.use_split not in (None, "train", saved_as):
            refuse_missing_split(request.use_split, [], f"The dataset {splits.name}")
        notice = f"{splits.name} was saved from the split {saved_as}; all its rows are used."
        return _source_rows(rows, notices=() if saved_as == "train" else (notice,))
    words = np.asarray([canonical_split(word) for word in rows.words(column)])
    missing = [row for row, word in enumerate(words.tolist()) if is_empty(word)]
    if missing:
        row = missing[0]
        raise DataError(f"The split is missing in {rows.row_name(row)} (column {column}). Fill it in.")
    rows.splits, names = words, tuple(np.unique(words).tolist())
    if request.use_split is not None:
        refuse_missing_split(request.use_split, words.tolist(), f"The dataset {splits.name}")
        rows.keep(np.flatnonzero(words == request.use_split))
    return replace(_source_rows(rows), split_names=names)


class _Rows(Confidential):
    """The rows that are used, and what their columns are.

    Args:
        dataset: Folder of the files.
        used: The splits to map, one after the other; ``[None]`` for a saved dataset without splits.
        request: Names columns.
    """

    def __init__(self, dataset: ArrowSplits, used: Sequence[str | None], request: SourceRequest) -> None:
        self.name = dataset.name
        self._image_folders = None if request.allow_outside else dataset.image_folders
        self._request = request
        files = [file for split in used for file in dataset.files[split]]
        split_of_file = [number for number, split in enumerate(used) for _ in dataset.files[split]]
        self._arrow: ArrowRows = read_rows(files, dataset.name)
        split_of_row = np.repeat(split_of_file, self._arrow.file_lengths)
        if not len(split_of_row):
            raise DataError(f"The dataset {dataset.name} has no rows to use. Save it with some.")
        self.features = self._arrow.features
        column_of, with_split = self._arrow.table.column, None in used
        self.columns = find_columns(dataset.name, self.features, request, with_split=with_split, column_of=column_of)
        self.splits = None if None in used else np.asarray(used)[split_of_row]
        self.row_numbers = np.arange(len(split_of_row))
        self._number_in_split = self.row_numbers - np.searchsorted(split_of_row, split_of_row)
        self._images: Any = self._arrow.table.column(self.columns.image)
        self._prefixes = ["" if used[number] is None else f"{used[number]} " for number in split_of_row]

    def keep(self, rows: np.ndarray) -> None:
        """Use only the rows at these places among those in use; they keep their numbers in messages."""
        self.row_numbers = self.row_numbers[rows]
        self.splits = None if self.splits is None else self.splits[rows]

    def row_name(self, row: int) -> str:
        """How to call a row in a message: its place in the split, from 0."""
        number = self.row_numbers[row]
        return f"{self._prefixes[number]}row {self._number_in_split[number]}"

    def column(self, name: str) -> Any:
        """The cells of the rows that are used, as a ``pyarrow.ChunkedArray``."""
        column = self._arrow.table.column(name)
        return column if len(self.row_numbers) == len(column) else column.take(self.row_numbers)

    def words(self, name: str) -> list[str]:
        """Cells as text; names of classes rather than their numbers; empty where a cell is missing."""
        feature, cells = self.features[name], self.column(name).to_pylist()
        names = feature.names if kind_of(feature) == "class" else None
        hidden = [cell is None or (names is not None and cell < 0) for cell in cells]
        return [
            "" if nothing else str(cell if names is None else names[cell]).strip()
            for cell, nothing in zip(cells, hidden, strict=True)
        ]

    def refuse_files_outside(self) -> None:
        """Raise if rows that hold no image name a file that is not beside the dataset; the images stay on disk.

        Raises:
            DataError: The first such rows are named.
        """
        if self._image_folders is None:
            return
        import pyarrow.compute

        compute: Any = pyarrow.compute
        cells = self.column(self.columns.image)
        only_named = compute.is_null(compute.struct_field(cells, "bytes")).to_numpy()
        rows = np.flatnonzero(only_named)
        paths: list[str | None] = compute.struct_field(cells, "path").take(rows).to_pylist()
        bounds = ImageRoot(self._image_folders)
        outside = [
            index
            for index, path in enumerate(paths)
            if path and "://" not in path and not bounds.holds_file(Path(path), is_link=is_link(Path(path)))
        ]
        refuse_outside(
            [path or "" for path in paths],
            outside,
            root=" or ".join(map(str, self._image_folders)),
            of_what=f"the dataset {self.name}",
            row_name=lambda index: self.row_name(int(rows[index])),
        )

    def labels(self) -> SourceLabels:
        """Labels of the rows that are used."""
        names = list(self.columns.labels)
        request = self._request
        if request.label_separator is not None:
            return self._separated_labels(request.label_separator)
        if len(names) > 1:
            columns = {name: self.column(name) for name in names}
            return read_label_columns(columns, self.features, request, holder=self.name, row_name=self.row_name)
        feature, where = self.features[names[0]], f"column {names[0]}"
        labels = read_labels(self.column(names[0]), feature, where=where, row_name=self.row_name)
        if labels.values.ndim == 1:
            refuse_none_label(request.none_label)
            return labels
        return without_none(labels, request.none_label, self.row_name)

    def leave_out_unknown(self) -> tuple[str, ...]:
        """Leave out rows whose label is not known, where the user asks for it; a notice that says how many."""
        names = list(self.columns.labels)
        uncertain = self._request.uncertain
        if len(names) > 1:
            indicators = read_indicators({name: self.column(name) for name in names}, self.features)
            kept = certain_rows(indicators) if uncertain == "leave-out" else np.arange(len(indicators))
        elif kind_of(self.features[names[0]]) in GROUP_KINDS and self._request.label_separator is None:
            kept = known_labels(self.column(names[0]).to_pylist(), uncertain)
        else:
            kept = np.arange(len(self.row_numbers))
        notices = left_out_notices(len(kept), len(self.row_numbers))
        self.keep(kept)
        return notices

    def _separated_labels(self, separator: str) -> SourceLabels:
        for name in self.columns.labels:
            if len(self.columns.labels) == 1 and kind_of(self.features[name]) == "text":
                none = self._request.none_label
                return label_set_from_cells(self.words(name), separator, none_label=none, row_name=self.row_name)
        held = ", ".join(f"{name} of {self.name} holds {self.features[name]}" for name in self.columns.labels)
        raise UsageError(
            f"--label-separator is for one column of text; {held}. Leave it out: lists are several labels as they are."
        )

    def groups(self) -> np.ndarray | None:
        """Groups of the rows that are used."""
        name = self.columns.group
        if name is None:
            return None
        feature = self.features[name]
        return read_groups(self.column(name), feature, where=f"column {name}", row_name=self.row_name)

    def attributes(self) -> dict[str, np.ndarray]:
        """The other columns with one short cell per row."""
        taken = (self.columns.image, *self.columns.labels, self.columns.group, self.columns.split)
        others = [name for name in self.features if name not in taken]
        read = {name: read_attribute(self.column(name), self.features[name]) for name in others}
        return {name: values for name, values in read.items() if values is not None}

    def decode(self, row: int) -> np.ndarray:
        """Pixels of one row; only its bytes are read."""
        return decode_cell(self._images[int(self.row_numbers[row])].as_py(), self.row_name(row))


def _source_rows(rows: _Rows, *, notices: tuple[str, ...] = ()) -> SourceRows:
    rows.refuse_files_outside()
    left_out = rows.leave_out_unknown()
    labels = rows.labels()
    split_column = rows.columns.split
    method = "splits of the dataset" if split_column is None else f"column {split_column} of the dataset"
    return SourceRows(
        name=rows.name,
        labels=labels.values,
        image_names=[rows.row_name(row) for row in range(len(rows.row_numbers))],
        decode=rows.decode,
        label_names=labels.names,
        splits=rows.splits,
        split_method="no split" if rows.splits is None else method,
        groups=rows.groups(),
        group_column=rows.columns.group,
        attributes=rows.attributes(),
        notices=(*notices, *left_out, *labels.notices, *unused_classes(labels)),
    )
