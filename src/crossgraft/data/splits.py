"""Train, validation and test rows as a record that can be saved, re-read and refused for other data.

Splits keep the shares of the classes, and never put one patient (or writer, or lesion) into two parts: images
of one patient resemble each other, so a model that has seen one of them is not tested by the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from jaxtyping import Float64
from pydantic import Field, ValidationError, model_validator

from crossgraft.data._label_split import LabelAssignment, assign_label_sets
from crossgraft.data.dataset import Dataset
from crossgraft.data.fingerprint import ListedRows
from crossgraft.data.sampling import share_out
from crossgraft.errors import DataError, OtherImagesError, UsageError
from crossgraft.paths import read_whole, shortened
from crossgraft.records.base import SCHEMA_VERSION, Count, Record
from crossgraft.seeding import derive_seed, generator
from crossgraft.storage.atomic import refuse_to_replace, write_atomically
from crossgraft.tasks import task_of
from crossgraft.types import ClassIndices, Groups, LabelMatrix, Targets
from crossgraft.words.formatting import counted

Shares = Float64[np.ndarray, " num_parts"]


def assign_images(targets: ClassIndices, shares: Shares, seed: int) -> ClassIndices:
    """Part of each row: every class is shuffled and cut at the shares, at least one image per part.

    Args:
        targets: Class of each row; every class has at least as many images as there are parts.
        shares: Share of each part, adding up to 1.
        seed: Random seed of the shuffles.
    """
    assigned = np.empty(len(targets), dtype=np.int64)
    for index in np.unique(targets):
        rows = generator(seed, "split", index).permutation(np.flatnonzero(targets == index))
        counts = share_out(shares, len(rows))
        assigned[rows] = np.repeat(np.arange(len(shares)), counts)
    return assigned


def assign_groups(targets: ClassIndices, groups: Groups, shares: Shares, seed: int) -> ClassIndices:
    """Part of each row, whole groups at a time.

    Greedy: the largest groups first, each to the part where it brings the class shares closest to what was asked; ties go
    by chance. A part that lacks a class comes first when only just enough groups with that class are left. Where groups of
    several classes leave a part without one all the same, groups are moved or exchanged until none lacks any, if a few
    steps reach that.

    Args:
        targets: Class of each row; images of every class are of at least as many groups as there are parts.
        groups: Group of each row.
        shares: Share of each part, adding up to 1.
        seed: Random seed for ties between groups of equal size.
    """
    names, group_of_row = np.unique(groups, return_inverse=True)
    present, column = np.unique(targets, return_inverse=True)
    counts = np.zeros((len(names), len(present)), dtype=np.int32)  # gigabytes where there are thousands of both
    np.add.at(counts, (group_of_row.ravel(), column.ravel()), 1)
    class_sizes = counts.sum(axis=0).astype(np.float64)
    wanted = shares[:, np.newaxis] * class_sizes
    filled = np.zeros_like(wanted)
    groups_left = np.count_nonzero(counts, axis=0)
    part_of_group = np.empty(len(names), dtype=np.int64)
    shuffled = generator(seed, "split groups").permutation(len(names))
    for group in shuffled[np.argsort(-counts.sum(axis=1)[shuffled], kind="stable")]:
        lacking = filled == 0
        urgent = lacking & (counts[group] > 0) & (groups_left <= lacking.sum(axis=0))
        before, after = filled - wanted, filled + counts[group] - wanted
        change = ((after**2 - before**2) / class_sizes**2).sum(axis=1)
        part = int(np.lexsort((change, -urgent.sum(axis=1)))[0])
        part_of_group[group] = part
        filled[part] += counts[group]
        groups_left = groups_left - (counts[group] > 0)
    if (filled == 0).any():
        part_of_group = _without_gaps(part_of_group, counts, wanted)
    return part_of_group[group_of_row.ravel()]


def _without_gaps(part_of_group: ClassIndices, counts: np.ndarray, wanted: np.ndarray) -> ClassIndices:
    """Move or exchange groups while that leaves fewer classes missing from a part; of such steps the one nearest the shares.

    Args:
        part_of_group: Part of each group.
        counts: Images of each group by class.
        wanted: Images that each part should have by class.
    """
    best, fewest = part_of_group, _gaps_and_distance(part_of_group, counts, wanted)
    while (now := fewest)[0]:
        start = best
        filled = _filled(start, counts, len(wanted))
        for part, index in np.argwhere(filled == 0):
            there = np.flatnonzero(start == part)
            for group in np.flatnonzero((counts[:, index] > 0) & (start != part)):
                for given_back in (group, *there):  # the group itself: nothing is given back
                    tried = start.copy()
                    tried[given_back], tried[group] = start[group], part
                    outcome = _gaps_and_distance(tried, counts, wanted)
                    if outcome < fewest:
                        best, fewest = tried, outcome
        if fewest[0] == now[0]:
            return start
    return best


def _filled(part_of_group: ClassIndices, counts: np.ndarray, num_parts: int) -> np.ndarray:
    """Images of each part by class."""
    filled = np.zeros((num_parts, counts.shape[1]))
    np.add.at(filled, part_of_group, counts)
    return filled


def _gaps_and_distance(part_of_group: ClassIndices, counts: np.ndarray, wanted: np.ndarray) -> tuple[int, float]:
    """How many classes are missing from a part, and how far the parts are from what they should have."""
    filled = _filled(part_of_group, counts, len(wanted))
    return int((filled == 0).sum()), float((((filled - wanted) / wanted.sum(axis=0)) ** 2).sum())


Part = Literal["train", "val", "test"]
PARTS: tuple[Part, ...] = ("train", "val", "test")


class Split(Record):
    """Row numbers of the parts of one data set, and how they came about.

    Attributes:
        data_fingerprint: ``Dataset.listing_fingerprint`` of the rows that were split; empty if unknown.
        rows_fingerprint: The same without groups, ``Dataset.rows_fingerprint``; empty if unknown.
        num_images: Rows that were split.
        method: Method of the split, in words.
        seed: Random seed; None for a split that was not drawn.
        origins: Part → where its rows come from, in words; empty where ``method`` says all.
        train: Row numbers, ascending.
        val: Row numbers, ascending; may be empty.
        test: Row numbers, ascending; may be empty.
    """

    schema_version: int = SCHEMA_VERSION
    kind: Literal["split"] = "split"
    data_fingerprint: str
    rows_fingerprint: str = ""
    num_images: Count
    method: str
    seed: int | None
    origins: dict[Part, str] = Field(default={})
    train: tuple[int, ...]
    val: tuple[int, ...] = ()
    test: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _rows_are_disjoint(self) -> Split:
        rows = [*self.train, *self.val, *self.test]
        if len(set(rows)) != len(rows):
            raise ValueError("a row is in two parts")
        if rows and (min(rows) < 0 or max(rows) >= self.num_images):
            raise ValueError(f"a row is not between 0 and {self.num_images - 1}")
        return self

    def rows(self, part: Part) -> np.ndarray:
        """Row numbers of one part."""
        return np.asarray(getattr(self, part), dtype=np.int64)

    def part_names(self) -> np.ndarray:
        """(num_images,) the part of each row; empty for a row that is in none."""
        names = np.full(self.num_images, "", dtype="U5")
        for part in PARTS:
            names[self.rows(part)] = part
        return names

    def apply(self, dataset: Dataset, part: Part = "train") -> Dataset:
        """The rows of one part of ``dataset``.

        Raises:
            DataError: The split was made for other data, or the part is empty.
        """
        self.refuse_other_rows(dataset)
        rows = self.rows(part)
        if rows.size == 0:
            raise DataError(f"The split has no {part} rows ({self.method}).")
        return dataset.take(rows, rows_used=f"{part} rows of the split ({dataset.rows_used})", split_method=self.method)

    def refuse_other_rows(self, rows: ListedRows) -> None:
        """Raise if the split does not belong to these rows, or does not keep their groups together.

        Images with the labels they had then may have other groups now, as long as the split divides none of them.

        Raises:
            DataError: Names or labels differ, there are no groups any more, or the split divides some.
        """
        is_as_long = len(rows.labels) == self.num_images
        if is_as_long and self.data_fingerprint in ("", rows.listing_fingerprint):
            return
        now, had_groups = rows.rows_fingerprint, self.data_fingerprint != rows.rows_fingerprint
        if is_as_long and now and (not had_groups or self.rows_fingerprint == now):
            refuse_divided_groups(rows, self.part_names(), had_groups=had_groups)
            return
        raise OtherImagesError(
            f"The split was made for {self.num_images} other images than the {len(rows.labels)} of {rows.name}: names, labels "
            "or groups differ. Open the data as they were then (same options), or make a new split."
        )

    def _repr_html_(self) -> str:
        """A short table for notebooks, without the row numbers."""
        from crossgraft.words.notebook import facts_table

        sizes = {part: len(self.rows(part)) or None for part in PARTS}
        return facts_table(f"Split of {self.num_images} images", {**sizes, "method": self.method, "seed": self.seed})

    def save(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the split as JSON, whole or not at all; with ``overwrite`` in the place of a split that is there.

        Raises:
            UsageError: Something else is there, or a split and ``overwrite`` is off.
            StorageError: The file cannot be written.
        """
        refuse_to_replace(path, Split.is_in, what="a split", overwrite=overwrite)
        write_atomically(path, self.model_dump_json(indent=1) + "\n")

    @classmethod
    def is_in(cls, content: bytes) -> bool:
        """Whether this is the content of a file that ``save`` wrote."""
        return b'"kind": "split"' in content[:200]

    @classmethod
    def load(cls, path: Path) -> Split:
        """Read a split that ``save`` wrote.

        Raises:
            DataError: There is no such file, or it is not a split.
        """
        try:
            return cls.model_validate_json(read_whole(path))
        except FileNotFoundError as error:
            raise DataError(
                f"There is no split file {path}. Give the split.json of a run directory of crossgraft tune or check, or draw "
                "a split with --holdout or --folds."
            ) from error
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise DataError(f"Cannot read the split {shortened(str(path))}: {reason}.") from error
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the whole file"
            raise DataError(f"{path} is not a split that crossgraft saved: {first['msg']} ({where}).") from error


