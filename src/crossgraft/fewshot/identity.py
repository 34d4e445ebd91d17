"""What a head is, in values that can be hashed: two heads of one name may have other options."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from crossgraft.paths import is_file, read_whole


def identity_of_head(head: Any) -> list[Any]:
    """Class and parameters; of arrays, and of files that parameters name, a digest.

    Args:
        head: A scikit-learn classifier, unfitted.
    """
    of_parameters = {name: _identity(value) for name, value in sorted(head.get_params(deep=False).items())}
    return [f"{type(head).__module__}.{type(head).__qualname__}", of_parameters]


def _identity(value: Any) -> Any:
    if isinstance(value, str | Path) and is_file(Path(value)):
        return [str(value), hashlib.sha256(read_whole(Path(value))).hexdigest()]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return [[str(name), _identity(part)] for name, part in cast("Mapping[Any, Any]", value).items()]
    if isinstance(value, list | tuple):
        return [_identity(part) for part in cast("Sequence[Any]", value)]
    if hasattr(value, "get_params"):
        return identity_of_head(value)
    if hasattr(value, "__array__"):
        array = np.ascontiguousarray(value)
        if array.dtype != np.object_:
            return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    return getattr(value, "__qualname__", type(value).__qualname__)  # of a function its own name
