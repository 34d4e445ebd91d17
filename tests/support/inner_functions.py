"""Functions inside functions are decorated by jaxtyping's import hook each time they are defined, for some ten milliseconds."""

import functools
from collections.abc import Callable
from typing import Any

import jaxtyping
from jaxtyping import _decorator

INNER = "<locals>"
"""In the qualified name of a function that another one defines."""


def compile_checks_once() -> None:
    """From now on: their checks are compiled when they are defined first, and left out where all checks are."""
    _decorator._make_fn_with_signature = remember_inner(_decorator._make_fn_with_signature)
    _decorator._apply_typechecker = functools.cache(_decorator._apply_typechecker)
    _decorator._destring_annotation = remember_found(_decorator._destring_annotation)
    decorate = jaxtyping.jaxtyped

    def jaxtyped(*, typechecker: Callable) -> Callable:
        def decorated(function: Any) -> Any:
            is_inner = INNER in getattr(function, "__qualname__", "")
            left_out = is_inner and jaxtyping.config.jaxtyping_disable
            return function if left_out else decorate(function, typechecker=typechecker)

        return decorated

    jaxtyping.jaxtyped = jaxtyped


def remember_inner(make: Callable) -> Callable:
    """What is made of a signature depends on nothing but the arguments."""
    made = functools.cache(make)

    def make_once(name: str, qualname: str, module: str, signature: Any, output: bool) -> Any:
        try:
            hash(signature)
        except TypeError:  # a default value that has no hash
            return make(name, qualname, module, signature, output)
        return made(name, qualname, module, signature, output)

    return make_once


def remember_found(destring: Callable) -> Callable:
    """An annotation that is written as text means the same in all of a module; what is not found yet is looked for again."""
    found: dict[tuple[str, int], tuple[Any, dict]] = {}

    def destring_once(annotation: Any, names: dict) -> Any:
        if not isinstance(annotation, str):
            return destring(annotation, names)
        key = annotation, id(names)
        if key not in found:
            meaning = destring(annotation, names)
            if meaning is Any:
                return meaning
            found[key] = meaning, names  # kept, so that no other module takes its place
        return found[key][0]

    return destring_once