def make_split(
    targets: Targets,
    groups: Groups | None = None,
    *,
    fractions: Mapping[Part, float],
    seed: int,
    data_fingerprint: str = "",
    class_names: Sequence[str] | None = None,
) -> Split:
    """Draw parts of given sizes, stratified by class or by label, no group in two parts.

    Args:
        targets: Class of each row, 0 … C−1; or (n, L) of 0 and 1, where an image may have several labels.
        groups: Patient (or the like) of each row.
        fractions: Share of each part; they add up to 1, for example ``{"train": 0.8, "test": 0.2}``.
        seed: Random seed of the assignment of rows (or groups).
        data_fingerprint: ``Dataset.listing_fingerprint``, so that the split is refused for other rows.
        class_names: Names of the C classes, for messages.

    Returns:
        Every class is in every part. With groups the shares are as near as whole groups allow (greedy,
        largest groups first); O(groups × parts × classes).

        With several labels per image, let t be the largest number of marks of one group (or image): its images plus, over
        all labels, its images with that label. The size of each part, and its number of images with each label, differ
        from their shares by less than t with two parts and by less than 2 t with three; ``method`` says by how much they
        do. A label of at least as many groups as parts is in every part where the bound allows it; ``method`` names those
        that are not.

    Raises:
        UsageError: The fractions make no sense.
        DataError: A class has fewer images, or images of fewer groups, than there are parts.
    """
    parts: list[Part] = [part for part in PARTS if part in fractions]
    shares = np.array([fractions[part] for part in parts], dtype=np.float64)
    if "train" not in parts or (shares <= 0).any() or abs(shares.sum() - 1) > 1e-9:
        listed = ", ".join(f"{part} {fraction:g}" for part, fraction in fractions.items())
        raise UsageError(f"Split fractions must be positive, include train and add up to 1. Given: {listed}.")
    if not task_of(targets).partitions:
        refuse_few_units(targets, groups, len(parts), "parts")
        labelled = assign_label_sets(targets, groups, shares, seed)
        part_of_row, how = labelled.parts, label_sets_in_words(labelled, groups, parts, class_names)
    else:
        refuse_rare_classes(targets, groups, len(parts), f"each of {', '.join(parts)}", class_names)
        part_of_row = assign_images(targets, shares, seed) if groups is None else assign_groups(targets, groups, shares, seed)
        how = stratified_in_words(groups)
    described = " / ".join(f"{fraction:.0%} {part}" for part, fraction in zip(parts, shares, strict=True))
    method = f"{described}, drawn at random, {how}"
    return split_of(np.asarray(parts)[part_of_row], data_fingerprint, method, seed)


