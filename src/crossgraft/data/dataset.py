"""A labelled image set. Labels, groups and splits are arrays; images are read one at a time."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL.Image import Image as Picture

from crossgraft.data._groups import refuse_missing_groups
from crossgraft.data.cells import is_empty
from crossgraft.data.class_names import name_classes
from crossgraft.data.decoding import decode_picture
from crossgraft.data.listing import look_at_rows
from crossgraft.data.rows import ImageRows
from crossgraft.data.sources import SourceRows
from crossgraft.errors import DataError, UsageError
from crossgraft.options._values import refuse_empty
from crossgraft.words.formatting import counted, listed

_CLASSES_SHOWN = 10
_SAMPLES = ("uint8", "uint16", "float16", "float32", "float64")
FLOAT_SAMPLES = "Float samples of arrays are read with 0 as black and 1 as white."


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(ImageRows):
    """Rows of images with valid labels, each of which was decoded once; immutable.

    Attributes and what is shown of them as in ``ImageRows``, except:

    Attributes:
        class_names: The C classes in order, or the L labels.
        targets: (n,) integers 0 … C−1, the place of each label in ``class_names``; or (n, L) of 0 and 1.
    """

    targets: np.ndarray

    @property
    def is_multi_label(self) -> bool:
        """For one release: whether ``task`` is ``multi-label``."""
        warnings.warn(
            "Dataset.is_multi_label goes with the next release: write dataset.task == 'multi-label'.",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.task == "multi-label"

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        from crossgraft.words.notebook import facts_table

        sizes = [f"{name} ({size})" for name, size in zip(self.class_names, self.class_counts, strict=True)]
        facts = {
            "images": len(self),
            self.task.nouns: listed(sizes, _CLASSES_SHOWN),
            "rows used": self.rows_used,
            "sizes": ", ".join(f"{count} × {kind}" for kind, count in self.image_kinds.items()),
            "groups": None if self.groups is None else f"{len(np.unique(self.groups))} ({self.group_column})",
            "unreadable": len(self.skipped_unreadable) or None,
        }
        return facts_table(f"Dataset {self.name} ({self.source})", facts)

    def select_classes(self, class_names: Sequence[str]) -> Dataset:
        """Only the images of these classes; targets then count 0, 1, … in the given order.

        With several labels per image, all images stay and only these labels are looked at.

        Raises:
            UsageError: A class does not exist, or is named twice.
        """
        unknown = [name for name in class_names if name not in self.class_names]
        if unknown or len(set(class_names)) != len(class_names):
            wanted = ", ".join(class_names)
            raise UsageError(f"Cannot select the classes {wanted}: the classes are {', '.join(self.class_names)}, each once.")
        if not self.task.partitions:
            columns = [self.class_names.index(name) for name in class_names]
            chosen = replace(self, class_names=tuple(class_names))
            return replace(chosen, targets=self.targets[:, columns], labels=self.labels[:, columns], _sealed=None)
        new_index = np.full(len(self.class_names), -1)
        for index, name in enumerate(class_names):
            new_index[self.class_names.index(name)] = index
        taken = self.take(new_index[self.targets] >= 0, rows_used=f"classes {', '.join(class_names)} of {self.rows_used}")
        return replace(taken, class_names=tuple(class_names), targets=new_index[taken.targets])


def dataset_from_arrays(
    images: Sequence[np.ndarray | Picture] | np.ndarray,
    labels: Sequence[object] | np.ndarray,
    *,
    groups: Sequence[object] | np.ndarray | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "arrays",
) -> Dataset:
    """A data set of images that are already in memory.

    Args:
        images: (height, width) or (height, width, 1 or 3) each, uint8, uint16 or float in [0, 1], or images that Pillow has
            opened; sizes may differ.
        labels: One label per image, or (n, L) of 0 and 1 where an image may have several.
        groups: One patient (or the like) per image.
        class_names: Names of the classes 0 … C−1, if the labels are such numbers, or of the L labels.
        name: Name of the data.

    Raises:
        DataError: There are none, lengths differ, a label or a group is missing, an image has another shape or type, or
            samples are NaN or out of range.
        UsageError: A name is empty.
    """
    for argument, value in (("name", name), ("class_names", class_names)):
        refuse_empty(argument, value)
    label_array = np.asarray(labels)
    group_array = None if groups is None else np.asarray(groups)
    for what, array in (("labels", label_array), ("groups", group_array)):
        if array is not None and not 1 <= array.ndim <= (2 if what == "labels" else 1):
            raise DataError(f"The {what} have shape {array.shape}; give a list with one for each image.")
    if not (hasattr(images, "__len__") and len(images)):
        raise DataError("There are no images: give a list or an array that holds one or more.")
    if not len(images) == len(label_array) == (len(images) if group_array is None else len(group_array)):
        lengths = f"{len(images)} images, {len(label_array)} labels" + ("" if groups is None else f", {len(groups)} groups")
        raise DataError(f"The arrays do not belong together: {lengths}.")
    empty = [row for row, label in enumerate(label_array.tolist()) if label_array.dtype.kind in "UO" and is_empty(label)]
    if empty:
        raise DataError(
            f"The label is missing in row {empty[0]}, and in {counted(len(empty), 'row')} in all. Fill it in, or leave these "
            "images out."
        )
    if group_array is not None:
        refuse_missing_groups(group_array.tolist(), where="groups", row_name=lambda row: f"row {row}")
    return open_arrays(images, label_array, groups=group_array, class_names=class_names, name=name)


def open_arrays(
    images: Sequence[np.ndarray | Picture] | np.ndarray,
    labels: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    class_names: Sequence[str] | None = None,
    name: str,
) -> Dataset:
    """``dataset_from_arrays`` without a look at labels and groups, which mean nothing where images have none."""
    pixels = [_as_image(image, row) for row, image in enumerate(images)]
    rows = SourceRows(
        name=name,
        labels=labels,
        image_names=[f"{name} row {row}" for row in range(len(pixels))],
        decode=pixels.__getitem__,
        groups=groups,
        group_column=None if groups is None else "groups",
        reading=(FLOAT_SAMPLES,) if any(image.dtype.kind == "f" for image in pixels) else (),
    ).with_ids_merged()
    classes = name_classes(labels, None, class_names)
    used = "all rows (no split given)"
    return look_at_rows("arrays", rows, np.arange(len(pixels)), classes=classes, rows_used=used).seen_as(Dataset)


def _as_image(item: object, row: int) -> np.ndarray:
    if isinstance(item, Picture):
        return decode_picture(item, name=f"number {row}")
    pixels = np.asarray(item)
    image = pixels[..., np.newaxis] if pixels.ndim == 2 else pixels
    if image.ndim != 3 or image.shape[-1] not in (1, 3) or image.dtype.name not in _SAMPLES:
        raise DataError(
            f"Image {row} has shape {pixels.shape} and type {pixels.dtype}; expected (height, width) or (height, width, "
            "1 or 3) of type uint8, uint16 or float in [0, 1]. One image alone is a list of one."
        )
    return image.astype(np.float32, copy=False) if image.dtype.kind == "f" else image
