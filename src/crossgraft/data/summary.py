"""A data set in a few words, from its record."""

from __future__ import annotations

from crossgraft.data.record import DatasetRecord
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