def k_folds(
    targets: Targets,
    groups: Groups | None = None,
    *,
    num_folds: int,
    seed: int,
    data_fingerprint: str = "",
    class_names: Sequence[str] | None = None,
) -> tuple[Split, ...]:
    """Cut the rows into folds, stratified by class, no group in two folds; split i tests on fold i.

    Uses scikit-learn's ``StratifiedGroupKFold`` (or ``StratifiedKFold`` without groups). With several labels per image, as
    ``make_split``; sizes and label counts of the folds differ from their shares by less than 2.27 t. Arguments as in
    ``make_split``.

    Raises:
        UsageError: Fewer than two folds.
        DataError: A class has fewer images than folds, there are fewer groups than folds, or all images of a
            class are of one group.
    """
    if num_folds < 2:
        raise UsageError(f"--folds must be at least 2, not {num_folds}.")
    if not task_of(targets).partitions:
        refuse_few_units(targets, groups, num_folds, "folds")
        labelled = assign_label_sets(targets, groups, np.full(num_folds, 1 / num_folds), seed)
        names = [f"fold {fold}" for fold in range(1, num_folds + 1)]
        fold_of_row, how = labelled.parts, label_sets_in_words(labelled, groups, names, class_names)
    else:
        refuse_rare_classes(targets, None, num_folds, f"each of {num_folds} folds", class_names)
        if groups is not None:
            refuse_few_groups(targets, groups, num_folds, class_names)
        from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold  # one second, which few commands need

        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splitter = kind(num_folds, shuffle=True, random_state=derive_seed(seed, "folds"))
        fold_of_row, how = np.empty(len(targets), dtype=np.int64), stratified_in_words(groups)
        for fold, (_, test) in enumerate(splitter.split(np.zeros(len(targets)), targets, groups)):
            fold_of_row[test] = fold
    return tuple(
        split_of(
            np.where(fold_of_row == fold, "test", "train"),
            data_fingerprint,
            f"fold {fold + 1} of {num_folds} is the test, {how}",
            seed,
        )
        for fold in range(num_folds)
    )


