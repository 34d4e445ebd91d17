"""Data become records: plain, without absolute paths and patient ids."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crossgraft.data.dataset import Dataset
from crossgraft.data.examples import thumbnail_png
from crossgraft.data.record import DatasetRecord, FileCountRecord
from crossgraft.data.rows import ImageRows
from crossgraft.records.base import Thumbnail
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count, counted

_MOST_CLASSES = 8


def known_split(dataset: DatasetRecord) -> list[str]:
    """What its split is known by, as one part of a summary; nothing where rows have no parts, or one for each fold.

    >>> known_split(DatasetRecord.model_construct(split_fingerprint="50ac68173c71"))
    ['split 50ac68173c71']
    """
    return [] if dataset.split_fingerprint is None else [f"split {dataset.split_fingerprint}"]


def describe_groups(dataset: DatasetRecord) -> str:
    """Groups of the data in words, or that leakage between patients was not checked."""
    if dataset.group_column is None:
        return "patient leakage not checked (no group column)"
    return f"{counted(dataset.num_groups or 0, 'group')} by {dataset.group_column}"


def describe_data(dataset: DatasetRecord, *, labels_left_out: int = 0) -> str:
    """Images, split, classes (or labels, and how many were scored) and groups in one line."""
    images = f"{counted(dataset.num_images, 'image')}, {dataset.rows_used}"
    classes = describe_classes(dataset, labels_left_out=labels_left_out)
    if recorded_task(dataset).partitions and len(dataset.class_counts) <= _MOST_CLASSES:
        classes += f" ({' / '.join(map(count, dataset.class_counts))})"
    return " · ".join([images, *known_split(dataset), classes, describe_groups(dataset)])


def describe_classes(dataset: DatasetRecord, *, labels_left_out: int = 0) -> str:
    """How many classes, or how many labels and how many of them were scored."""
    number, task = len(dataset.class_names), recorded_task(dataset)
    scored = f" ({number - labels_left_out} scored)" if labels_left_out else ""
    return counted(number, task.noun, task.nouns) + scored + (" in an order" if task.in_order else "")


THUMBNAILS_PER_CLASS = 4
THUMBNAIL_CLASSES = 12


def describe_dataset(dataset: ImageRows, *, show_names: bool = False) -> DatasetRecord:
    """Labelled rows as the report shows them; names of files only with ``show_names``."""
    return DatasetRecord(
        name=dataset.name,
        source=dataset.source,
        num_images=len(dataset),
        class_names=list(dataset.class_names),
        class_counts=list(dataset.class_counts),
        rows_used=dataset.rows_used,
        split_method=dataset.split_method,
        split_fingerprint=dataset.split_fingerprint,
        group_column=dataset.group_column,
        num_groups=None if dataset.groups is None else len(np.unique(dataset.groups)),
        fingerprint=dataset.fingerprint,
        image_kinds=dict(dataset.image_kinds),
        reading=list(dataset.reading),
        files=describe_files_of(dataset),
        task=dataset.task.recorded,
        ordinal=dataset.ordinal,
        num_skipped_unreadable=len(dataset.skipped_unreadable),
        skipped_unreadable=list(dataset.skipped_unreadable) if show_names else [],
    )


def describe_files_of(images: ImageRows) -> list[FileCountRecord]:
    """Files of the data by kind and class: those that were read, then those that were passed over."""
    read = [
        FileCountRecord(kind=kind, class_name=class_name, files=number, read=True)
        for (kind, class_name), number in images.files.read.items()
    ]
    return read + [
        FileCountRecord(kind=skipped.kind, class_name=skipped.place, files=skipped.number, read=False, reason=skipped.reason)
        for skipped in images.files.passed_over
    ]


def thumbnails_of_rows(images: ImageRows, numbers: Iterable[int]) -> list[Thumbnail]:
    """Small images that are shown for themselves, by their numbers from 1; each once."""
    return [Thumbnail(row=number, png_base64=thumbnail_png(images.read(number - 1))) for number in dict.fromkeys(numbers)]


def make_thumbnails(dataset: Dataset) -> list[Thumbnail]:
    """The first few images of each class, at most 96 pixels a side."""
    return [
        Thumbnail(class_name=class_name, png_base64=thumbnail_png(dataset.read(int(row))))
        for class_index, class_name in enumerate(dataset.class_names[:THUMBNAIL_CLASSES])
        for row in np.flatnonzero(dataset.members(class_index))[:THUMBNAILS_PER_CLASS]
    ]
