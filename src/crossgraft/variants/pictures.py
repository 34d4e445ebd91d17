"""The test images with what each variant said of them: for looking at two ways to fine-tune side by side."""

from __future__ import annotations

import csv
from collections.abc import Sequence

import numpy as np

from crossgraft.data.dataset import Dataset
from crossgraft.errors import DataError
from crossgraft.records.base import ImageAnswer
from crossgraft.tune.pictures import Answered
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.variants.study import DoneTraining
from crossgraft.words.visible import csv_rows

MOST_BESIDE = 4
"""Variants whose answers stand beside each other, the best first."""


def answers_of_variants(done: Sequence[DoneTraining], order: Sequence[str], dataset: Dataset) -> list[Answered]:
    """What the best variants said of every test image, each by its first training that ended with a model.

    Args:
        done: All trainings.
        order: Names of variants, the best first.
        dataset: The rows that were tested.

    Raises:
        DataError: A ``predictions.csv`` is damaged.
    """
    first = {each.variant.name: each for each in reversed(done) if each.record is not None}
    shown = [first[name] for name in order if name in first][:MOST_BESIDE]
    tables = [_rows(each) for each in shown]
    return [
        Answered(
            row=int(row) - 1,
            split=of_row[0]["split"],
            target=of_row[0]["target"] or NO_LABEL,
            answers=tuple(_answer(each.variant.name, said, dataset) for each, said in zip(shown, of_row, strict=True)),
        )
        for row in (tables[0] if tables else {})
        for of_row in [[table[row] for table in tables]]
    ]


def _rows(done: DoneTraining) -> dict[str, dict[str, str]]:
    path = done.folder / "predictions.csv"
    try:
        _, rows = csv_rows(path.read_bytes().decode("utf-8"))
        return {row["row"]: row for row in rows}
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise DataError(f"{path} is damaged: {error}. Run the command again to rewrite it.") from error


def _answer(variant: str, row: dict[str, str], dataset: Dataset) -> ImageAnswer:
    stated = [float(row[f"probability {name}"]) for name in dataset.class_names]
    if dataset.task.partitions:
        certainty = stated[dataset.class_names.index(row["decision"])]
    else:
        certainty = float(dataset.task.certainty(np.asarray([stated]))[0])
    return ImageAnswer(
        model=variant,
        decision=row["decision"] or NO_LABEL,
        certainty=round(certainty, 4),
        is_right=row["decision"] == row["target"],
    )