def official_split(dataset: Dataset) -> Split:
    """The split that came with the data, which were opened with ``use_split=None``.

    Rows of splits with names other than train, val and test are in no part.

    Raises:
        DataError: The data have no splits, or none is called train.
    """
    if dataset.splits is None or "train" not in dataset.splits:
        known = "no splits" if dataset.splits is None else "the splits " + ", ".join(np.unique(dataset.splits))
        raise DataError(f"{dataset.name} has {known}; there is no official split with train rows to keep.")
    return split_of(dataset.splits, dataset.listing_fingerprint, dataset.split_method, None)


def split_of(
    part_of_row: np.ndarray, data_fingerprint: str, method: str, seed: int | None, *, origins: Mapping[Part, str] | None = None
) -> Split:
    """The split that gives each row the part of this name; rows of other names are in no part."""
    train, val, test = (tuple(np.flatnonzero(part_of_row == part).tolist()) for part in PARTS)
    return Split(
        data_fingerprint=data_fingerprint,
        num_images=len(part_of_row),
        method=method,
        seed=seed,
        origins=dict(origins or {}),
        train=train,
        val=val,
        test=test,
    )


_MOST_MISSING = 6


def stratified_in_words(groups: Groups | None) -> str:
    """How a split by class was stratified."""
    if groups is None:
        return "stratified by class; patient leakage not checked (no groups)"
    return "stratified by class, no group in two parts"


