"""Images in any of the forms that a caller has them in: files, tables, open data, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from PIL.Image import Image as Picture

from crossgraft.data.class_names import name_classes
from crossgraft.data.dataset import Dataset, open_arrays
from crossgraft.data.listing import location_text, look_at_rows, make_request, warn_of_unreadable
from crossgraft.data.opening import FindSplit, list_part, part_of_run
from crossgraft.data.rows import ImageRows
from crossgraft.data.sources._source import NO_LABEL
from crossgraft.data.splits import PARTS
from crossgraft.errors import DataError, UsageError
from crossgraft.options._option import Options, narrowed, options_of
from crossgraft.options._values import given_kind
from crossgraft.options.data import ImageOptions, SourceOptions, Unreadable
from crossgraft.progress import Reporter

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image as Picture

    Files = str | Path | Sequence[str | Path] | pd.DataFrame
    Images = Files | Iterator[str | Path] | Dataset | Sequence[np.ndarray] | np.ndarray | Sequence[Picture]


def open_images(
    images: Images,
    options: Options,
    reporter: Reporter,
    *,
    known_classes: Sequence[str] = (),
    several_labels: bool = False,
    may_lack_labels: bool = False,
    default_window: str | None = None,
    default_slices: str | None = None,
    num_threads: int | None = None,
    find_split: FindSplit | None = None,
) -> ImageRows:
    """Open images that need no labels, and decode each of them once.

    Args:
        images: One image file, a folder of images (in folders or not), a table with a column of paths, an ``.npz`` file
            with images, or anything else that ``open_dataset`` takes; a list of image files; or images that are open already.
        options: Options of ``ImageOptions``, as in ``open_dataset``; labels may be missing.
        reporter: Reporter of progress, notices and warnings.
        known_classes: Folders with these names are labels; other folders are only places where images lie. A table with a
            column for each of them has several labels per image.
        several_labels: Whether an image may have several of ``known_classes``.
        may_lack_labels: Whether ``label_column`` is one of other data, which these may lack.
        default_window: The window of DICOM and NIfTI images where none is given; no other image is told.
        default_slices: The slices of volumes where none are given.
        num_threads: Threads that decode images; by default one per core, at most 8.
        find_split: Finds the split of the run that made the model, which says what ``use_split`` means for data without
            splits; None: there is no run.

    Returns:
        All images that were listed, those among them that cannot be decoded, too.

    Raises:
        DataError: There is no image, a table or array is damaged, or there are no rows of ``use_split``.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        MissingExtraError: The images have a format whose reader is not installed.
        UsageError: An option has no meaning for this kind of data, or for images that are open already.
    """
    how = narrowed(ImageOptions, options)
    if is_open(images):
        return _rows_given(images, options, how.use_split, find_split)
    request = replace(
        make_request(how, use_split=how.use_split),
        default_window=default_window,
        default_slices=default_slices,
        needs_labels=False,
        known_classes=tuple(known_classes),
        several_labels=several_labels,
        may_lack_labels=may_lack_labels,
    )
    source, rows, chosen, used = list_part(images, request, reporter, find_split)
    looked = look_at_rows(
        source,
        rows,
        chosen,
        classes=name_classes(rows.labels, rows.label_names, None) if rows.has_labels else None,
        rows_used=used,
        skip_unreadable=how.skip_unreadable,
        num_threads=num_threads,
        reporter=reporter,
    )
    if not len(looked.readable_rows):
        raise DataError(f"None of the {len(looked)} images of {looked.name} can be decoded.")
    warn_of_unreadable(looked, reporter)
    return looked


def _rows_given(images: Images, options: Options, part: str | None, find_split: FindSplit | None) -> ImageRows:
    if part is None or not isinstance(images, Dataset):
        refuse_opening(options, ImageOptions)
        return rows_given(images)
    refuse_opening(options, Unreadable, SourceOptions)
    return _part_of(images, part, find_split)


def images_of_arrays(images: Sequence[np.ndarray | Picture] | np.ndarray) -> ImageRows:
    """Images that are in memory, without labels; their form as in ``dataset_from_arrays``.

    Raises:
        DataError: There is no image, or one has another shape or type, or samples are NaN or out of range.
    """
    if len(images) == 0:
        raise DataError("There are no images: the sequence of arrays is empty.")
    unlabelled = open_arrays(images, np.full(len(images), NO_LABEL), name="arrays")
    return unlabelled.seen_as(ImageRows, class_names=(), targets=None)


def location_of(images: object) -> str:
    """What messages and run directories call them; of objects no path."""
    if isinstance(images, str | Path):
        return str(images)
    return images.name if isinstance(images, Dataset) else given_kind(images) or "arrays"


def _part_of(dataset: Dataset, part: str, find_split: FindSplit | None) -> Dataset:
    """The rows of one part, by the splits of the data set, or else by that of the run."""
    own = None if dataset.splits is None else dataset.splits == part
    if own is not None and own.any():
        return dataset.take(own, rows_used=f"split {part}")
    if find_split is None or part not in PARTS:
        known = "none" if dataset.splits is None else ", ".join(sorted({*dataset.splits.tolist()} - {""}))
        raise DataError(f"{dataset.name} has no rows of the split {part}. Its splits: {known}.")
    chosen, used = part_of_run(dataset, part, find_split())
    return dataset.take(chosen, rows_used=used)


def is_open(images: object) -> bool:
    """Whether there is nothing to list or to read: a data set or arrays, no path, list of paths or table."""
    return not isinstance(images, str | Path) and given_kind(images) is None


def rows_given(images: Images) -> ImageRows:
    """Images that are open.

    Raises:
        DataError: They are neither a data set nor arrays of a usable form.
    """
    if isinstance(images, Dataset):
        return images
    if not hasattr(images, "__len__"):
        location_text(images)
    return images_of_arrays(cast("Sequence[np.ndarray]", images))


def refuse_opening(options: Options, *kinds: type[Options]) -> None:
    """Refuse what says how files are opened, for images that are open.

    Raises:
        UsageError: The message names the option.
    """
    chosen = [name for kind in kinds for name in options_of(kind) if getattr(options, name)]
    if chosen:
        raise UsageError(f"{chosen[0]} belongs to opening the data, but images were given that are open already.")
