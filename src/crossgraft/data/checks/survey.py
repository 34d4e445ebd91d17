"""Everything that the checks look at: all rows of all splits, each image decoded once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from crossgraft.data._confidential import Confidential
from crossgraft.data._image_facts import ImageFacts
from crossgraft.data.dataset import Dataset
from crossgraft.data.fingerprint import dataset_fingerprint
from crossgraft.data.inspection import InspectedImages, inspect_images, summarise_kinds
from crossgraft.data.opening import classes_of, list_rows
from crossgraft.data.selection import RowSelection
from crossgraft.data.sources import SourceRequest
from crossgraft.progress import Reporter
from crossgraft.records import DatasetRecord, Record
from crossgraft.tasks import Task, task_of

_USUAL_SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False, repr=False)
class Survey(Confidential):
    """Rows of images with all that is known about them; sound or not.

    Attributes:
        name: Name of the data, without an absolute path.
        source: Kind of source.
        labels: Labels as the source gave them.
        class_names: The C classes in order, or the L labels.
        targets: (n,) class of each row, or (n, L) of 0 and 1.
        groups: (n,) patient of each row, or None.
        group_column: Column that the groups come from, or None.
        groups_known: (n,) is it known whose image it is? Where not, its group is only its own. None: of all.
        splits: (n,) name of the split of each row (empty: in none), or None.
        split_method: Origin of the splits, in words.
        rows_used: Description of the rows of the source.
        attributes: Further columns, (n,) each.
        problems: Problems that make rows unusable, as the source states them.
        ordinal: Whether the user said that the order of the classes has a meaning.
        split: The split that was drawn or read, or None.
        images: The images that were looked at.
        image_rows: (n,) the place of each row in ``images``.
    """

    name: str
    source: str
    labels: np.ndarray
    class_names: tuple[str, ...]
    targets: np.ndarray
    groups: np.ndarray | None
    group_column: str | None
    groups_known: np.ndarray | None
    splits: np.ndarray | None
    split_method: str
    rows_used: str
    attributes: dict[str, np.ndarray]
    problems: tuple[str, ...]
    ordinal: bool
    split: Record | None
    images: InspectedImages
    image_rows: np.ndarray

    def __len__(self) -> int:
        return len(self.targets)

    @cached_property
    def facts(self) -> list[ImageFacts]:
        """What the image of each row showed; empty for an unreadable one."""
        return [self.images.facts[int(row)] for row in self.image_rows]

    @cached_property
    def unreadable(self) -> dict[int, str]:
        """Row → why its image cannot be used."""
        reasons = self.images.unreadable
        return {row: reasons[int(image)] for row, image in enumerate(self.image_rows) if int(image) in reasons}

    @cached_property
    def readable_rows(self) -> np.ndarray:
        """Rows whose image was decoded, ascending."""
        return np.asarray([row for row in range(len(self)) if row not in self.unreadable], dtype=np.int64)

    @cached_property
    def copies(self) -> list[np.ndarray]:
        """Rows of one picture, ascending, for every picture that is there more than once."""
        rows_of: defaultdict[bytes, list[int]] = defaultdict(list)
        for row in self.readable_rows:
            rows_of[self.facts[row].picture].append(int(row))
        return [np.asarray(rows) for rows in rows_of.values() if len(rows) > 1]

    @cached_property
    def telling_copies(self) -> list[np.ndarray]:
        """The same without constant images: that two empty slices are equal says nothing about who or what they show."""
        return [rows for rows in self.copies if not self.facts[int(rows[0])].is_constant]

    @cached_property
    def split_names(self) -> list[str]:
        """The splits that rows are in: train, val, test, then others by name."""
        found = set() if self.splits is None else set(self.splits.tolist()) - {""}
        return [name for name in _USUAL_SPLITS if name in found] + sorted(found - set(_USUAL_SPLITS))

    @property
    def known_groups(self) -> np.ndarray:
        """(n,) whether the group of each image is known."""
        return np.full(len(self), self.groups is not None) if self.groups_known is None else self.groups_known

    @property
    def task(self) -> Task:
        """What is to be predicted."""
        return task_of(self.targets, len(self.class_names), ordinal=self.ordinal)

    def members(self, class_index: int) -> np.ndarray:
        """(n,) whether each image is of this class (has this label)."""
        return self.task.members(self.targets, class_index)

    def class_counts(self, split: str | None = None) -> list[int]:
        """Images of each class, of one split or of all rows; unreadable ones count."""
        chosen = np.ones(len(self), dtype=bool) if split is None or self.splits is None else self.splits == split
        return [int((self.members(index) & chosen).sum()) for index in range(len(self.class_names))]

    def splits_of(self, rows: np.ndarray) -> set[str]:
        """Names of the splits that some rows are in."""
        return set() if self.splits is None else set(self.splits[rows].tolist()) - {""}

    def image_name(self, row: int) -> str:
        """The file or row an image comes from, relative to the data."""
        return self.images.names[int(self.image_rows[row])]

    def read(self, row: int) -> np.ndarray:
        """Pixels of one readable row."""
        return self.images.read(int(self.image_rows[row]))

    def describe(self, *, show_names: bool) -> DatasetRecord:
        """The data as the report shows them; names of files only with ``show_names``."""
        facts = [self.facts[row] for row in self.readable_rows]
        return DatasetRecord(
            name=self.name,
            source=self.source,
            num_images=len(self),
            class_names=list(self.class_names),
            class_counts=self.class_counts(),
            rows_used=self.rows_used,
            split_method=self.split_method,
            group_column=self.group_column,
            num_groups=None if self.groups is None else len(np.unique(self.groups)),
            fingerprint=dataset_fingerprint([fact.digest for fact in self.facts], self.labels, self.groups),
            image_kinds=summarise_kinds(fact.kind for fact in facts),
            task=self.task.recorded,
            ordinal=self.ordinal,
            num_skipped_unreadable=len(self.unreadable),
            skipped_unreadable=[self.image_name(row) for row in self.unreadable] if show_names else [],
        )


def survey_dataset(dataset: Dataset) -> Survey:
    """The rows of an open data set, as its images were looked at when it was opened: without thumbnails."""
    return Survey(
        name=dataset.name,
        source=dataset.source,
        labels=dataset.labels,
        class_names=dataset.class_names,
        targets=dataset.targets,
        groups=dataset.groups,
        group_column=dataset.group_column,
        groups_known=dataset.groups_known,
        splits=dataset.splits,
        split_method=dataset.split_method,
        rows_used=dataset.rows_used,
        attributes=dataset.attributes,
        problems=(),
        ordinal=dataset.ordinal,
        split=dataset.split,
        images=dataset._images,
        image_rows=dataset._image_rows,
    )


def with_thumbnails(survey: Survey, *, num_threads: int | None, reporter: Reporter) -> Survey:
    """The same rows, with their images looked at once more for what near duplicates are found with."""
    names = [survey.image_name(row) for row in range(len(survey))]
    images = inspect_images(
        names, survey.read, collect_all=True, with_thumbnails=True, num_threads=num_threads, reporter=reporter
    )
    return replace(survey, images=images, image_rows=np.arange(len(survey)))


def survey_location(
    location: str,
    request: SourceRequest,
    selection: RowSelection,
    *,
    class_names: str | Path | Sequence[str] | None = None,
    ordinal: bool = False,
    num_threads: int | None = None,
    reporter: Reporter,
) -> Survey:
    """List all rows of a location and look at each image once, with its thumbnail.

    Args:
        location: Location as in ``open_dataset``.
        request: Request with ``use_split=None``.
        selection: The split to draw or to read, if any.
        class_names: Names of the classes in order, or a file of them.
        ordinal: Whether the user states an order of the classes.
        num_threads: Threads that decode.
        reporter: Reporter of progress.

    Raises:
        DataError: The rows cannot be listed, or not be split as asked.
        UsageError: ``ordinal`` was said of several labels per image.
    """
    source, rows = list_rows(location, request, reporter)
    names, targets = classes_of(rows, class_names)
    task_of(targets, ordinal=ordinal)  # refuses an order of labels
    drawn = selection.make_split(rows, targets, names)
    images = inspect_images(
        rows.image_names,
        rows.decode,
        collect_all=True,
        with_thumbnails=True,
        num_threads=num_threads,
        reporter=reporter,
    )
    splits = rows.splits
    if drawn is not None:
        splits = np.full(len(targets), "", dtype="<U5")
        for part in _USUAL_SPLITS:
            splits[drawn.rows(part)] = part
    return Survey(
        name=rows.name,
        source=source,
        labels=rows.labels,
        class_names=names,
        targets=targets,
        groups=rows.groups,
        group_column=rows.group_column,
        groups_known=rows.groups_known,
        splits=splits,
        split_method=rows.split_method if drawn is None else drawn.method,
        rows_used="all rows" if splits is None else "all rows of all splits",
        attributes=rows.attributes,
        problems=rows.problems,
        ordinal=ordinal,
        split=drawn,
        images=images,
        image_rows=np.arange(len(targets)),
    )
