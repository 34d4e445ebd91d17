"""Public names that moved or were renamed stay where they were for one release, with a warning."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def moved(
    package: str, names: Sequence[str] = (), *, to: str = "crossgraft", renamed: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package that ``names`` have left for ``to``.

    Args:
        package: Name of the package.
        names: Names that are now in ``to``.
        to: Name of the package that has them now.
        renamed: Old name → new name in ``package`` itself.
    """
    places = {name: (to, name) for name in names} | {old: (package, new) for old, new in (renamed or {}).items()}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, now = places[name]
        warnings.warn(
            f"{package}.{name} goes with the next release: write `from {home} import {now}`.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(home), now)

    return find
