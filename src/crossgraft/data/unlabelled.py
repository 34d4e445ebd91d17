"""Open images to predict: as ``open_dataset`` does, but labels may be missing, and a plain folder or one file will do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossgraft.data._confidential import group_numbers
from crossgraft.data._unlabelled_rows import NO_LABEL, ListedRows, list_images
from crossgraft.data.class_names import name_classes
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.data.inspection import InspectedImages, inspect_images, summarise_kinds
from crossgraft.data.opening import location_text, make_request
from crossgraft.errors import DataError
from crossgraft.progress import Reporter


class UnreadableImage(NamedTuple):
    """A file that cannot be decoded: its place among all that were listed, its name, and why."""

    number: int
    name: str
    reason: str


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images in a fixed order, with labels where the data have them; immutable.

    Attributes:
        name: Name of the data, without an absolute path.
        source: Kind of source, ``image_file`` for one file.
        class_names: Names of the labels that the data have; empty without labels.
        targets: (n,) place of each label in ``class_names``, or (n, L) of 0 and 1; None without labels.
        groups: (n,) patient of each image, or None.
        group_column: Column that the groups come from, or None.
        rows_used: Description of the rows of the source.
        numbers: (n,) place of each image among all that were listed, readable or not, from 0.
        unreadable: Images that were left out because they cannot be decoded.
        reading: Description of how files of scanners were read.
    """

    name: str
    source: str
    class_names: tuple[str, ...]
    targets: np.ndarray | None
    groups: np.ndarray | None
    group_column: str | None
    rows_used: str
    numbers: np.ndarray
    unreadable: tuple[UnreadableImage, ...]
    reading: tuple[str, ...]
    _labels: np.ndarray | None = field(repr=False)
    _images: InspectedImages = field(repr=False)
    _image_rows: np.ndarray = field(repr=False)
    _sealed: str | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self._image_rows)

    def __repr__(self) -> str:
        return f"ImageSet({self.name!r}, source={self.source!r}, {len(self)} images)"

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``: as with a ``Dataset``, groups are numbers and files have none of their names."""
        return {
            **vars(self),
            "groups": group_numbers(self.groups),
            "unreadable": tuple(each._replace(name=f"image {each.number + 1}") for each in self.unreadable),
            "_images": self._images.in_memory(self._image_rows),
            "_image_rows": np.arange(len(self)),
            "_sealed": self.fingerprint,
        }

    def __copy__(self) -> ImageSet:
        """A copy within the same process, so nothing is left out."""
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> ImageSet:
        """As ``copy``: it is immutable."""
        return replace(self)

    @property
    def image_kinds(self) -> dict[str, int]:
        """Height × width, channels and depth → number of images."""
        return summarise_kinds(self._images.kinds[int(row)] for row in self._image_rows)

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits: equal only if pixels, labels and groups are equal, in the same order."""
        if self._sealed is not None:
            return self._sealed
        labels = np.full(len(self), NO_LABEL) if self._labels is None else self._labels
        return dataset_fingerprint(self.image_digests, labels, self.groups)

    @property
    def image_digests(self) -> list[bytes]:
        """``image_digest`` of each image: equal for equal pixels, whatever the file."""
        return [self._images.digests[int(row)] for row in self._image_rows]

    def read(self, index: int) -> np.ndarray:
        """Pixels of one image: (height, width, 1 or 3), uint8, uint16 or float32 in [0, 1]; read-only."""
        return self._images.read(int(self._image_rows[index]))

    def image_name(self, index: int) -> str:
        """The file or row an image comes from, relative to the data."""
        return self._images.names[int(self._image_rows[index])]


