"""From a location to rows: the way that everything takes that opens data, with labels or without.

A source lists rows before any image is opened; which of them are used is decided then; and each of these is decoded once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from crossgraft.data._groups import NO_GROUPS
from crossgraft.data.class_names import Classes
from crossgraft.data.inspection import KEPT_BYTES, InspectedImages, inspect_images
from crossgraft.data.joining import JOINED, join_rows, refuse_twice
from crossgraft.data.rows import ImageRows
from crossgraft.data.sources import SOURCES, DataSource, SourceRequest, SourceRows
from crossgraft.data.sources._image_files import location_error
from crossgraft.data.sources._source import notices_of_other_splits
from crossgraft.data.sources.csv_table import rows_of_given
from crossgraft.data.sources.image_folder import ONE_IMAGE
from crossgraft.errors import DataError, UsageError
from crossgraft.options._values import given_kind, refuse_empty
from crossgraft.options.data import SourceOptions
from crossgraft.paths import ALLOW_OR_ANOTHER, refuse_impossible
from crossgraft.progress import Reporter
from crossgraft.records.base import Record
from crossgraft.running.unattended import Kept, is_unattended
from crossgraft.words.visible import storable


def make_request(options: SourceOptions, *, use_split: str | None) -> SourceRequest:
    """What the user says about data, as sources understand it.

    Raises:
        DataError: There is no folder ``image_root``.
        UsageError: ``group_from`` and ``group_column`` are both given.
    """
    if options.group_from is not None and options.group_column is not None:
        raise UsageError("--group-from and --group-column both say what the groups are. Give one of the two.")
    join = options.join
    root = None if options.image_root is None else Path(options.image_root)
    if root is not None:
        refuse_impossible(root, what="--image-root", kind=DataError)
    if root is not None and not root.is_dir():
        raise DataError(f"No such folder: {root} (--image-root).")
    columns = options.label_column.split(",") if isinstance(options.label_column, str) else (options.label_column or ())
    return SourceRequest(
        use_split=use_split,
        label_columns=tuple(column.strip() for column in columns if column.strip()),
        label_separator=options.label_separator,
        group_column=options.group_column,
        path_column=options.path_column,
        image_root=root,
        allow_outside=options.allow_outside,
        window=options.window,
        slices=options.slices,
        allow_download=options.allow_download,
        uncertain=options.uncertain,
        none_label=options.none_label,
        group_from=options.group_from,
        keep_masks=options.keep_masks,
        join=tuple(map(location_text, [join] if isinstance(join, str | Path) else join or ())),
    )


def location_text(location: object) -> str:
    """What the user wrote.

    Raises:
        UsageError: It is an object of another library.
        DataError: No file or folder can have such a path.
    """
    if isinstance(location, str | os.PathLike):
        text = os.fspath(location)
        refuse_empty("The path of the data", text)
        refuse_impossible(text, what="The path of the data", kind=DataError)
        return text
    kind = type(location).__name__
    advice = "Give a folder, a table or an .npz file, or make a data set of arrays with crossgraft.data.dataset_from_arrays."
    if type(location).__module__.startswith("datasets."):
        advice = "Write it to a folder with save_to_disk, and give that folder."
    if "Iterable" in kind:
        advice = "It is streamed and can be read only once. Load it without streaming, and save it with save_to_disk."
    article = "an" if kind[0] in "AEIOUaeiou" else "a"
    raise UsageError(f"Data cannot be {article} {kind}. {advice}")


def list_rows(location: object, request: SourceRequest, reporter: Reporter) -> tuple[str, SourceRows]:
    """The name of the source that opens ``location``, and the rows that it lists; their notices are shown.

    Raises:
        DataError: The data are missing, empty or badly shaped. Problems of single classes are in ``SourceRows.problems``.
        UsageError: ``location`` is an object of another library, or an option has no meaning for this kind of data.
    """
    given = given_kind(location)
    try:
        name, rows = _list_given(given, location, request) if given else _list_one(location, request)
        if request.join:
            locations = [rows.name if given else location_text(location), *request.join]
            refuse_twice(locations)
            name, rows = JOINED, join_rows([rows, *(_list_one(other, request)[1] for other in request.join)], locations)
    except PermissionError as error:
        raise DataError(f"Permission denied: {error.filename}. {ALLOW_OR_ANOTHER}") from error
    tell_of_listing(rows, reporter)
    return name, rows


def _list_given(kind: str, location: object, request: SourceRequest) -> tuple[str, SourceRows]:
    """The same of what a program gave: a frame, or a list of image files."""
    files = cast("Sequence[str | os.PathLike[str]]", location) if kind == "files" else ()
    if any(source.accepts(os.fspath(item)) for item in files for _, source in SOURCES):
        raise UsageError("A list of data is one of image files. Give the first data set alone, and the others as join (--join).")
    rows = rows_of_given(location, request)
    return kind, _as_asked(rows, request)


def _list_one(location: object, request: SourceRequest) -> tuple[str, SourceRows]:
    """The same of one data set that has a location; nothing is shown."""
    text = location_text(location)
    source = _find_source(text, request)
    if request.keep_masks and source.name not in ("image_folder", ONE_IMAGE.name):
        raise UsageError("--keep-masks has no meaning here: masks are looked for in folders of images alone.")
    rows = source.open(text, request)
    _refuse_uneven(source.name, rows)
    return source.name, _as_asked(rows, request)


def _refuse_uneven(source: str, rows: object) -> None:
    """What a source of another package lists must be rows that belong together, or one image gets the label of another.

    Raises:
        UsageError: It is nothing of the kind.
    """
    if not isinstance(rows, SourceRows):
        raise UsageError(
            f"The data source {source} listed a {type(rows).__name__}, not SourceRows. Mend the package that brings it."
        )
    columns = {
        "labels": rows.labels,
        "groups": rows.groups,
        "groups_known": rows.groups_known,
        "splits": rows.splits,
        **rows.attributes,
    }
    for name, column in cast("dict[str, object]", columns).items():
        if column is not None and not (isinstance(column, np.ndarray) and len(column) == len(rows.image_names)):
            found = f"{len(column)} values" if isinstance(column, np.ndarray) else f"a {type(column).__name__}"
            raise UsageError(
                f"The data source {source} gave {found} as {name} of {len(rows.image_names)} images, not an array of "
                "one for each. Mend the package that brings it."
            )


def _as_asked(rows: SourceRows, request: SourceRequest) -> SourceRows:
    rows = rows.with_ids_merged()
    if rows.splits is not None and request.needs_labels and request.use_split is None:
        rows = replace(rows, notices=(*rows.notices, *notices_of_other_splits(rows.splits.tolist())))
    if request.group_column == NO_GROUPS:
        rows = replace(rows, groups=None, group_column=None, groups_known=None)
    return replace(rows, name=storable(rows.name))


def tell_of_listing(rows: SourceRows, reporter: Reporter) -> None:
    """Show how files are read, and what the source noticed."""
    for sentence in rows.reading:
        reporter.say(sentence)
    for notice in rows.notices:
        reporter.warn(notice)


def look_at_rows(
    source: str,
    rows: SourceRows,
    chosen: np.ndarray,
    *,
    classes: Classes | None,
    split: Record | None = None,
    split_fingerprint: str | None = None,
    rows_used: str,
    ordinal: bool = False,
    skip_unreadable: bool = False,
    for_check: bool = False,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
) -> ImageRows:
    """Decode the images of some rows, and put them together with what is known of them.

    Args:
        source: Name of the source.
        rows: All rows that it lists.
        chosen: Numbers of the rows to use, in the order in which they are used.
        classes: Classes of all rows; None: the labels mean nothing.
        split: The split that was drawn or read, if any.
        split_fingerprint: What it is known by.
        rows_used: Description of the chosen rows.
        ordinal: Whether the user states an order of the classes.
        skip_unreadable: As in ``inspect_images``.
        for_check: As in ``inspect_images``.
        num_threads: Threads that decode; by default one per core, at most 8.
        reporter: Reporter of progress.

    Returns:
        The chosen rows, unreadable ones among them.

    Raises:
        UnreadableImageError: An image cannot be decoded, and neither ``skip_unreadable`` nor ``for_check`` is on.
    """
    decode = rows.decode  # alone: what is kept to read images with holds no other column
    names = [rows.image_names[int(row)] for row in chosen]
    key = None
    if is_unattended() and rows.stamps is not None:
        with suppress(OSError):  # a file that is gone by now is named when it is read
            key = rows.stamps(), tuple(names), chosen.tobytes(), skip_unreadable, for_check
    inspected = None if key is None else KEPT.get(key)
    if inspected is None:
        inspected = inspect_images(
            names,
            lambda index: decode(int(chosen[index])),
            skip_unreadable=skip_unreadable,
            for_check=for_check,
            num_threads=num_threads,
            reporter=reporter,
        )
        if key is not None:
            KEPT.keep(key, inspected, sum(pixels.nbytes for pixels in inspected.kept.values()))
    if (dicom_place := rows.dicom_place) is not None:
        inspected = replace(inspected, dicom_place=lambda index: dicom_place(int(chosen[index])))
    return ImageRows(
        name=rows.name,
        source=source,
        labels=rows.labels[chosen],
        class_names=() if classes is None else classes.names,
        targets=None if classes is None else classes.targets[chosen],
        groups=None if rows.groups is None else rows.groups[chosen],
        group_column=rows.group_column,
        groups_known=None if rows.groups_known is None else rows.groups_known[chosen],
        splits=None if rows.splits is None else rows.splits[chosen],
        attributes={name: values[chosen] for name, values in rows.attributes.items()},
        rows_used=rows_used,
        split_method=rows.split_method,
        split=split,
        split_fingerprint=split_fingerprint,
        reading=rows.reading,
        files=rows.files.with_classes(None if classes is None else _names_of_labels(rows.labels, classes)),
        ordinal=ordinal,
        skipped_unreadable=(),
        _images=inspected,
        _image_rows=np.arange(len(chosen)),
    )


KEPT: Kept[InspectedImages] = Kept(KEPT_BYTES // 2)
"""Images by what their files are; bytes of their pixels."""


def _names_of_labels(labels: np.ndarray, classes: Classes) -> dict[str, str]:
    """Label as the source says it → name of its class; empty where an image has several."""
    if labels.ndim == 2:
        return {}
    return {str(label): classes.names[target] for label, target in zip(labels, classes.targets, strict=True)}


def warn_of_unreadable(rows: ImageRows, reporter: Reporter) -> None:
    """Say how many images are left out, if any."""
    if number := len(rows.unreadable):
        reporter.warn(f"{number} of {len(rows)} images cannot be read and {'is' if number == 1 else 'are'} left out.")


def _find_source(location: str, request: SourceRequest) -> DataSource:
    if not request.needs_labels and ONE_IMAGE.accepts(location):
        return ONE_IMAGE
    for _, source in SOURCES:
        if source.accepts(location):
            return source
    raise location_error(location, [source.description for _, source in SOURCES])
