"""Rows of images with what is known of each: the one container that everything that opens data fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from crossgraft.data._groups import group_numbers
from crossgraft.data.file_counts import NO_FILES, FileCounts
from crossgraft.data.fingerprint import ListedRows, dataset_fingerprint
from crossgraft.data.inspection import Edit, ImageFacts, InspectedImages, edited_images, summarise_kinds
from crossgraft.data.medical.files import DicomPlace
from crossgraft.data.resizing import resize_alone
from crossgraft.errors import DataError, UsageError
from crossgraft.records.base import Record
from crossgraft.tasks import Task, task_of
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import counted

RowsT = TypeVar("RowsT", bound="ImageRows")
OtherRowsT = TypeVar("OtherRowsT", bound="ImageRows")


class WholeListing(NamedTuple):
    """Rows as they were listed, before unreadable ones were left out.

    Attributes:
        num_rows: Number of them.
        kept: Those that are left, ascending.
        listing_fingerprint: That of all of them.
        rows_fingerprint: That of all of them.
    """

    num_rows: int
    kept: np.ndarray
    listing_fingerprint: str
    rows_fingerprint: str


@dataclass(frozen=True, eq=False, repr=False)
class ImageRows(ListedRows):
    """Rows of images, decoded one at a time; immutable.

    Nothing that shows them (``repr``, a notebook) names a group or the value of an attribute. Neither does a pickle, which
    another process or a file may get: it holds the pixels of these rows, labels and splits, groups as numbers in the order of
    their names (so that splits and intervals come out the same) and both fingerprints; names of files and attributes stay
    behind.

    Attributes:
        name: Name of the data, without an absolute path.
        source: Kind of source: ``image_folder``, ``csv_table``, ``npz_file``, ``digits``, ``image_file`` (one image) or a
            plug-in.
        labels: Labels as the source gave them: (n,), or (n, L) of 0 and 1 with several labels per image; empty texts where
            the data have none.
        class_names: The C classes in order, or the L labels; empty where the data have no labels.
        targets: (n,) integers 0 … C−1, the place of each label in ``class_names``; or (n, L) of 0 and 1; None without labels.
        groups: (n,) patient, writer or lesion of each image, or None.
        group_column: Column that the groups come from, or None.
        splits: (n,) name of the split of each row where the source has splits, or None.
        attributes: Further columns, (n,) each.
        rows_used: Description of the rows of the source.
        split_method: Origin of the splits, in words.
        skipped_unreadable: Names of images that were left out because they cannot be decoded.
        split: The ``Split`` that was drawn or read when the data were opened, or None.
        split_fingerprint: What the split is known by, drawn or not (``training_fingerprint``); None where there is none.
        reading: Description of how files of scanners were read.
        files: Files of the data, read and passed over; empty where they are no files.
        ordinal: Whether the order of the classes has a meaning (grades, stages), as stated by the user.
        groups_known: (n,) is it known whose image it is? Where not, its group is only its own. None: of all.
        listed: The rows before unreadable ones were left out; None: none was.
    """

    name: str
    source: str
    labels: np.ndarray
    class_names: tuple[str, ...]
    targets: np.ndarray | None
    groups: np.ndarray | None
    group_column: str | None
    splits: np.ndarray | None
    attributes: dict[str, np.ndarray]
    rows_used: str
    split_method: str
    skipped_unreadable: tuple[str, ...]
    _images: InspectedImages
    _image_rows: np.ndarray
    split: Record | None = None
    split_fingerprint: str | None = None
    reading: tuple[str, ...] = ()
    files: FileCounts = NO_FILES
    ordinal: bool = False
    groups_known: np.ndarray | None = None
    listed: WholeListing | None = None
    _sealed: tuple[str, str] | None = field(default=None)

    def __len__(self) -> int:
        return len(self._image_rows)

    def __repr__(self) -> str:
        task = self.task
        kind = f", {counted(len(self.class_names), task.noun, task.nouns)}" if self.class_names else ""
        return f"{type(self).__name__}({self.name!r}, source={self.source!r}, {counted(len(self), 'image')}{kind})"

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``: nothing that says who somebody is."""
        return {
            **{attribute.name: getattr(self, attribute.name) for attribute in fields(self)},
            "groups": group_numbers(self.groups),
            "attributes": {},
            "skipped_unreadable": tuple(f"unreadable image {i + 1}" for i in range(len(self.skipped_unreadable))),
            "_images": self._images.in_memory(self._image_rows),
            "_image_rows": np.arange(len(self)),
            "_sealed": (self.fingerprint, self.listing_fingerprint),
        }

    def __copy__(self: RowsT) -> RowsT:
        """A copy within the same process, so nothing is left out."""
        return replace(self)

    def __deepcopy__(self: RowsT, memo: dict[int, Any]) -> RowsT:
        """As ``copy``: they are immutable."""
        return replace(self)

    def seen_as(self, kind: type[OtherRowsT], **changes: Any) -> OtherRowsT:
        """The same rows as another class of rows, with these fields changed or added."""
        return kind(**{attribute.name: getattr(self, attribute.name) for attribute in fields(ImageRows)} | changes)

    @cached_property
    def facts(self) -> list[ImageFacts]:
        """What the image of each row showed when it was first decoded; empty for an unreadable one."""
        return [self._images.facts[int(row)] for row in self._image_rows]

    @cached_property
    def unreadable(self) -> dict[int, str]:
        """Row → why its image cannot be used."""
        reasons = self._images.unreadable
        return {row: reasons[int(image)] for row, image in enumerate(self._image_rows) if int(image) in reasons}

    @cached_property
    def readable_rows(self) -> np.ndarray:
        """Rows whose image was decoded, ascending."""
        return np.setdiff1d(np.arange(len(self)), np.asarray(list(self.unreadable), dtype=np.int64))

    def readable(self: RowsT) -> RowsT:
        """The rows whose image was decoded; the others are named in ``skipped_unreadable``."""
        if not self.unreadable:
            return self
        rows_used = f"{self.rows_used}, {len(self.unreadable)} unreadable left out"
        left_out = tuple(map(self.image_name, self.unreadable))
        listed = self.whole_listing._replace(kept=self.readable_rows)
        return replace(self.take(self.readable_rows, rows_used=rows_used), skipped_unreadable=left_out, listed=listed)

    @property
    def image_kinds(self) -> dict[str, int]:
        """Height × width, channels and depth → number of images."""
        return summarise_kinds(self.facts[row].kind for row in self.readable_rows)

    @property
    def image_digests(self) -> list[bytes]:
        """``image_digest`` of each row: equal for equal pixels, whatever the file."""
        return [facts.digest for facts in self.facts]

    @property
    def fingerprint(self) -> str:
        """64 hexadecimal digits: equal only if pixels, labels and groups are equal, in the same order."""
        if self._sealed is not None:
            return self._sealed[0]
        return dataset_fingerprint(self.image_digests, self.labels, self.groups)

    @property
    def row_names(self) -> list[str]:
        """``image_name`` of each row."""
        return [self.image_name(index) for index in range(len(self))]

    @property
    def listing_fingerprint(self) -> str:
        """As of ``ListedRows``; a copy from another process, which has no names, keeps that of the rows it was made of."""
        return super().listing_fingerprint if self._sealed is None else self._sealed[1]

    @property
    def rows_fingerprint(self) -> str:
        """As of ``ListedRows``; empty for a copy from another process."""
        return super().rows_fingerprint if self._sealed is None else ""

    @property
    def whole_listing(self) -> WholeListing:
        """What a ``Split`` that is saved is one of: these rows, and the unreadable ones that were left out of them."""
        if self.listed is not None:
            return self.listed
        return WholeListing(len(self), np.arange(len(self)), self.listing_fingerprint, self.rows_fingerprint)

    @property
    def task(self) -> Task:
        """What is to be predicted; equal to its name, ``multi-class``, ``binary`` or ``multi-label``.

        Raises:
            DataError: The images have no labels.
        """
        return task_of(self._labelled(), len(self.class_names), ordinal=self.ordinal)

    def members(self, class_index: int) -> np.ndarray:
        """(n,) whether each image is of this class (has this label).

        Raises:
            DataError: The images have no labels.
        """
        return self.task.members(self._labelled(), class_index)

    def _labelled(self) -> np.ndarray:
        if self.targets is None:
            raise DataError(f"The images of {self.name} have no labels.")
        return self.targets

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
        """Name of the file or row of an image, relative to the data."""
        return self._images.names[int(self._image_rows[index])]

    def dicom_place(self, index: int) -> DicomPlace | None:
        """Place of an image in a file of DICOM; None where it is of another kind, or these rows are not the files."""
        place_of = self._images.dicom_place
        return None if place_of is None else place_of(int(self._image_rows[index]))

    def take(
        self: RowsT, indices: Sequence[int] | np.ndarray, *, rows_used: str | None = None, split_method: str | None = None
    ) -> RowsT:
        """The rows ``indices``, in that order, with the same class list (a class may become empty).

        Args:
            indices: Row numbers of this data set, or a boolean mask with one entry per row.
            rows_used: Description of the rows.
            split_method: Origin of the split that chose them, in words.

        Raises:
            UsageError: An index is out of range, or nothing is taken.
        """
        rows = self._row_numbers(indices)
        columns = {name: getattr(self, name) for name in ("labels", "targets", "groups", "groups_known", "splits")}
        return replace(
            self,
            **{name: None if column is None else column[rows] for name, column in columns.items()},
            attributes={name: values[rows] for name, values in self.attributes.items()},
            rows_used=rows_used if rows_used is not None else f"{len(rows)} of {len(self)} rows ({self.rows_used})",
            split_method=split_method if split_method is not None else self.split_method,
            listed=None,
            _image_rows=self._image_rows[rows],
            _sealed=None,
        )

    def edited(self: RowsT, edit: Edit, rows: Sequence[int] | np.ndarray | None = None) -> RowsT:
        """The same rows with other pixels: labels, groups, splits and attributes stay, digests are those of the new pixels.

        So a saved split fits them as before, and features in the cache are those of the pixels that are there.

        Args:
            edit: Function of (pixels, identity of the image) to pixels of the same shape and type; see ``data.edits``.
            rows: Row numbers, or a boolean mask, of the images that are edited; by default all.

        Raises:
            DataError: The edit changed the shape or the type of an image, or made samples without a meaning.
            UsageError: A row is out of range, or there is none.

        Cost: one edit of each image at once; those that do not fit into a gigabyte are edited again at each reading.
        """
        chosen = range(len(self)) if rows is None else (self._row_numbers(rows) % len(self)).tolist()
        return self._with_images(edited_images(self._images, self._image_rows, edit, frozenset(chosen)))

    def resized(self: RowsT, preprocessing: Preprocessing) -> RowsT:
        """The same rows at the size that a resize policy gives them, before they are cut or padded; all else as ``edited``.

        Args:
            preprocessing: Size, resize policy and interpolation; preparing the images by it resizes them no more.

        Cost: one resize of each image.
        """

        def resize(pixels: np.ndarray, identity: str) -> np.ndarray:
            return resize_alone(pixels, preprocessing)

        everything = frozenset(range(len(self)))
        return self._with_images(edited_images(self._images, self._image_rows, resize, everything, reshapes=True))

    def _with_images(self: RowsT, images: InspectedImages) -> RowsT:
        changed = replace(self, _images=images, _image_rows=np.arange(len(self)), _sealed=None)
        if self._sealed is None:
            return changed
        return replace(changed, _sealed=(changed.fingerprint, self._sealed[1]))  # names of files stayed in another process

    def _row_numbers(self, indices: Sequence[int] | np.ndarray) -> np.ndarray:
        rows = np.asarray(indices)
        if rows.dtype == np.bool_:
            if rows.shape != (len(self),):
                raise UsageError(f"The mask has shape {rows.shape}; there are {len(self)} rows.")
            rows = np.flatnonzero(rows)
        if rows.size == 0:
            raise UsageError(f"No row of {self.name} was taken: the list of indices is empty.")
        if rows.min() < -len(self) or rows.max() >= len(self):
            raise UsageError(
                f"Row {rows.min() if rows.min() < 0 else rows.max()} of {self.name} does not exist: it has {len(self)} rows."
            )
        return rows
