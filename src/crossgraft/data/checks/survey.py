"""Everything that the checks look at: all rows of all splits, each image decoded once; and how they write what they find."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from crossgraft.data._groups import Confidential
from crossgraft.data.checks.record import DataCheckRecord, FindingRecord
from crossgraft.data.class_names import name_classes
from crossgraft.data.dataset import Dataset
from crossgraft.data.describe import thumbnail_png
from crossgraft.data.fingerprint import ListedRows
from crossgraft.data.inspection import inspect_images
from crossgraft.data.listing import list_rows, look_at_rows, make_request
from crossgraft.data.rows import ImageRows
from crossgraft.data.selection import RowSelection
from crossgraft.data.splits import PARTS, Split
from crossgraft.options.data import SourceOptions
from crossgraft.progress import Reporter
from crossgraft.records.base import Severity, Thumbnail
from crossgraft.result import Result
from crossgraft.tasks import task_of
from crossgraft.types import Targets
from crossgraft.words.visible import csv_text

if TYPE_CHECKING:
    import pandas as pd


MOST_LISTED = 1000
"""Groups of images that a finding lists; it counts all."""


def finding(
    check: str,
    title: str,
    severity: Severity,
    text: str,
    *,
    advice: str = "",
    images: Sequence[np.ndarray] | Sequence[list[int]] | np.ndarray = (),
    reasons: Sequence[str] = (),
) -> FindingRecord:
    """A finding about ``images``: groups of row numbers from 0, which people see from 1; ``reasons`` one per group, or none."""
    return FindingRecord(
        check=check,
        title=title,
        severity=severity,
        text=text,
        advice=advice,
        num_groups=len(images),
        images=[[int(row) + 1 for row in group] for group in images[:MOST_LISTED]],
        reasons=list(reasons[:MOST_LISTED]),
    )


def tallied(kinds: Iterable[str]) -> str:
    """How often each kind occurs, the most frequent first.

    >>> tallied(["train and val", "train and test", "train and val"])
    '2 in train and val, 1 in train and test'
    """
    counts = Counter(kinds)
    return ", ".join(f"{count} in {kind}" for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


EXIT_UNSOUND = 3


@dataclass(frozen=True, eq=False, repr=False)
class DataCheck(Result[DataCheckRecord]):
    """A checked data set: ``record`` holds every finding."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that makes results wrong. Warnings and notices do not count."""
        return self.record.is_sound

    @property
    def exit_code(self) -> int:
        """3 where something unsound was found."""
        return 0 if self.is_sound else EXIT_UNSOUND

    @property
    def verdict(self) -> str:
        """The answer in one or two sentences."""
        return self.record.verdict

    def summary(self) -> str:
        """The data and the verdict."""
        return f"{self.record.dataset.name}: {self.verdict}"

    def to_frame(self) -> pd.DataFrame:
        """One row per finding, or, where a finding lists images, one row per group of images (row numbers from 1).

        ``text`` says what was found, or, where that differs from image to image, what is wrong with this one.
        """
        import pandas as pd

        return pd.DataFrame(self._cells(), columns=self._COLUMNS)

    def csv(self) -> str:
        """``to_frame`` as a CSV file, without pandas, which takes longer to import than many a check."""
        return csv_text(self._COLUMNS, self._cells(), line_end=os.linesep)

    _COLUMNS: ClassVar[list[str]] = ["check", "severity", "title", "text", "images", "names"]

    def _cells(self) -> list[list[str]]:
        names = self.record.image_names
        return [
            [
                *(finding.check, finding.severity, finding.title, reason or finding.text, " ".join(map(str, group))),
                " | ".join(names[row] for row in group if row in names),
            ]
            for finding in self.record.findings
            for group, reason in zip_longest(finding.images or [[]], finding.reasons)
        ]

    def _most_important(self) -> pd.DataFrame:
        import pandas as pd

        rows = [(finding.severity, finding.title, finding.text) for finding in self.record.findings]
        return pd.DataFrame(rows, columns=["severity", "title", "text"])


LOOKING = "looking"
"""The part of the work in which images are looked at."""

Foresee = Callable[[Sequence[str], Callable[[int], np.ndarray]], object]
"""Given names of all images and what decodes one, before they are looked at; says how long the check will take."""


@dataclass(frozen=True, eq=False, repr=False)
class Survey(Confidential, ImageRows):
    """Rows of images with labels and all that is known about them; sound or not.

    Attributes as in ``ImageRows``; a row may be unreadable, which ``skipped_unreadable`` then names, and one in no split has
    an empty name for it.

    Attributes:
        targets: (n,) class of each row, or (n, L) of 0 and 1.
        problems: Problems that make rows unusable, as the source states them.
    """

    targets: np.ndarray
    problems: tuple[str, ...] = ()

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
        present = set() if self.splits is None else set(self.splits.tolist()) - {""}
        return [name for name in PARTS if name in present] + sorted(present - set(PARTS))

    @property
    def known_groups(self) -> np.ndarray:
        """(n,) whether the group of each image is known."""
        return np.full(len(self), self.groups is not None) if self.groups_known is None else self.groups_known

    def counts_in(self, split: str) -> list[int]:
        """Images of each class in one split; unreadable ones count."""
        return [int((self.members(index) & (self.splits == split)).sum()) for index in range(len(self.class_names))]

    def pairs_of_splits(self, groups: Sequence[np.ndarray]) -> str:
        """In which two splits groups of rows are together, in words with numbers."""
        return tallied(
            f"{first} and {second}"
            for rows in groups
            for first, second in combinations([name for name in self.split_names if name in self.splits_of(rows)], 2)
        )

    def splits_of(self, rows: np.ndarray) -> set[str]:
        """Names of the splits that some rows are in."""
        return set() if self.splits is None else set(self.splits[rows].tolist()) - {""}


