"""Open a data set: find its kind, list the rows to use, look at each of their images once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np

from crossgraft.data._groups import NO_GROUPS
from crossgraft.data.class_names import Classes, name_classes
from crossgraft.data.dataset import Dataset
from crossgraft.data.inspection import InspectedImages, inspect_images
from crossgraft.data.selection import RowSelection
from crossgraft.data.sources import SOURCES, DataSource, SourceRequest, SourceRows
from crossgraft.data.sources._locations import location_error
from crossgraft.data.splits import Split
from crossgraft.errors import DataError, UsageError
from crossgraft.paths import refuse_impossible
from crossgraft.progress import Reporter
from crossgraft.tasks import task_of
from crossgraft.types import Targets
from crossgraft.words.visible import storable

NOT_OPTIONS = {"location", "use_split", "num_threads", "reporter"}


def open_dataset(
    location: str | Path,
    *,
    use_split: str | None = "train",
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    class_names: str | Path | Sequence[str] | None = None,
    ordinal: bool = False,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    allow_outside: bool = False,
    window: str | None = None,
    slices: str | None = None,
    allow_download: bool = False,
    skip_unreadable: bool = False,
    split: str | Path | None = None,
    holdout: float | None = None,
    folds: int | None = None,
    fold: int = 0,
    limit: int | None = None,
    per_class: int | None = None,
    seed: int = 0,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
) -> Dataset:
    """Open images with labels, and decode every image that will be used once.

    Args:
        location: A folder with one sub-folder per class, a ``.csv`` or ``.tsv`` table, an ``.npz`` file, a folder written
            by ``save_to_disk`` of Hugging Face datasets, ``hf:OWNER/NAME``, the word ``digits``, or what an installed
            plug-in opens.
        use_split: Split of which the rows are used, where the data have splits; images of other rows are not
            opened and have no influence on anything. Without splits, all rows are used. None: all rows,
            whatever their split; where one is read or drawn (``split``, ``holdout``, ``folds``), ``Dataset.splits``
            then names the part of each row.
        label_column: Column of the labels, if its name is not a usual one. Several columns (a sequence, or one text with
            commas) are several labels per image.
        label_separator: Separator of the labels in one cell, where an image may have several.
        class_names: Names of the classes in order, or a text file with one name per line. Where labels are whole
            numbers, name k belongs to label k; where they are words, the list gives their order.
        ordinal: Whether the order of the classes has a meaning, as with grades; reports then say what does not
            use it.
        group_column: Column of the patient, writer or lesion; by default one with a usual name. ``none``: there are no
            groups.
        path_column: Column of the image files.
        image_root: Folder that the image files of a table are relative to; by default the folder of the
            table.
        allow_outside: Whether paths of a table (or of a Hugging Face dataset) may lead out of that folder.
        window: Intensities of DICOM and NIfTI images that become black and white.
        slices: Slices of volumes and frames of multi-frame files that are images.
        allow_download: Whether data may be fetched, where the location names data on a hub.
        skip_unreadable: Leave out images that cannot be decoded, and list them.
        split: File of a saved split; only its train rows are used.
        holdout: Set this share of the images aside as test in a new split and use the rest; whole groups stay
            together.
        folds: Make this many folds and use all but one of them.
        fold: Number of the fold that is set aside, from 0.
        limit: Use at most this many images; classes keep their shares.
        per_class: Use this many images of each class.
        seed: Random seed of ``holdout``, ``folds``, ``limit`` and ``per_class``.
        num_threads: Threads that decode images; by default one per core, at most 8.
        reporter: Reporter of progress, notices and warnings.

    Raises:
        DataError: The data are missing, empty, damaged or unsound; the message names the file or the row.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        MissingExtraError: The images have a format that this version cannot read.
        UsageError: An option has no meaning for this kind of data.
    """
    reporter = reporter if reporter is not None else Reporter(quiet=True)
    selection = RowSelection(
        split=None if split is None else Path(split),
        holdout=holdout,
        folds=folds,
        fold=fold,
        limit=limit,
        per_class=per_class,
        seed=seed,
    )
    request = make_request(
        use_split=use_split,
        label_column=label_column,
        label_separator=label_separator,
        group_column=group_column,
        path_column=path_column,
        image_root=image_root,
        allow_outside=allow_outside,
        window=window,
        slices=slices,
        allow_download=allow_download,
    )
    source_name, rows = list_rows(location_text(location), request, reporter)
    if rows.problems:
        raise DataError(rows.problems[0])
    classes = name_classes(rows.labels, rows.label_names, class_names)
    task = task_of(classes.targets, len(classes.names), ordinal=ordinal)
    task.refuse_useless(classes.targets, classes.names, rows.name)
    for notice in classes.notices:
        reporter.warn(notice)
    known_classes, targets = classes.names, classes.targets
    drawn = selection.make_split(rows, targets, known_classes)
    if drawn is not None and use_split is None:
        rows = replace(rows, splits=drawn.part_names())
    chosen = np.arange(len(targets)) if drawn is None or use_split is None else drawn.rows("train")
    chosen = chosen[selection.fewer(targets[chosen], known_classes)]
    decode = rows.decode  # alone: what is kept to read images with holds no other column
    inspected = inspect_images(
        [rows.image_names[int(row)] for row in chosen],
        lambda index: decode(int(chosen[index])),
        skip_unreadable=skip_unreadable,
        num_threads=num_threads,
        reporter=reporter,
    )
    dataset = replace(
        _dataset_of(source_name, rows, classes, chosen, inspected),
        rows_used=selection.describe(_rows_in_words(rows, use_split, drawn), len(targets)),
        split_method=rows.split_method if drawn is None else drawn.method,
        split=drawn,
        ordinal=ordinal,
    )
    return _without_unreadable(dataset, np.asarray(list(inspected.unreadable), dtype=np.int64), reporter)


DATA_OPTIONS = tuple(name for name in signature(open_dataset).parameters if name not in NOT_OPTIONS)
"""What a user may say about data; every command that opens data takes these arguments and flags."""


def make_request(
    *,
    use_split: str | None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    allow_outside: bool = False,
    window: str | None = None,
    slices: str | None = None,
    allow_download: bool = False,
) -> SourceRequest:
    """What the user says about data, as sources understand it; arguments as in ``open_dataset``.

    Raises:
        DataError: There is no folder ``image_root``.
    """
    root = None if image_root is None else Path(image_root)
    if root is not None:
        refuse_impossible(root, what="--image-root", kind=DataError)
    if root is not None and not root.is_dir():
        raise DataError(f"No such folder: {root} (--image-root).")
    return SourceRequest(
        use_split=use_split,
        label_columns=_column_names(label_column),
        label_separator=label_separator,
        group_column=group_column,
        path_column=path_column,
        image_root=root,
        allow_outside=allow_outside,
        window=window,
        slices=slices,
        allow_download=allow_download,
    )


def location_text(location: object) -> str:
    """What the user wrote.

    Raises:
        UsageError: It is an object of another library.
        DataError: No file or folder can have such a path.
    """
    if isinstance(location, str | os.PathLike):
        text = os.fspath(location)
        refuse_impossible(text, what="The path of the data", kind=DataError)
        return text
    kind = type(location).__name__
    advice = "Give a folder, a table or an .npz file, or make a data set of arrays with dataset_from_arrays."
    if type(location).__module__.startswith("datasets."):
        advice = "Write it to a folder with save_to_disk, and give that folder."
    if "Iterable" in kind:
        advice = "It is streamed and can be read only once. Load it without streaming, and save it with save_to_disk."
    article = "an" if kind[0] in "AEIOU" else "a"
    raise UsageError(f"Data cannot be {article} {kind}. {advice}")


def _column_names(label_column: str | Sequence[str] | None) -> tuple[str, ...]:
    columns = label_column.split(",") if isinstance(label_column, str) else (label_column or ())
    return tuple(column.strip() for column in columns if column.strip())


def list_rows(location: str, request: SourceRequest, reporter: Reporter) -> tuple[str, SourceRows]:
    """The name of the source that opens ``location``, and the rows that it lists; their notices are shown.

    Raises:
        DataError: The data are missing, empty or badly shaped. Problems of single classes are in ``SourceRows.problems``.
    """
    source = _find_source(location)
    try:
        rows = source.open(location, request)
    except PermissionError as error:
        raise DataError(f"Permission denied: {error.filename}.") from error
    for sentence in rows.reading:
        reporter.say(sentence)
    for notice in rows.notices:
        reporter.warn(notice)
    rows = replace(rows, name=storable(rows.name))
    if request.group_column == NO_GROUPS:
        rows = replace(rows, groups=None, group_column=None, groups_known=None)
    return source.name, rows


def classes_of(
    rows: SourceRows, class_names: str | Path | Sequence[str] | None = None
) -> tuple[tuple[str, ...], Targets]:
    """Names of the classes (or labels) and the targets of ``rows``; ``class_names`` as in ``open_dataset``."""
    classes = name_classes(rows.labels, rows.label_names, class_names)
    return classes.names, classes.targets


def _dataset_of(
    source_name: str, rows: SourceRows, classes: Classes, chosen: np.ndarray, inspected: InspectedImages
) -> Dataset:
    """The rows ``chosen``, whose images were inspected in that order; classes are those of all rows."""
    return Dataset(
        name=rows.name,
        source=source_name,
        labels=rows.labels[chosen],
        class_names=classes.names,
        targets=classes.targets[chosen],
        groups=None if rows.groups is None else rows.groups[chosen],
        group_column=rows.group_column,
        groups_known=None if rows.groups_known is None else rows.groups_known[chosen],
        splits=None if rows.splits is None else rows.splits[chosen],
        attributes={name: values[chosen] for name, values in rows.attributes.items()},
        rows_used="",
        split_method=rows.split_method,
        reading=rows.reading,
        skipped_unreadable=tuple(inspected.names[row] for row in inspected.unreadable),
        _images=inspected,
        _image_rows=np.arange(len(chosen)),
    )


def _find_source(location: str) -> DataSource:
    for _, source in SOURCES:
        if source.accepts(location):
            return source
    raise location_error(location, [source.description for _, source in SOURCES])


def _rows_in_words(rows: SourceRows, use_split: str | None, drawn: Split | None) -> str:
    if drawn is not None and use_split is not None:
        return "train rows of the split"
    if rows.splits is None:
        return "all rows (no split given)"
    return "all rows of all splits" if use_split is None else f"split {use_split}"


def _without_unreadable(dataset: Dataset, unreadable: np.ndarray, reporter: Reporter) -> Dataset:
    """The rows whose images were decoded; no class may be left without any."""
    if unreadable.size == 0:
        return dataset
    readable = np.setdiff1d(np.arange(len(dataset)), unreadable)
    emptied = [
        name
        for index, name in enumerate(dataset.class_names)
        if dataset.members(index).any() and not dataset.members(index)[readable].any()
    ]
    if emptied:
        name = emptied[0]
        raise DataError(
            f"No image of the class {name} can be decoded ({unreadable.size} unreadable images in all, the first is "
            f"{dataset.skipped_unreadable[0]}). Repair them or remove the class."
        )
    verb = "is" if unreadable.size == 1 else "are"
    reporter.warn(f"{unreadable.size} of {len(dataset)} images cannot be read and {verb} left out.")
    return dataset.take(readable, rows_used=f"{dataset.rows_used}, {unreadable.size} unreadable left out")
