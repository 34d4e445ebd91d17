"""Images in any of the forms that a caller has them in: files, tables, open data, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from crossgraft.data.dataset import Dataset
from crossgraft.data.listing import location_text
from crossgraft.data.opening import FindSplit, part_of_run
from crossgraft.data.rows import ImageRows
from crossgraft.data.splits import PARTS
from crossgraft.data.unlabelled import images_of_arrays, open_images
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


def location_of(images: object) -> str:
    """What messages and run directories call them; of objects no path."""
    if isinstance(images, str | Path):
        return str(images)
    return images.name if isinstance(images, Dataset) else given_kind(images) or "arrays"


def open_given(
    images: Images,
    options: Options,
    reporter: Reporter,
    *,
    known_classes: Sequence[str],
    several_labels: bool = False,
    may_lack_labels: bool = False,
    default_window: str | None = None,
    default_slices: str | None = None,
    num_threads: int | None = None,
    find_split: FindSplit | None = None,
) -> ImageRows:
    """Images that need no labels; arguments as of ``open_images``.

    Raises:
        UsageError: An option belongs to opening files, but the images are open already.
        DataError: A data set that is open has no rows of ``use_split``.
        DataError, UnreadableImageError: As of ``open_images``.
    """
    if not is_open(images):
        return open_images(
            cast("Files", images),
            narrowed(ImageOptions, options),
            known_classes=known_classes,
            several_labels=several_labels,
            may_lack_labels=may_lack_labels,
            default_window=default_window,
            default_slices=default_slices,
            num_threads=num_threads,
            reporter=reporter,
            find_split=find_split,
        )
    part = narrowed(ImageOptions, options).use_split
    if part is None or not isinstance(images, Dataset):
        refuse_opening(options, ImageOptions)
        return rows_given(images)
    refuse_opening(options, Unreadable, SourceOptions)
    return _part_of(images, part, find_split)


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