def survey_rows(rows: ImageRows, *, problems: tuple[str, ...] = ()) -> Survey:
    """Labelled rows as the checks look at them; those of an open data set as its images were looked at when it was opened."""
    unreadable = tuple(map(rows.image_name, rows.unreadable))
    return rows.seen_as(Survey, problems=problems, skipped_unreadable=unreadable, reading=())


def survey_again(
    dataset: Dataset, selection: RowSelection, *, num_threads: int | None, foresee: Foresee, reporter: Reporter
) -> Survey:
    """The rows of an open data set, with their images looked at once more for what near duplicates are found with."""
    drawn = _split_of(dataset, selection, dataset.targets, dataset.class_names)
    if drawn is not None:
        dataset = replace(dataset, split_method=drawn.method, splits=drawn.part_names(), split=drawn)
    if dataset.splits is not None:
        known = dataset.fingerprint_of_split(np.flatnonzero(dataset.splits == "train"))
        dataset = replace(dataset, split_fingerprint=known)
    names = [dataset.image_name(row) for row in range(len(dataset))]
    foresee(names, dataset.read)
    with reporter.part(LOOKING):
        images = inspect_images(names, dataset.read, for_check=True, num_threads=num_threads, reporter=reporter)
    return survey_rows(replace(dataset, _images=images, _image_rows=np.arange(len(dataset))))


def survey_location(
    location: str | Path,
    options: SourceOptions,
    selection: RowSelection,
    *,
    class_names: str | Path | Sequence[str] | None = None,
    ordinal: bool = False,
    num_threads: int | None = None,
    foresee: Foresee,
    reporter: Reporter,
) -> Survey:
    """List all rows of a location and look at each image once, with its thumbnail.

    Args:
        location: Location as in ``open_dataset``.
        options: As in ``open_dataset``.
        selection: The split to draw or to read, if any.
        class_names: Names of the classes in order, or a file of them.
        ordinal: Whether the user states an order of the classes.
        num_threads: Threads that decode.
        foresee: Called once the rows are known.
        reporter: Reporter of progress.

    Raises:
        DataError: The rows cannot be listed, or not be split as asked.
        UsageError: ``ordinal`` was said of several labels per image.
    """
    source, rows = list_rows(location, make_request(options, use_split=None), reporter)
    classes = name_classes(rows.labels, rows.label_names, class_names)
    task_of(classes.targets, ordinal=ordinal)  # refuses an order of labels
    drawn = _split_of(rows, selection, classes.targets, classes.names)
    if drawn is not None:
        rows = replace(rows, split_method=drawn.method, splits=drawn.part_names())
    train = None if rows.splits is None else np.flatnonzero(rows.splits == "train")
    foresee(rows.image_names, rows.decode)
    with reporter.part(LOOKING):
        looked = look_at_rows(
            source,
            rows,
            np.arange(len(rows.labels)),
            classes=classes,
            split=drawn,
            split_fingerprint=None if train is None else rows.fingerprint_of_split(train),
            rows_used="all rows" if rows.splits is None else "all rows of all splits",
            ordinal=ordinal,
            for_check=True,
            num_threads=num_threads,
            reporter=reporter,
        )
    return survey_rows(looked, problems=rows.problems)


def _split_of(rows: ListedRows, selection: RowSelection, targets: Targets, class_names: Sequence[str]) -> Split | None:
    """The split that other commands use; None where the data have parts, which are looked at as they are."""
    is_kept = rows.splits is not None and selection.keeps_official
    return None if is_kept else selection.make_split(rows, targets, class_names)


_MOST_GROUPS = 12
_MOST_IMAGES = 2
_SHOWN = ("identical_across", "conflicting_labels", "pictures_of_two_groups", "near_duplicates", "identical_within")


def show_groups(survey: Survey, findings: Sequence[FindingRecord]) -> list[Thumbnail]:
    """The first groups of each finding about pictures that belong together, two images each.

    What a thumbnail is called begins with the title of its finding and ": ", then says which images these are.
    """
    return [
        Thumbnail(class_name=f"{finding.title}: {caption}", png_base64=thumbnail_png(survey.read(row - 1)))
        for finding in findings
        if finding.check in _SHOWN
        for group in finding.images[:_MOST_GROUPS]
        for shown in [group if len(group) <= _MOST_IMAGES else [group[0], group[-1]]]
        for caption in [" and ".join(f"{row} ({_location(survey, row - 1)})" for row in shown)]
        for row in shown
    ]


def _location(survey: Survey, row: int) -> str:
    """Split and label of a row."""
    label = " + ".join(survey.task.names_of(survey.targets[row], survey.class_names)) or "no label"
    split = "" if survey.splits is None else str(survey.splits[row])
    return ", ".join(part for part in (split, label) if part)
