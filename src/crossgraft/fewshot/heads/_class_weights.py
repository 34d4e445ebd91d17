"""A vector for each class from elsewhere, for example the features of its name: what Tip- and Meta-Adapter start from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

from crossgraft.errors import DataError
from crossgraft.fewshot.heads._head import Prototypes, unit_rows
from crossgraft.paths import shortened

ClassWeights = np.ndarray | Mapping[Any, Any] | str | Path | None
"""(C, d) in the order of the sorted labels; label → (d,); or a file (npz, safetensors) with an array (d,) for each label."""


def class_weights_of(given: ClassWeights, labels: np.ndarray, prototypes: Prototypes) -> Prototypes:
    """(C, d) of unit length: the given ones, or the prototypes where there are none.

    Args:
        given: What the user has.
        labels: (C,) sorted labels of the task.
        prototypes: (C, d) class means, for the width, the number type, and where nothing is given.

    Raises:
        DataError: The file cannot be read; a class has no vector; the width is another one; a value is no finite number; or a
            vector is all zeros.
    """
    if given is None:
        return unit_rows(prototypes).rows
    if isinstance(given, str | Path):
        given = _read(Path(given))
    vectors = _rows_of(given, labels) if isinstance(given, Mapping) else _numbers(given, "")
    if vectors.shape != tuple(prototypes.shape):
        raise DataError(
            f"Class weights have the shape {vectors.shape}, but there are {len(prototypes)} classes and features of width "
            f"{prototypes.shape[1]}. Give one vector of that width per class, from the network that gave the features."
        )
    weights = torch.from_numpy(vectors).to(prototypes.dtype)
    bad = [str(label) for label, row in zip(labels, weights, strict=True) if not bool(row.isfinite().all())]
    if bad:
        raise DataError(f"The class weights of {', '.join(bad)} hold NaN or infinite values.")
    zeros = [str(label) for label, row in zip(labels, weights, strict=True) if not bool(row.any())]
    if zeros:
        raise DataError(
            f"The class weights of {', '.join(zeros)} are all zeros, which have no direction. Give each class a vector of its "
            "own."
        )
    return unit_rows(weights).rows


def _read(path: Path) -> Mapping[Any, Any]:
    try:
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return {name: arrays[name] for name in arrays.files}
        return load_file(path)
    except FileNotFoundError:
        raise DataError(f"There is no file of class weights at {path}. Give an npz or safetensors file.") from None
    except Exception as error:  # both readers raise many kinds
        reason = " ".join(str(error).split())
        raise DataError(
            f"Class weights cannot be read from {path.name}: {shortened(reason)}. Give an npz or safetensors file with an array "
            "of numbers for each class, named by the class."
        ) from error


def _rows_of(given: Mapping[Any, Any], labels: np.ndarray) -> np.ndarray:
    by_name = {str(key): key for key in given}
    # 0.0 and 0 are one label with two names; of names there are only those in a file
    keys = [label if label in given else by_name.get(str(label)) for label in labels.tolist()]
    missing = [str(label) for label, key in zip(labels, keys, strict=True) if key is None]
    if missing:
        known = ", ".join(list(by_name)[:5])
        raise DataError(
            f"No class weights for {', '.join(missing[:5])}{' …' if len(missing) > 5 else ''}; there are some for {known}"
            f"{' …' if len(by_name) > 5 else ''}. Give one vector per class of the task."
        )
    rows = [_numbers(given[key], f" of {key}") for key in keys]
    if len({row.shape for row in rows}) > 1:
        raise DataError("Class weights differ in their shapes. Give vectors of one width.")
    return np.stack(rows)


def _numbers(given: Any, whose: str) -> np.ndarray:
    """float64, to which every number type of weights goes without loss; of parameters of a network the values."""
    if isinstance(given, torch.Tensor):
        return given.detach().to("cpu", torch.float64).numpy()
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:  # the last by tensors in a list
        reason = shortened(" ".join(str(error).split()))
        raise DataError(
            f"The class weights{whose} are no array of numbers: {reason}. Give a vector of numbers per class."
        ) from error
