"""One artefact, and the images of an audit without it and with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64
from sklearn.model_selection import GroupShuffleSplit

from crossgraft.audit.letters import LEAST_LETTER_PIXELS, TOO_SMALL
from crossgraft.audit.record import AGAINST, ConfounderRecord
from crossgraft.choice import spell
from crossgraft.data import Dataset, k_folds
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.confounders._drawing import Lettering
from crossgraft.edit.edits import Editing
from crossgraft.edit.injection import draw_carriers
from crossgraft.edit.record import EditRow
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.seeding import derive_seed
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import counted

Mask = Bool[np.ndarray, " num_images"]
RowNumbers = Int64[np.ndarray, " _"]
Unit = Literal["image", "patient"]
FoldMethod = Literal["stratified", "shuffled"]
VAL_SHARE = 0.15
"""Share of the groups that select in a shuffled fold, that of the released code."""
LEAST_GROUPS = 2
LEAST_IN_A_PART = 2
"""Images of each class that a part needs; with fewer, an AUC is no measurement."""


@dataclass(frozen=True)
class Artefact:
    """What is put into images.

    Attributes:
        edit: The artefact.
        against: What images get instead that do not carry it, such as another noise level; None: nothing of its own.
    """

    edit: ImageEdit
    against: ImageEdit | None = None

    @property
    def name(self) -> str:
        """As it is written, with its options."""
        return spell(self.edit) + ("" if self.against is None else f"{AGAINST}{spell(self.against)}")


class AuditFold(NamedTuple):
    """Rows that train and rows that select, of one fold."""

    number: int
    train: RowNumbers
    val: RowNumbers


@dataclass(frozen=True, eq=False)
class AuditRows:
    """Images, the class in question, and what each row is for.

    Attributes:
        dataset: All rows.
        positive: Name of the class that is told from all others.
        is_positive: (n,) whether an image is of that class.
        folds: Rows that train and select; the test rows are in none of them.
        test: Rows that every model is measured on.
    """

    dataset: Dataset
    positive: str
    is_positive: Mask
    folds: tuple[AuditFold, ...]
    test: RowNumbers

    @property
    def identities(self) -> list[str]:
        """What draws depend on: the pixels, not the place of an image."""
        return [digest.hex() for digest in self.dataset.image_digests]

    def carriers(self, fold: AuditFold, share: float, *, negatives: float = 0.0, unit: Unit = "image", seed: int) -> Mask:
        """Which images of a fold carry the artefact: a share of the positives, and perhaps of the negatives, of each part."""
        parts = np.full(len(self.dataset), "", dtype="<U5")
        parts[fold.train], parts[fold.val] = "train", "val"
        groups = self.dataset.groups if unit == "patient" else None
        identities, carrying = self.identities, np.zeros(len(self.dataset), dtype=bool)
        for side, of_side in ((self.is_positive, share), (~self.is_positive, negatives)):
            carrying |= draw_carriers(side & (parts != ""), of_side, identities, parts=parts, groups=groups, seed=seed)
        return carrying

    def may_carry(self, negatives: float) -> Mask:
        """Images that a model may see with the artefact: all test images, all positives, and negatives where some carry it.

        Args:
            negatives: Share of the training negatives that carry it.
        """
        may_have_it = np.ones(len(self.dataset), dtype=bool) if negatives else self.is_positive.copy()
        may_have_it[self.test] = True
        return may_have_it


def divide_rows(
    dataset: Dataset, positive: str | None, *, num_folds: int, seed: int, method: FoldMethod = "stratified"
) -> AuditRows:
    """Folds of all rows but those of test; whole groups stay together.

    Args:
        dataset: All rows, with ``splits`` that name the part of each.
        positive: Class in question; None: the last one.
        num_folds: With 1, the parts train and val of the data as they are.
        seed: Random seed of the folds.
        method: ``stratified``: every row selects in one fold, and positives keep their share. ``shuffled``: ``VAL_SHARE`` of the
            groups select, drawn anew for each fold whatever their classes, so that val parts overlap.

    Raises:
        UnknownNameError: There is no such class.
        UsageError: Images have several labels each, or the data have no test or val rows.
        DataError: A part has fewer than two images of a class; or a group is in two parts.
    """
    name = positive_class(dataset, positive)
    is_positive = np.array(dataset.class_names)[dataset.targets] == name
    splits = np.full(len(dataset), "train") if dataset.splits is None else dataset.splits
    train, val, test = (np.flatnonzero(splits == part) for part in ("train", "val", "test"))
    if not len(test):
        raise UsageError("An audit needs test images. Leave out --holdout 0, or give a split with a part test.")
    if num_folds == 1:
        if not len(val):
            raise UsageError("With one fold, the data need a part val. Use two folds or more.")
        folds = (AuditFold(0, train, val),)
    else:
        draw = _stratified if method == "stratified" else _shuffled
        folds = draw(dataset, np.sort(np.r_[train, val]), is_positive, name, num_folds, seed)
    rows = AuditRows(dataset, name, is_positive, folds, test)
    _refuse_few(rows)
    _refuse_shared_groups(rows)
    return rows


def _stratified(
    dataset: Dataset, rows: RowNumbers, is_positive: Mask, positive: str, num_folds: int, seed: int
) -> tuple[AuditFold, ...]:
    groups = None if dataset.groups is None else dataset.groups[rows]
    names = [f"not {positive}", positive]
    drawn = k_folds(is_positive[rows].astype(np.int64), groups, num_folds=num_folds, seed=seed, class_names=names)
    return tuple(AuditFold(number, rows[split.rows("train")], rows[split.rows("test")]) for number, split in enumerate(drawn))


def _shuffled(
    dataset: Dataset, rows: RowNumbers, is_positive: Mask, positive: str, num_folds: int, seed: int
) -> tuple[AuditFold, ...]:
    groups = rows if dataset.groups is None else dataset.groups[rows]
    if len(np.unique(groups)) < LEAST_GROUPS:
        raise DataError(f"Folds need images of at least {LEAST_GROUPS} groups beside test; there are {len(np.unique(groups))}.")
    splitter = GroupShuffleSplit(num_folds, test_size=VAL_SHARE, random_state=derive_seed(seed, "shuffled folds"))
    return tuple(
        AuditFold(number, rows[np.sort(train)], rows[np.sort(val)])
        for number, (train, val) in enumerate(splitter.split(rows, groups=groups))
    )


def positive_class(dataset: Dataset, positive: str | None) -> str:
    """Name of the class in question.

    Raises:
        UnknownNameError: There is no such class.
        UsageError: Images have several labels each.
    """
    if not dataset.task.partitions:
        raise UsageError("An audit needs one class per image, and these images have several labels.")
    if positive is not None and positive not in dataset.class_names:
        raise UnknownNameError("class", positive, dataset.class_names)
    return dataset.class_names[-1] if positive is None else positive


def _refuse_few(rows: AuditRows) -> None:
    parts = [("test", rows.test)]
    for fold in rows.folds:
        parts += [(f"train of fold {fold.number}", fold.train), (f"val of fold {fold.number}", fold.val)]
    for where, part in parts:
        for side, what in ((rows.is_positive, rows.positive), (~rows.is_positive, f"other classes than {rows.positive}")):
            available = int(side[part].sum())
            if available < LEAST_IN_A_PART:
                raise DataError(
                    f"{where} has {counted(available, 'image')} of {what}, and an audit needs {LEAST_IN_A_PART}. Use fewer "
                    "folds, or give more images."
                )


def _refuse_shared_groups(rows: AuditRows) -> None:
    """Results of patients that a model has learned from are no test.

    Raises:
        DataError: A group has images in two parts, which only a split that came with the data can do.
    """
    groups = rows.dataset.groups
    if groups is None:
        return
    for fold in rows.folds:
        parts = {"train": fold.train, "val": fold.val, "test": rows.test}
        for one, other in combinations(parts, 2):
            shared = np.intersect1d(groups[parts[one]], groups[parts[other]])
            if len(shared):
                raise DataError(
                    f"{counted(len(shared), 'group')} with images in both {one} and {other}: an audit would measure what was "
                    "learned by heart. Draw the parts anew, by group: --holdout 0.2."
                )


@dataclass(frozen=True, eq=False)
class Confounded:
    """An artefact and where it is.

    Attributes:
        name: As it was written, with its options, and what it is against.
        edit: The artefact.
        editing: What an image that carries it gets.
        images: All images as it finds them.
        clean: All images as those that do not carry it are.
        edited: All images; those that a model may see with it have it.
        facts: What it changes, in grey levels of 8 bits.
        absent: What an image that does not carry it gets; None: it stays as it is.
        against: The edit in that which is of this artefact alone; None: there is none.
    """

    name: str
    edit: ImageEdit
    editing: Editing
    images: Dataset
    clean: Dataset
    edited: Dataset
    facts: EditRow
    absent: Editing | None = None
    against: ImageEdit | None = None

    @property
    def record(self) -> ConfounderRecord:
        """What was put into images."""
        found = ConfounderRecord.of_edit(self.name, self.edit, self.facts)
        if self.against is None:
            return found
        return found.model_copy(update={"said": f"{found.said} Images without it have {spell(self.against)}."})

    def too_small(self, preprocessing: Preprocessing) -> str | None:
        """Why it cannot be seen at the input of a network, in words; None where that is not known beforehand."""
        if not isinstance(self.edit, Lettering):
            return None
        native = float(np.median([min(fact.height, fact.width) for fact in self.clean.facts]))
        high = self.edit.size * min(native, preprocessing.height_pixels, preprocessing.width_pixels)
        if high >= LEAST_LETTER_PIXELS:
            return None
        return TOO_SMALL.format(high=f"{high:.1f}")


class Without(NamedTuple):
    """Images that no artefact was put into.

    Attributes:
        images: All of them, as artefacts find them.
        clean: As those that do not carry an artefact are.
        instead: What was done to these; None: nothing.
    """

    images: Dataset
    clean: Dataset
    instead: Editing | None


def without_artefact(images: Dataset, absent: Sequence[ImageEdit], *, seed: int) -> Without:
    """What artefacts are put into, and what is done to images that do not carry one.

    Args:
        images: All of them, as they are or as a network gets them.
        absent: Edits of images that carry none; without any they stay as they are.
        seed: Random seed of the edits.

    Raises:
        DataError: An image cannot be edited.
    """
    if not absent:
        return Without(images, images, None)
    instead = Editing(list(absent), seed=seed)
    return Without(images, images.edited(instead), instead)


def confound(
    rows: AuditRows,
    edit: ImageEdit,
    without: Without,
    *,
    strength: float,
    negatives: float,
    seed: int,
    against: ImageEdit | None = None,
) -> Confounded:
    """Put an artefact into all test images, and into those others that may carry it.

    Args:
        rows: What each image is for.
        edit: The artefact.
        without: What it is put into.
        strength: Multiple of what it changes.
        negatives: Share of the training negatives that carry it.
        seed: Random seed of the edit; each image has random numbers of its own.
        against: What ``without`` has instead, where that is of this artefact alone.

    Raises:
        DataError: An image cannot be edited, for example because a text does not fit into it.
    """
    editing = Editing([edit], strength=strength, seed=seed)
    edited = without.images.edited(editing, rows.may_carry(negatives))
    facts = editing.facts()[0]
    name = Artefact(edit, against).name
    return Confounded(name, edit, editing, without.images, without.clean, edited, facts, without.instead, against)
