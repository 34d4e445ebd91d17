"""One column per class or label: how a metric of two classes becomes one of many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from crossgraft.errors import DataError, NotApplicable
from crossgraft.tasks import task_of

BinaryMatrix = Bool[np.ndarray, "num_samples num_classes"]
Scores = Float[np.ndarray, "num_samples num_classes"] | Float[np.ndarray, " num_samples"]
Classes = Int[np.ndarray, " num_samples"] | Bool[np.ndarray, " num_samples"]
Marks = Int[np.ndarray, "num_samples num_classes"] | Bool[np.ndarray, "num_samples num_classes"]


@dataclass(frozen=True)
class Columns:
    """Which classes or labels count on these images, and which do not.

    Attributes:
        truth: One column per class: whether the image is of this class.
        counted: Columns that a mean is over.
        names: Names of all columns.
    """

    truth: BinaryMatrix
    counted: list[int]
    names: list[str]

    @property
    def left_out(self) -> list[str]:
        """Names of the columns that do not count."""
        return [name for column, name in enumerate(self.names) if column not in set(self.counted)]


def as_columns(values: Classes | Marks, num_classes: int) -> BinaryMatrix:
    """One class per image becomes one column per class; 0/1 for every label stays as it is."""
    return task_of(values).marks(values, num_classes)


def counted_columns(
    truth: BinaryMatrix, class_names: Sequence[str] | None, *, metric: str, needs_both: bool
) -> Columns:
    """The columns with images that have the class and, where the metric needs them, images that have not.

    Raises:
        DataError: The number of names is not that of the columns.
        NotApplicable: No column counts.
    """
    num_images, num_columns = truth.shape
    names = (
        [str(column) for column in range(num_columns)] if class_names is None else [str(name) for name in class_names]
    )
    if len(names) != num_columns:
        raise DataError(f"There are {len(names)} class names for {num_columns} classes; they must match.")
    positives = truth.sum(axis=0)
    counts = (positives > 0) & ((positives < num_images) | (not needs_both))
    if not counts.any():
        everything = [name for name, number in zip(names, positives, strict=True) if number]
        what = f"all {num_images} are of {' and '.join(everything)}" if everything else f"none of {num_images} is"
        other = "images with and without a class" if needs_both else "images of a class"
        raise NotApplicable(f"{metric} needs {other}; {what}.")
    return Columns(truth, np.flatnonzero(counts).tolist(), names)
