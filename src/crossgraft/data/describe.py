"""A data set in a record, and a few of its images, spread over the classes and chosen before any is decoded."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
from PIL import Image

from crossgraft.data.class_names import name_classes
from crossgraft.data.dataset import Dataset
from crossgraft.data.listing import list_rows, look_at_rows, make_request, warn_of_unreadable
from crossgraft.data.record import DatasetRecord, FileCountRecord
from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError
from crossgraft.options._option import Options, narrowed
from crossgraft.options.data import ClassOptions, SourceOptions, Unreadable
from crossgraft.progress import Reporter
from crossgraft.records.base import Thumbnail
from crossgraft.seeding import generator
from crossgraft.tasks import recorded_task, task_of
from crossgraft.types import Targets
from crossgraft.words.formatting import count, counted

THUMBNAIL_PIXELS = 96


def thumbnail_png(pixels: np.ndarray) -> str:
    """An image of (height, width, 1 or 3) as a small PNG file in base64."""
    return _in_base64(_thumbnail(pixels), format="PNG", optimize=True)


class SmallImage(TypedDict, total=False):
    """One of two fields of a record of a small image."""

    png_base64: str
    jpeg_base64: str


def smallest_thumbnail(pixels: np.ndarray) -> SmallImage:
    """PNG or JPEG, whichever is the shorter: thousands of photographs as PNG would be too large a page."""
    image = _thumbnail(pixels)
    png, jpeg = _in_base64(image, format="PNG"), _in_base64(image, format="JPEG", quality=_JPEG_QUALITY)
    return {"png_base64": png} if len(png) <= len(jpeg) else {"jpeg_base64": jpeg}


_JPEG_QUALITY = 80


def _thumbnail(pixels: np.ndarray) -> Image.Image:
    if pixels.dtype != np.uint8:
        # Stretched to the range of the image, because twelve bits shown in sixteen are black.
        low, high = float(pixels.min()), float(pixels.max())
        pixels = ((pixels.astype(np.float32) - low) / max(high - low, 1e-12) * 255).astype(np.uint8)
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    image.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    return image


def _in_base64(image: Image.Image, **how: Any) -> str:
    buffer = io.BytesIO()
    image.save(buffer, **how)
    return base64.b64encode(buffer.getvalue()).decode("ascii")


class Examples(NamedTuple):
    """A few images of a data set.

    Attributes:
        dataset: These images alone.
        numbers: Number of each among all images of the data, from 1.
    """

    dataset: Dataset
    numbers: list[int]


def example_rows(targets: Targets, num_classes: int, num_images: int, *, seed: int) -> list[int]:
    """Row numbers of at most ``num_images`` images, class by class.

    Classes take turns, the largest first, until there are enough; which image of a class comes next is drawn. So fewer images
    are among more of the same seed.

    Args:
        targets: Class of each image, or (n, L) of 0 and 1; an image without any label is not drawn.
        num_classes: Number of classes or labels.
        num_images: Number of images.
        seed: Random seed.
    """
    task = task_of(targets, num_classes)
    members = [np.flatnonzero(task.members(targets, class_index)) for class_index in range(num_classes)]
    drawn = [generator(seed, "examples", class_index).permutation(rows).tolist() for class_index, rows in enumerate(members)]
    turns = sorted(range(num_classes), key=lambda class_index: -len(drawn[class_index]))
    chosen: dict[int, tuple[int, int]] = {}
    for turn in range(max(map(len, drawn), default=0)):
        for class_index in turns:
            if turn < len(drawn[class_index]) and len(chosen) < num_images:
                chosen.setdefault(int(drawn[class_index][turn]), (class_index, turn))
    return sorted(chosen, key=lambda row: chosen[row])


def open_examples(data: object, options: Options, num_images: int, *, seed: int, reporter: Reporter) -> Examples:
    """Draw a few images of data as every command opens them; no other image is decoded.

    Args:
        data: As in ``open_dataset``, or an open ``Dataset``.
        options: Options of ``SourceOptions``, ``ClassOptions`` and ``Unreadable``, among others.
        num_images: As in ``example_rows``; fewer where the data have fewer.
        seed: Random seed of the draw.
        reporter: Reporter of progress, notices and warnings.

    Raises:
        DataError: The data are missing, empty or unsound, or no image that was drawn can be decoded.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        UsageError: An option has no meaning for this kind of data.
    """
    if isinstance(data, Dataset):
        rows = example_rows(data.targets, len(data.class_names), num_images, seed=seed)
        dataset = data.take(_some(rows, data.name), rows_used=_in_words(rows, len(data)))
        return Examples(dataset, [row + 1 for row in rows])
    source, listed = list_rows(data, make_request(narrowed(SourceOptions, options), use_split=None), reporter)
    if listed.problems:
        raise DataError(listed.problems[0])
    of_classes, of_files = narrowed(ClassOptions, options), narrowed(Unreadable, options)
    classes = name_classes(listed.labels, listed.label_names, of_classes.class_names)
    for notice in classes.notices:
        reporter.warn(notice)
    rows = example_rows(classes.targets, len(classes.names), num_images, seed=seed)
    seen = look_at_rows(
        source,
        listed,
        np.asarray(_some(rows, listed.name)),
        classes=classes,
        rows_used=_in_words(rows, len(listed.labels)),
        ordinal=of_classes.ordinal,
        skip_unreadable=of_files.skip_unreadable,
        reporter=reporter,
    ).seen_as(Dataset)
    if not len(seen.readable_rows):
        raise DataError(f"None of the {counted(len(rows), 'image')} drawn from {listed.name} can be decoded.")
    warn_of_unreadable(seen, reporter)
    return Examples(seen.readable(), [rows[index] + 1 for index in seen.readable_rows.tolist()])


def _some(rows: Sequence[int], name: str) -> list[int]:
    if not rows:
        raise DataError(f"{name} has no image with a label.")
    return list(rows)


def _in_words(rows: Sequence[int], of: int) -> str:
    return f"{len(rows)} of {counted(of, 'image')}"


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
