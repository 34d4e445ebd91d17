"""Open images to predict: as ``open_dataset`` does, but labels may be missing, and a plain folder or one file will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL.Image import Image as Picture

from crossgraft.data.class_names import name_classes
from crossgraft.data.dataset import open_arrays
from crossgraft.data.listing import look_at_rows, make_request, warn_of_unreadable
from crossgraft.data.opening import FindSplit, list_part
from crossgraft.data.rows import ImageRows
from crossgraft.data.sources._source import NO_LABEL
from crossgraft.errors import DataError
from crossgraft.options.data import ImageOptions
from crossgraft.progress import Reporter

if TYPE_CHECKING:
    import pandas as pd


def open_images(
    location: str | Path | Sequence[str | Path] | pd.DataFrame,
    options: ImageOptions,
    *,
    known_classes: Sequence[str] = (),
    several_labels: bool = False,
    may_lack_labels: bool = False,
    default_window: str | None = None,
    default_slices: str | None = None,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
    find_split: FindSplit | None = None,
) -> ImageRows:
    """Open images that need no labels, and decode each of them once.

    Args:
        location: One image file, a folder of images (in folders or not), a table with a column of paths, an ``.npz`` file
            with images, or anything else that ``open_dataset`` takes; or a list of image files.
        options: As in ``open_dataset``; labels may be missing.
        known_classes: Folders with these names are labels; other folders are only places where images lie. A table with a
            column for each of them has several labels per image.
        several_labels: Whether an image may have several of ``known_classes``.
        may_lack_labels: Whether ``label_column`` is one of other data, which these may lack.
        default_window: The window of DICOM and NIfTI images where none is given; no other image is told.
        default_slices: The slices of volumes where none are given.
        num_threads: Threads that decode images; by default one per core, at most 8.
        reporter: Reporter of progress, notices and warnings.
        find_split: Finds the split of the run that made the model, which says what ``use_split`` means for data without
            splits; None: there is no run.

    Returns:
        All images that were listed, those among them that cannot be decoded, too.

    Raises:
        DataError: There is no image, a table or array is damaged, or there are no rows of ``use_split``.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        MissingExtraError: The images have a format whose reader is not installed.
        UsageError: An option has no meaning for this kind of data.
    """
    reporter = reporter if reporter is not None else Reporter(quiet=True)
    request = replace(
        make_request(options, use_split=options.use_split),
        default_window=default_window,
        default_slices=default_slices,
        needs_labels=False,
        known_classes=tuple(known_classes),
        several_labels=several_labels,
        may_lack_labels=may_lack_labels,
    )
    source, rows, chosen, used = list_part(location, request, reporter, find_split)
    images = look_at_rows(
        source,
        rows,
        chosen,
        classes=name_classes(rows.labels, rows.label_names, None) if rows.has_labels else None,
        rows_used=used,
        skip_unreadable=options.skip_unreadable,
        num_threads=num_threads,
        reporter=reporter,
    )
    if not len(images.readable_rows):
        raise DataError(f"None of the {len(images)} images of {images.name} can be decoded.")
    warn_of_unreadable(images, reporter)
    return images


def images_of_arrays(images: Sequence[np.ndarray | Picture] | np.ndarray, *, name: str = "arrays") -> ImageRows:
    """Images that are in memory, without labels; their form as in ``dataset_from_arrays``.

    Raises:
        DataError: There is no image, or one has another shape or type, or samples are NaN or out of range.
    """
    if len(images) == 0:
        raise DataError("There are no images: the sequence of arrays is empty.")
    unlabelled = open_arrays(images, np.full(len(images), NO_LABEL), name=name)
    return unlabelled.seen_as(ImageRows, class_names=(), targets=None)