def open_images(
    location: str | Path,
    *,
    known_classes: Sequence[str] = (),
    several_labels: bool = False,
    default_window: str | None = None,
    default_slices: str | None = None,
    use_split: str | None = None,
    label_column: str | Sequence[str] | None = None,
    label_separator: str | None = None,
    group_column: str | None = None,
    path_column: str | None = None,
    image_root: str | Path | None = None,
    allow_outside: bool = False,
    window: str | None = None,
    slices: str | None = None,
    allow_download: bool = False,
    skip_unreadable: bool = False,
    num_threads: int | None = None,
    reporter: Reporter | None = None,
) -> ImageSet:
    """Open images that need no labels, and decode each of them once.

    Args:
        location: One image file, a folder of images (in folders or not), a table with a column of paths, an ``.npz`` file
            with images, or anything else that ``open_dataset`` takes.
        known_classes: Folders with these names are labels; other folders are only places where images lie. A table with a
            column for each of them has several labels per image.
        several_labels: Whether an image may have several of ``known_classes``.
        default_window: The window of DICOM and NIfTI images where none is given; no other image is told.
        default_slices: The slices of volumes where none are given.
        use_split: Split of which the rows are used; None: all rows.
        label_column: As in ``open_dataset``; may be missing.
        label_separator: As in ``open_dataset``.
        group_column: As in ``open_dataset``.
        path_column: As in ``open_dataset``.
        image_root: As in ``open_dataset``.
        allow_outside: As in ``open_dataset``.
        window: As in ``open_dataset``.
        slices: As in ``open_dataset``.
        allow_download: As in ``open_dataset``.
        skip_unreadable: Leave out images that cannot be decoded, and list them.
        num_threads: Threads that decode images; by default one per core, at most 8.
        reporter: Reporter of progress, notices and warnings.

    Raises:
        DataError: There is no image, or a table or array is damaged.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        MissingExtraError: The images have a format whose reader is not installed.
        UsageError: An option has no meaning for this kind of data.
    """
    reporter = reporter if reporter is not None else Reporter(quiet=True)
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
    request = replace(request, default_window=default_window, default_slices=default_slices)
    listed = list_images(location_text(location), request, tuple(known_classes), several_labels, reporter)
    inspected = inspect_images(
        listed.rows.image_names,
        listed.rows.decode,
        skip_unreadable=skip_unreadable,
        num_threads=num_threads,
        reporter=reporter,
    )
    readable = np.asarray([row for row in range(len(inspected.names)) if row not in inspected.unreadable])
    if readable.size == 0:
        raise DataError(f"None of the {len(inspected.names)} images of {listed.rows.name} can be decoded.")
    if inspected.unreadable:
        reporter.warn(f"{len(inspected.unreadable)} of {len(inspected.names)} images cannot be read and are left out.")
    return _image_set(listed, inspected, readable, use_split)


def images_of_dataset(dataset: Dataset) -> ImageSet:
    """The images of an open data set, with its labels."""
    return ImageSet(
        name=dataset.name,
        source=dataset.source,
        class_names=dataset.class_names,
        targets=dataset.targets,
        groups=dataset.groups,
        group_column=dataset.group_column,
        rows_used=dataset.rows_used,
        numbers=np.arange(len(dataset)),
        unreadable=(),
        reading=dataset.reading,
        _labels=dataset.labels,
        _images=dataset._images,
        _image_rows=dataset._image_rows,
        _sealed=None if dataset._sealed is None else dataset._sealed[0],
    )


def images_of_arrays(images: Sequence[np.ndarray] | np.ndarray, *, name: str = "arrays") -> ImageSet:
    """Images that are in memory, without labels; their form as in ``dataset_from_arrays``.

    Raises:
        DataError: There is no image, or one has another shape or type, or samples are NaN or out of range.
    """
    if len(images) == 0:
        raise DataError("There are no images: the sequence of arrays is empty.")
    unlabelled = dataset_from_arrays(images, np.full(len(images), NO_LABEL), name=name)
    return replace(images_of_dataset(unlabelled), class_names=(), targets=None, _labels=None)


def _image_set(listed: ListedRows, inspected: InspectedImages, readable: np.ndarray, use_split: str | None) -> ImageSet:
    rows = listed.rows
    class_names, targets = ((), None)
    if listed.has_labels:
        class_names, targets, _ = name_classes(rows.labels, rows.label_names, None)
    left_out = f", {len(inspected.unreadable)} unreadable left out" if inspected.unreadable else ""
    return ImageSet(
        name=rows.name,
        source=listed.source,
        class_names=class_names,
        targets=None if targets is None else targets[readable],
        groups=None if rows.groups is None else rows.groups[readable],
        group_column=rows.group_column,
        rows_used=("all rows" if use_split is None else f"split {use_split}") + left_out,
        numbers=readable,
        unreadable=tuple(UnreadableImage(row, inspected.names[row], why) for row, why in inspected.unreadable.items()),
        reading=rows.reading,
        _labels=rows.labels[readable] if listed.has_labels else None,
        _images=inspected,
        _image_rows=readable,
    )
