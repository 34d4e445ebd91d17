"""What a data source is: it recognises a location and lists its rows before any image is decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crossgraft.data._groups import Confidential
from crossgraft.data.cells import one_spelling
from crossgraft.data.file_counts import NO_FILES, FileCounts
from crossgraft.data.fingerprint import ListedRows
from crossgraft.data.medical.files import DicomPlace
from crossgraft.errors import DataError, UsageError
from crossgraft.plain_types import Uncertain
from crossgraft.words.formatting import counted, joined

_SPLIT_WORDS = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}


def is_split_name(word: str) -> bool:
    """Whether this is one of the usual words for a split, in upper or lower case."""
    return word.strip().casefold() in _SPLIT_WORDS


def canonical_split(word: str) -> str:
    """``Training`` → ``train``, ``valid`` → ``val``, ``testing`` → ``test``; other words as they are."""
    return _SPLIT_WORDS.get(word.strip().casefold(), word.strip())


def notices_of_other_splits(splits: Sequence[str]) -> tuple[str, ...]:
    """A notice where rows are in splits that no command trains on or measures on by itself.

    Args:
        splits: Canonical split of each row.

    >>> notices_of_other_splits(["train", "eval", "train", "eval"])[0].partition(":")[0]
    '2 images are in the split eval, which is none of train, val and test'
    """
    others = [split for split in splits if split not in _SPLIT_WORDS.values()]
    if not others:
        return ()
    names = sorted(set(others))
    verb = "is" if len(others) == 1 else "are"
    which = f"split {names[0]}, which is" if len(names) == 1 else f"splits {joined(names)}, which are"
    return (
        f"{counted(len(others), 'image')} {verb} in the {which} none of train, val and test: not used where "
        "one of these is. Rename the split if they are meant.",
    )


def refuse_missing_split(wanted: str, available: Sequence[str], where: str) -> None:
    """Raise if no split is called ``wanted``.

    Raises:
        DataError: Naming the splits that there are.
    """
    if wanted not in available:
        listed = ", ".join(sorted(set(available))) or "none"
        hint = f" Rename the one to use to {wanted}." if available else ""
        raise DataError(f"{where} has no rows of the split {wanted}. Its splits: {listed}.{hint}")


NO_LABEL = ""
"""The label of every row where the data have none."""


@dataclass(frozen=True)
class SourceRequest:
    """What the user asked for.

    Attributes:
        use_split: Use only the rows of this split if the source has splits; None: all rows.
        label_columns: Names of the columns (or arrays) of labels; empty: a column with a usual name. Several columns are
            several labels per image, one per column, each 0 or 1.
        label_separator: Separator of the labels in one cell; None: a cell holds one label.
        group_column: Name of the column (or array) of patients, writers, lesions; ``none``: there are no groups, whatever
            columns are called.
        path_column: Name of the column of image files.
        image_root: Folder that the image files of a table are relative to.
        allow_outside: Whether the data may name image files outside of their folder.
        window: Intensities of a DICOM or NIfTI image that become black and white; None: the default.
        slices: Slices of a volume or frames of a multi-frame file that are images; None: the default.
        allow_download: Whether the source may use the network.
        keep_masks: Whether pictures that were derived from others are images.
        default_window: Default of ``window``, where that is not given; ignored where it has no meaning.
        default_slices: Default of ``slices``, where that is not given; ignored where it has no meaning.
        needs_labels: Whether images without labels are refused. If not, labels are what the data hold of ``known_classes``,
            and ``SourceRows.has_labels`` says whether they hold any.
        may_lack_labels: Whether ``label_columns`` are those of other data, which these may lack.
        known_classes: Classes of the model that is to look at the images.
        several_labels: Whether an image may have several of them.
        uncertain: What becomes of labels that are not known; None: they are refused.
        none_label: Name of a label that says that an image has none of the others.
        group_from: Regular expression that finds the group of an image in its path; None: groups are a column.
        join: Locations of further data sets; sources do not look at it.
    """

    use_split: str | None = "train"
    label_columns: tuple[str, ...] = ()
    label_separator: str | None = None
    group_column: str | None = None
    path_column: str | None = None
    image_root: Path | None = None
    allow_outside: bool = False
    window: str | None = None
    slices: str | None = None
    allow_download: bool = False
    keep_masks: bool = False
    default_window: str | None = None
    default_slices: str | None = None
    needs_labels: bool = True
    may_lack_labels: bool = False
    known_classes: tuple[str, ...] = ()
    several_labels: bool = False
    uncertain: Uncertain | None = None
    none_label: str | None = None
    group_from: str | None = None
    join: tuple[str, ...] = ()

    @property
    def means_several_labels(self) -> bool:
        """Whether columns of 0 and 1 are labels although each row has exactly one 1: other options say so."""
        return self.several_labels or self.none_label is not None or self.uncertain in ("zeros", "ones")


@dataclass(frozen=True, eq=False, repr=False)
class SourceRows(Confidential, ListedRows):
    """The rows of the split that was asked for; nothing in here depends on any other row.

    Attributes:
        name: Display name, no absolute path.
        labels: (n,), or for data with several labels per image (n, L) of 0 and 1.
        image_names: n names for messages, no absolute path.
        decode: Pixels of row i as (height, width, 1 or 3) uint8, uint16 or float32; raises
            UnreadableImageError.
        label_names: Name of label number 0, 1, …, or None if labels are shown as they are; with several labels per image
            the names of the L columns.
        splits: (n,) or None if the source has no splits.
        split_names: Names of all splits of the source, those of rows that were not asked for too; None: not known.
        split_method: Origin of the splits, in words.
        groups: (n,) or None.
        group_column: Column that the groups come from.
        groups_known: (n,) is it known whose image it is? Where not, its group is only its own. None: of all.
        attributes: Further columns, (n,) each.
        notices: Notices to the user, one sentence each.
        reading: How files of scanners are read (window, slices), one sentence each; said to the user and recorded, so
            nothing in it names a file or a patient.
        files: Files of the data, read or passed over, counted by kind and class.
        problems: What makes the rows unusable as they are, one sentence each: opening raises the first, checking lists
            all.
        has_labels: Whether ``labels`` mean something; False only where the request needs none.
        dicom_place: Place of row i in a file of DICOM, None for another file; None: no row is of DICOM.
        stamps: By file system, what the files are that ``decode`` reads, and how: where they are equal, so are all pixels.
            None: not known.
    """

    name: str
    labels: np.ndarray
    image_names: Sequence[str]
    decode: Callable[[int], np.ndarray]
    label_names: Sequence[str] | None = None
    splits: np.ndarray | None = None
    split_names: tuple[str, ...] | None = None
    split_method: str = "no split"
    groups: np.ndarray | None = None
    group_column: str | None = None
    groups_known: np.ndarray | None = None
    attributes: dict[str, np.ndarray] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()
    files: FileCounts = NO_FILES
    problems: tuple[str, ...] = ()
    has_labels: bool = True
    stamps: Callable[[], Hashable] | None = None
    dicom_place: Callable[[int], DicomPlace | None] | None = None

    def with_ids_merged(self) -> SourceRows:
        """The same rows; groups that are certain to be one under several spellings (3, 3.0, 003) are one, with a notice."""
        if self.groups is None:
            return self
        merged = one_spelling(self.groups)
        notice = (
            f"{counted(merged.num_merged, 'group')} by {self.group_column} had several spellings of one number, with a decimal "
            "point or leading zeros, and each is taken as one.",
        )
        return replace(self, groups=merged.values, notices=(*self.notices, *(notice if merged.num_merged else ())))

    @property
    def row_names(self) -> Sequence[str]:
        """As they are called in messages."""
        return self.image_names


class DataSource(ABC):
    """One kind of data; other packages add theirs as entry points of ``crossgraft.data_sources``."""

    name: str
    description: str

    @abstractmethod
    def accepts(self, location: str) -> bool:
        """Whether ``location`` is of this kind. Cheap; opens no image."""

    @abstractmethod
    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """List the rows that were asked for.

        Raises:
            DataError: The data are missing, empty or badly shaped.
            UsageError: An option has no meaning for this source.
        """


def refuse_options(request: SourceRequest, kind: str, *, unused: Sequence[str], advice: str) -> None:
    """Raise for options that this kind of source cannot honour, rather than ignore them.

    Raises:
        UsageError: One of the options ``unused`` is set.
    """
    for option in unused:
        if getattr(request, option):
            flag = "--" + option.removesuffix("s" if option == "label_columns" else "").replace("_", "-")
            raise UsageError(f"{flag} has no meaning for {kind}. {advice}")
