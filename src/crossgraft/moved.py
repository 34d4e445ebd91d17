"""Public verbs that moved to ``crossgraft`` itself stay where they were for one release, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any


def moved_to_the_top(package: str, names: Sequence[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that ``names`` have left."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(
            f"{package}.{name} goes with the next release: write `from crossgraft import {name}`.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module("crossgraft"), name)

    return find
