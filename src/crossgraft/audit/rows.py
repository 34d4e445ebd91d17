"""The rows of an audit: one test part for all folds, and folds of the others that train and select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64

from crossgraft.audit.injection import draw_carriers
from crossgraft.data import Dataset, k_folds
from crossgraft.errors import DataError, UnknownNameError, UsageError

Mask = Bool[np.ndarray, " num_images"]
RowNumbers = Int64[np.ndarray, " _"]
Unit = Literal["image", "patient"]
LEAST_IN_A_PART = 2
"""Images of each class that a part needs; with fewer, an AUC is no measurement."""


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

    def carriers(
        self, fold: AuditFold, share: float, *, negatives: float = 0.0, unit: Unit = "image", seed: int
    ) -> Mask:
        """Which images of a fold carry the artefact: a share of the positives, and perhaps of the negatives, of each part."""
        parts = np.full(len(self.dataset), "", dtype="<U5")
        parts[fold.train], parts[fold.val] = "train", "val"
        groups = self.dataset.groups if unit == "patient" else None
        identities, found = self.identities, np.zeros(len(self.dataset), dtype=bool)
        for side, of_side in ((self.is_positive, share), (~self.is_positive, negatives)):
            found |= draw_carriers(side & (parts != ""), of_side, identities, parts=parts, groups=groups, seed=seed)
        return found

    def may_carry(self, negatives: float) -> Mask:
        """Images that a model may see with the artefact: all test images, all positives, and negatives where some carry it.

        Args:
            negatives: Share of the training negatives that carry it.
        """
        found = np.ones(len(self.dataset), dtype=bool) if negatives else self.is_positive.copy()
        found[self.test] = True
        return found


def divide_rows(dataset: Dataset, positive: str | None, *, num_folds: int, seed: int) -> AuditRows:
    """Folds of all rows but those of test; whole groups stay together, and positives keep their share.

    Args:
        dataset: All rows, with ``splits`` that name the part of each.
        positive: Class in question; None: the last one.
        num_folds: With 1, the parts train and val of the data as they are.
        seed: Random seed of the folds.

    Raises:
        UnknownNameError: There is no such class.
        UsageError: Images have several labels each, or the data have no test or val rows.
        DataError: A part has fewer than two images of a class.
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
        rows = np.sort(np.r_[train, val])
        groups = None if dataset.groups is None else dataset.groups[rows]
        names = [f"not {name}", name]
        drawn = k_folds(is_positive[rows].astype(np.int64), groups, num_folds=num_folds, seed=seed, class_names=names)
        folds = tuple(
            AuditFold(number, rows[split.rows("train")], rows[split.rows("test")]) for number, split in enumerate(drawn)
        )
    found = AuditRows(dataset, name, is_positive, folds, test)
    _refuse_few(found)
    return found


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
        for side, what in (
            (rows.is_positive, rows.positive),
            (~rows.is_positive, f"other classes than {rows.positive}"),
        ):
            available = int(side[part].sum())
            if available < LEAST_IN_A_PART:
                raise DataError(
                    f"{where} has {available} images of {what}, and an audit needs {LEAST_IN_A_PART}. Use fewer folds, or give "
                    "more images."
                )