def label_sets_in_words(
    labelled: LabelAssignment, groups: Groups | None, parts: Sequence[str], class_names: Sequence[str] | None
) -> str:
    """How a split by labels came out: how far off it is, and which label is missing where."""
    together = "patient leakage not checked (no groups)" if groups is None else "no group in two parts"
    reached = f"at most {labelled.largest_deviation:.2g} images off a share, where less than {labelled.bound:.2g} is sure"
    missing = [
        f"{label if class_names is None else class_names[label]} is not in {parts[part]}"
        for part, label in labelled.missing[:_MOST_MISSING]
    ]
    more = len(labelled.missing) - len(missing)
    lacks = f"; {', '.join(missing)}{f' and {more} more such gaps' if more > 0 else ''}" if missing else ""
    return f"stratified by label ({reached}); {together}{lacks}"


def refuse_few_units(targets: LabelMatrix, groups: Groups | None, num_parts: int, parts: str) -> None:
    """Every part must get an image, or a group.

    Raises:
        DataError: There are fewer images (groups) than parts.
    """
    number = len(targets) if groups is None else len(np.unique(groups))
    if number < num_parts:
        what = "images" if groups is None else "groups (patients)"
        raise DataError(f"There are {number} {what} for {num_parts} {parts}. Ask for at most {number} {parts}.")


def refuse_rare_classes(
    targets: ClassIndices, groups: Groups | None, num_parts: int, parts: str, class_names: Sequence[str] | None
) -> None:
    """A class must be able to be in every part.

    Raises:
        DataError: A class has fewer images, or images of fewer groups, than there are parts.
    """
    for index in np.unique(targets):
        members = targets == index
        count = int(members.sum()) if groups is None else len(np.unique(groups[members]))
        if count < num_parts:
            units = counted(count, "image") if groups is None else counted(count, "group (patient)", "groups (patients)")
            name = f"Class number {index}" if class_names is None else f"The class {class_names[index]}"
            raise DataError(f"{name} has {units} and cannot be in {parts}. Collect more, join classes, or ask for fewer parts.")


def refuse_few_groups(targets: ClassIndices, groups: Groups, num_folds: int, class_names: Sequence[str] | None) -> None:
    """Every fold must get a group, and every class must be in train and test rows.

    Raises:
        DataError: There are fewer groups than folds, or all images of a class are of one group.
    """
    num_groups = len(np.unique(groups))
    if num_groups < num_folds:
        raise DataError(f"There are {num_groups} groups (patients) for {num_folds} folds. Ask for at most {num_groups} folds.")
    refuse_rare_classes(targets, groups, 2, "both the train and the test rows", class_names)


def refuse_divided_groups(rows: ListedRows, part_of_row: np.ndarray, *, had_groups: bool) -> None:
    """Raise where a split that was made with other groups does not keep those of today together; names none of them.

    Args:
        rows: Rows with their groups now.
        part_of_row: Part of each row; empty for none.
        had_groups: Whether the rows had groups when the split was made.

    Raises:
        DataError: A group has images in several parts, or the rows have no groups any more.
    """
    data = f"{len(part_of_row)} images of {rows.name}"
    if rows.groups is None:
        raise DataError(
            f"The split was made by the groups (patients) that the {data} had then, and they are opened without groups now. "
            "Name their column with --group-column, or make a new split."
        )
    used = part_of_row != ""
    codes = [np.unique(column[used], return_inverse=True)[1] for column in (rows.groups, part_of_row)]
    parts_of_group = np.bincount(np.unique(np.stack(codes), axis=1)[0])
    if divided := int((parts_of_group > 1).sum()):
        then, verb = "other groups" if had_groups else "no groups", "has" if divided == 1 else "have"
        raise DataError(
            f"The split was made for these {data}, but with {then}: {divided} of "
            f"{counted(len(parts_of_group), 'group')} by {rows.group_column} {verb} images in more than one part, so a result "
            "would be of patients that were trained on. Make a new split by these groups, or open the data with the groups "
            "they had then."
        )
