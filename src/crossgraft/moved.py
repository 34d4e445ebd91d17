"""Public names that moved stay where they were for one release, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any


def moved(package: str, names: Sequence[str], *, to: str = "crossgraft") -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that ``names`` have left for ``to``."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        warnings.warn(
            f"{package}.{name} goes with the next release: write `from {to} import {name}`.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(to), name)

    return find
