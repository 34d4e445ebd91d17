"""Named tuples of shape-checked modules look at their fields when they are made; jaxtyping's import hook leaves them out."""

from types import ModuleType
from typing import Any, get_type_hints

from jaxtyping import _import_hook

from support.late_checks import jaxtyped
from support.type_checking import typechecked  # also what --jaxtyping-packages names


def check_named_tuples() -> None:
    """From now on, in every module that the hook loads."""
    loader = _import_hook._JaxtypingLoader
    load = loader.exec_module

    def exec_module(self: Any, module: ModuleType) -> None:
        load(self, module)
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__ and is_named_tuple(value):
                check_fields(value)

    loader.exec_module = exec_module


def is_named_tuple(value: type) -> bool:
    return issubclass(value, tuple) and hasattr(value, "_fields")


def check_fields(named_tuple: type) -> None:
    """Types and shapes of all fields together, where it is called; ``_make`` and ``_replace`` do not call it."""
    make: Any = named_tuple.__new__
    make.__annotations__ = get_type_hints(named_tuple)
    named_tuple.__new__ = jaxtyped(make, typechecker=typechecked)
