"""What a head is, in values that can be hashed: two heads of one name may have other options."""

from __future__ import annotations

import hashlib
import pickle
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, cast

import numpy as np

from crossgraft.choice import as_array
from crossgraft.paths import is_file, read_whole


def identity_of_head(head: Any) -> list[Any]:
    """Class and parameters; of arrays, and of files that parameters name, a digest; of functions what they compute.

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
        array = as_array(value)
        if array.dtype != np.object_:
            return [array.dtype.str, list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(value, FunctionType):
        return _identity_of_function(value)
    try:
        return hashlib.sha256(pickle.dumps(value)).hexdigest()
    except Exception:  # objects raise many kinds
        return uuid.uuid4().hex  # nothing tells it from another, so that no earlier part is taken for its own


def _identity_of_function(function: FunctionType) -> list[Any]:
    """What it computes, and with which values: functions of one place have one name, lambdas of a line for example."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    held = [
        _identity_of_code(value.__code__) if isinstance(value, FunctionType) else _identity(value)  # it may hold itself
        for value in (function.__defaults__, function.__kwdefaults__, *cells)
    ]
    return [function.__module__, function.__qualname__, _identity_of_code(function.__code__), held]


def _identity_of_code(code: CodeType) -> list[Any]:
    constants = [_identity_of_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), list(code.co_names), constants]
