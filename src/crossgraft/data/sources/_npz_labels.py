"""What label arrays of an .npz file mean, and how their numbers are called."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.data.sources._npz_arrays import NpzArrays
from crossgraft.errors import DataError

CLASS_KEYS = ("classes", "class_names")


def one_class_each(labels: np.ndarray, label_names: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """One-hot rows of one array become classes; several arrays that the user named stay several labels."""
    if labels.ndim == 1 or label_names or not (labels.sum(axis=1) == 1).all():
        return labels, ()
    notice = f"Each row of labels has exactly one 1 in its {labels.shape[1]} columns, so they are read as classes, one per image."
    return labels.argmax(axis=1), (notice,)


def names_of_numbers(arrays: NpzArrays, labels: np.ndarray) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """Names of the label numbers, if the file has them, and a notice about names without images."""
    key = arrays.first_of(CLASS_KEYS)
    if key is None or labels.dtype.kind not in "iu":
        return None, ()
    names = tuple(str(name) for name in arrays.read(key).ravel())
    if labels.ndim == 2:
        if len(names) != labels.shape[1]:
            raise DataError(
                f"The labels of {arrays.name} have {labels.shape[1]} columns, but its array {key} holds {len(names)} names. "
                "Save one name per column."
            )
        return names, ()
    if labels.min() < 0 or labels.max() >= len(names):
        raise DataError(
            f"The labels of {arrays.name} go from {labels.min()} to {labels.max()}, but its array {key} names the "
            f"classes 0 to {len(names) - 1}. Labels must be places in {key}."
        )
    unused = [name for number, name in enumerate(names) if number not in set(labels.tolist())]
    notices = (f"No image of the classes {', '.join(unused)} in the rows used.",) if unused else ()
    return names, notices
