"""A labelled image set. Labels, groups and splits are arrays; images are read one at a time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crossgraft.data._confidential import group_numbers
from crossgraft.data._groups import refuse_missing_groups
from crossgraft.data.class_names import name_classes
from crossgraft.data.fingerprint import dataset_fingerprint, listing_fingerprint
from crossgraft.data.inspection import InspectedImages, inspect_images, summarise_kinds
from crossgraft.errors import DataError, UsageError
from crossgraft.records import Record
from crossgraft.tasks import Task, task_of

_CLASSES_SHOWN = 10


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of images with labels; immutable.

    Nothing that shows it (``repr``, a notebook) names a group or the value of an attribute. Neither does a pickle, which
    another process or a file may get: it holds the pixels of these rows, labels and splits, groups as numbers in the order of
    their names (so that splits and intervals come out the same) and both fingerprints; names of files and attributes stay
    behind.

    Attributes:
        name: Name of the data, without an absolute path.
        source: Kind of source: ``image_folder``, ``csv_table``, ``npz_file``, ``digits`` or a plug-in.
        labels: Labels as the source gave them: (n,), or (n, L) of 0 and 1 with several labels per image.
        class_names: The C classes in order, or the L labels.
        targets: (n,) integers 0 … C−1, the place of each label in ``class_names``; or (n, L) of 0 and 1.
        groups: (n,) patient, writer or lesion of each image, or None.
        group_column: Column that the groups come from, or None.
        splits: (n,) name of the split of each row where the source has splits, or None.
        attributes: Further columns, (n,) each.
        rows_used: Description of the rows of the source.
        split_method: Origin of the splits, in words.
        groups_known: (n,) is it known whose image it is? Where not, its group is only its own. None: of all.
        ordinal: Whether the order of the classes has a meaning (grades, stages), as stated by the user.
        skipped_unreadable: Names of images that were left out because they cannot be decoded.
        reading: Description of how files of scanners were read.
        split: The ``Split`` that was drawn or read when the data were opened, or None.
    """

    name: str
    source: str
    labels: np.ndarray
    class_names: tuple[str, ...]
    targets: np.ndarray
    groups: np.ndarray | None
    group_column: str | None
    splits: np.ndarray | None
    attributes: dict[str, np.ndarray]
    rows_used: str
    split_method: str
    skipped_unreadable: tuple[str, ...]
    _images: InspectedImages = field(repr=False)
    _image_rows: np.ndarray = field(repr=False)
    split: Record | None = None
    reading: tuple[str, ...] = ()
    ordinal: bool = False
    groups_known: np.ndarray | None = None
    _sealed: tuple[str, str] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, source={self.source!r}, {len(self)} images, {len(self.class_names)} {self.task.nouns})"

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``: nothing that says who somebody is."""
        return {
            **vars(self),
            "groups": group_numbers(self.groups),
            "attributes": {},
            "skipped_unreadable": tuple(f"unreadable image {i + 1}" for i in range(len(self.skipped_unreadable))),
            "_images": self._images.in_memory(self._image_rows),
            "_image_rows": np.arange(len(self)),
            "_sealed": (self.fingerprint, self.listing_fingerprint),
        }

    def __copy__(self) -> Dataset:
        """A copy within the same process, so nothing is left out."""
        return replace(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dataset:
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
            return self._sealed[0]
        return dataset_fingerprint(self.image_digests, self.labels, self.groups)

    @property
    def image_digests(self) -> list[bytes]:
        """``image_digest`` of each row: equal for equal pixels, whatever the file."""
        return [self._images.digests[int(row)] for row in self._image_rows]

    @property
    def listing_fingerprint(self) -> str:
        """64 hexadecimal digits of names, labels and groups: what a ``Split`` of these rows belongs to."""
        if self._sealed is not None:
            return self._sealed[1]
        names = [self.image_name(index) for index in range(len(self))]
        return listing_fingerprint(names, self.labels, self.groups)

    @property
    def task(self) -> Task:
        """What is to be predicted; equal to its name, ``multi-class``, ``binary`` or ``multi-label``."""
        return task_of(self.targets, len(self.class_names), ordinal=self.ordinal)

    @property
    def is_multi_label(self) -> bool:
        """For one release: whether ``task`` is ``multi-label``."""
        warnings.warn(
            "Dataset.is_multi_label goes with the next release: write dataset.task == 'multi-label'.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.task == "multi-label"

    def members(self, class_index: int) -> np.ndarray:
        """(n,) whether each image is of this class (has this label)."""
        return self.task.members(self.targets, class_index)

    @property
    def class_counts(self) -> tuple[int, ...]:
        """Number of images of each class (with each label)."""
        return tuple(int(self.members(index).sum()) for index in range(len(self.class_names)))

    def read(self, index: int) -> np.ndarray:
        """Pixels of one row: (height, width, channels), channels 1 or 3, uint8, uint16 or float32 in [0, 1].

        The array is read-only. May be called from several threads.
        """
        return self._images.read(int(self._image_rows[index]))

    def image_name(self, index: int) -> str:
        """The file or row an image comes from, relative to the data."""
        return self._images.names[int(self._image_rows[index])]

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        from crossgraft.words.notebook import facts_table

        shown = list(zip(self.class_names, self.class_counts, strict=True))
        more = f" and {len(shown) - _CLASSES_SHOWN} more" if len(shown) > _CLASSES_SHOWN else ""
        facts = {
            "images": len(self),
            self.task.nouns: ", ".join(f"{n} ({c})" for n, c in shown[:_CLASSES_SHOWN]) + more,
            "rows used": self.rows_used,
            "sizes": ", ".join(f"{count} × {kind}" for kind, count in self.image_kinds.items()),
            "groups": None if self.groups is None else f"{len(np.unique(self.groups))} ({self.group_column})",
            "unreadable": len(self.skipped_unreadable) or None,
        }
        return facts_table(f"Dataset {self.name} ({self.source})", facts)

    def take(
        self,
        indices: Sequence[int] | np.ndarray,
        *,
        rows_used: str | None = None,
        split_method: str | None = None,
    ) -> Dataset:
        """The rows ``indices``, in that order, with the same class list (a class may become empty).

        Args:
            indices: Row numbers of this data set, or a boolean mask with one entry per row.
            rows_used: Description of the rows.
            split_method: Origin of the split that chose them, in words.

        Raises:
            UsageError: An index is out of range, or nothing is taken.
        """
        rows = np.asarray(indices)
        if rows.dtype == np.bool_:
            if rows.shape != (len(self),):
                raise UsageError(f"The mask has shape {rows.shape}; there are {len(self)} rows.")
            rows = np.flatnonzero(rows)
        if rows.size == 0:
            raise UsageError(f"No row of {self.name} was taken: the list of indices is empty.")
        if rows.min() < -len(self) or rows.max() >= len(self):
            raise UsageError(
                f"Row {rows.min() if rows.min() < 0 else rows.max()} of {self.name} does not exist: it has {len(self)} "
                "rows."
            )
        return replace(
            self,
            labels=self.labels[rows],
            targets=self.targets[rows],
            groups=None if self.groups is None else self.groups[rows],
            groups_known=None if self.groups_known is None else self.groups_known[rows],
            splits=None if self.splits is None else self.splits[rows],
            attributes={name: values[rows] for name, values in self.attributes.items()},
            rows_used=rows_used if rows_used is not None else f"{len(rows)} of {len(self)} rows ({self.rows_used})",
            split_method=split_method if split_method is not None else self.split_method,
            _image_rows=self._image_rows[rows],
            _sealed=None,
        )

    def select_classes(self, class_names: Sequence[str]) -> Dataset:
        """Only the images of these classes; targets then count 0, 1, … in the given order.

        With several labels per image, all images stay and only these labels are looked at.

        Raises:
            UsageError: A class does not exist, or is named twice.
        """
        unknown = [name for name in class_names if name not in self.class_names]
        if unknown or len(set(class_names)) != len(class_names):
            wanted = ", ".join(class_names)
            raise UsageError(
                f"Cannot select the classes {wanted}: the classes are {', '.join(self.class_names)}, each once."
            )
        if not self.task.partitions:
            columns = [self.class_names.index(name) for name in class_names]
            chosen = replace(self, class_names=tuple(class_names))
            return replace(chosen, targets=self.targets[:, columns], labels=self.labels[:, columns], _sealed=None)
        new_index = np.full(len(self.class_names), -1)
        for index, name in enumerate(class_names):
            new_index[self.class_names.index(name)] = index
        taken = self.take(
            new_index[self.targets] >= 0, rows_used=f"classes {', '.join(class_names)} of {self.rows_used}"
        )
        return replace(taken, class_names=tuple(class_names), targets=new_index[taken.targets])


def dataset_from_arrays(
    images: Sequence[np.ndarray] | np.ndarray,
    labels: Sequence[object] | np.ndarray,
    *,
    groups: Sequence[object] | np.ndarray | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "arrays",
) -> Dataset:
    """A data set of images that are already in memory.

    Args:
        images: (height, width) or (height, width, 1 or 3) each, uint8, uint16 or float32 in [0, 1]; sizes may
            differ.
        labels: One label per image, or (n, L) of 0 and 1 where an image may have several.
        groups: One patient (or the like) per image.
        class_names: Names of the classes 0 … C−1, if the labels are such numbers, or of the L labels.
        name: Name of the data.

    Raises:
        DataError: Lengths differ, or an image has another shape or type, or samples are NaN or out of range.
    """
    label_array = np.asarray(labels)
    group_array = None if groups is None else np.asarray(groups)
    if not len(images) == len(label_array) == (len(images) if group_array is None else len(group_array)):
        found = f"{len(images)} images, {len(label_array)} labels" + (
            "" if groups is None else f", {len(groups)} groups"
        )
        raise DataError(f"The arrays do not belong together: {found}.")
    if group_array is not None:
        refuse_missing_groups(group_array.tolist(), where="groups", row_name=lambda row: f"row {row}")
    pixels = [_as_image(np.asarray(image), row) for row, image in enumerate(images)]
    shown_names, targets, _ = name_classes(label_array, class_names, None)
    inspected = inspect_images([f"{name} row {row}" for row in range(len(pixels))], pixels.__getitem__)
    return Dataset(
        name=name,
        source="arrays",
        labels=label_array,
        class_names=shown_names,
        targets=targets,
        groups=group_array,
        group_column=None if group_array is None else "groups",
        splits=None,
        attributes={},
        rows_used="all rows (no split given)",
        split_method="no split",
        skipped_unreadable=(),
        _images=inspected,
        _image_rows=np.arange(len(pixels)),
    )


def _as_image(pixels: np.ndarray, row: int) -> np.ndarray:
    image = pixels[..., np.newaxis] if pixels.ndim == 2 else pixels
    if image.ndim != 3 or image.shape[-1] not in (1, 3) or image.dtype.name not in ("uint8", "uint16", "float32"):
        raise DataError(
            f"Image {row} has shape {pixels.shape} and type {pixels.dtype}; expected (height, width) or (height, width, "
            "1 or 3) of type uint8, uint16 or float32."
        )
    return image
