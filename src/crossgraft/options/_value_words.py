"""What may stand as the value of an option, in words for a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from crossgraft.options._option import FromProgram, Option

_SINGLE: Mapping[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    Callable: "a function",
    object: "a value",
}
_SEVERAL: Mapping[Any, str] = {int: "whole numbers", float: "numbers", str: "texts", Path: "paths"}
_OBJECTS: Mapping[str, str] = {
    "AnyScore": "a score of crossgraft.scores",
    "Augmentation": "an Augmentation",
    "BatchTransform": "a BatchTransform",
    "Loss": "a Loss",
    "Method": "a Method",
    "ModelSpec": "a ModelSpec",
    "Module": "a torch.nn.Module",
    "Regularizer": "a Regularizer",
    "Reporter": "a crossgraft.progress.Reporter",
}
"""What only a program has, by the name in the annotation of an option: at run time one class stands for all of them."""


def allowed_values(option: Option, kind: Any) -> str:
    """What a person may give: ``text, a path or a list of texts``.

    Args:
        option: Whose value it is.
        kind: Its type, or a narrower one.
    """
    if option.about.takes is not None and kind == option.type:
        return option.about.takes
    parts = [part for part in parts_of(kind) if part is not NoneType]
    words = list(dict.fromkeys(word for part in parts for word in _words(option, part, parts)))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def parts_of(kind: Any) -> tuple[Any, ...]:
    """The types of a union; a type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _words(option: Option, part: Any, beside: Sequence[Any]) -> list[str]:
    origin = get_origin(part) or part
    if origin is Literal:
        return [f"one of {', '.join(map(str, get_args(part)))}"]
    if origin is FromProgram:
        return [_OBJECTS[name] for name in re.findall(r"\w+", option.annotation) if name in _OBJECTS]
    if origin is Mapping:
        return ["a dict of names and values"]
    if origin is Sequence:
        items = parts_of(get_args(part)[0])
        if len(items) > 1 and {*items} <= {*beside}:
            return ["a list of these"]
        several = [_SEVERAL[item] for item in items if item in _SEVERAL and not (item is int and float in items)]
        several += [
            f"{each.rpartition(' ')[2]}s" for item in items if item is FromProgram for each in _words(option, item, ())
        ]
        return [f"a list of {' or '.join(several)}" if several else "a list"]
    return [_SINGLE[origin]] if origin in _SINGLE else []
