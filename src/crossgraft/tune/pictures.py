"""Small images of what a model was asked, each with its answer: what the page of a fine-tuning lets one look through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

import numpy as np

from crossgraft.data.dataset import Dataset
from crossgraft.data.describe import smallest_thumbnail
from crossgraft.data.rows import ImageRows
from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.tasks import Probabilities, Task
from crossgraft.tune.measuring.evaluation import FoldPredictions
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.tune.record import MOST_PICTURES


class Answered(NamedTuple):
    """One image with its answer.

    Attributes:
        row: Its place in the data, from 0.
        split: Name of its part.
        target: Its true class, or all its labels; None: not known.
        answers: What each model said of it.
    """

    row: int
    split: str
    target: str | None
    answers: tuple[ImageAnswer, ...]


def answers_of_folds(folds: Sequence[FoldPredictions], dataset: Dataset, *, task: Task) -> list[Answered]:
    """What every fold said of its test images; of the only split also of its val images, which come after them."""
    answers: list[Answered] = []
    for fold in folds:
        name = fold.parts.domain or ("test" if fold.parts.fold is None else f"fold {fold.parts.fold}")
        probabilities = fold.test_probabilities(task)
        answers += _answers(fold.parts.test, name, probabilities, fold.decisions(task), dataset, task)
    if len(folds) == 1 and folds[0].parts.fold is None and len(folds[0].val_logits):
        probabilities, decisions = folds[0].on_val(task)
        answers += _answers(folds[0].parts.val, "val", probabilities, decisions, dataset, task)
    return answers


def _answers(
    rows: np.ndarray, split: str, probabilities: Probabilities, decisions: np.ndarray, dataset: Dataset, task: Task
) -> list[Answered]:
    names, targets = dataset.class_names, dataset.targets[rows]
    sure = probabilities[np.arange(len(rows)), decisions] if task.partitions else task.certainty(probabilities)
    right = task.shares_right(decisions, targets) == 1
    return [
        Answered(
            row=int(row),
            split=split,
            target="; ".join(task.names_of(targets[place], names)) or NO_LABEL,
            answers=(
                ImageAnswer(
                    decision="; ".join(task.names_of(decisions[place], names)) or NO_LABEL,
                    certainty=round(float(sure[place]), 4),
                    is_right=bool(right[place]),
                ),
            ),
        )
        for place, row in enumerate(rows)
    ]


def pictures_of_answers(answers: Sequence[Answered], images: ImageRows, *, needed: Iterable[int] = ()) -> list[Thumbnail]:
    """At most ``MOST_PICTURES`` of them as small images; of more, each pair of truth and answer gives as many as it can.

    Args:
        answers: What was said of which image.
        images: The rows that these are of.
        needed: Numbers of images, from 1, that are not left out.
    """
    groups = None if images.groups is None else np.unique(images.groups, return_inverse=True)[1]
    return [
        Thumbnail(
            **smallest_thumbnail(images.read(one.row)),
            row=one.row + 1,
            split=one.split,
            target=one.target,
            group=None if groups is None else int(groups[one.row]) + 1,
            answers=list(one.answers),
        )
        for one in _chosen(answers, frozenset(needed))
    ]


def _chosen(answers: Sequence[Answered], needed: frozenset[int]) -> list[Answered]:
    """Those that are needed, then one of each cell after the other, the surest of a cell first; in the order of the data."""
    if len(answers) <= MOST_PICTURES:
        return list(answers)
    cells: defaultdict[tuple[bool, str | None, tuple[str, ...]], list[Answered]] = defaultdict(list)
    first = [one for one in answers if one.row + 1 in needed]
    for one in sorted(answers, key=lambda one: -one.answers[0].certainty):
        if one.row + 1 not in needed:
            cells[one.split == "val", one.target, tuple(answer.decision for answer in one.answers)].append(one)
    of_test, of_val = ([cell for key, cell in cells.items() if key[0] is is_val] for is_val in (False, True))
    in_turn = chain(chain.from_iterable(zip_longest(*of_test)), chain.from_iterable(zip_longest(*of_val)))
    kept = {one.row for one in [*first, *(one for one in in_turn if one is not None)][:MOST_PICTURES]}
    return [one for one in answers if one.row in kept]
