"""The only place that handles packages which may not be installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from crossgraft.errors import MissingExtraError


def require(module: str, *, extra: str, needed_for: str) -> ModuleType:
    """Import an optional package, or say which extra brings it.

    Args:
        module: Name as in ``import module``.
        extra: The crossgraft extra that installs it.
        needed_for: What the user was trying to do, in the user's words.

    Raises:
        MissingExtraError: The package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{needed_for} needs the package {module}, which is not installed. Run: pip install 'crossgraft[{extra}]'"
        ) from error
