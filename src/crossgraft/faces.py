"""The face of a package: its public names, each loaded on first use, and old names with a warning for one release.

A package writes its names once, as imports below ``if TYPE_CHECKING:`` of its ``__init__``. Type checkers and import contracts
read them there, and so does this module; so that importing a package costs nothing but the names that are used.
"""

from __future__ import annotations

import ast
import importlib
import sys
import warnings
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from crossgraft.moved import MOVED


def lazy_face(package: str, *, otherwise: Callable[[str], Any] | None = None) -> None:
    """Let ``package`` find its names on first use; call it last in its ``__init__``.

    Args:
        package: Its ``__name__``.
        otherwise: Finds names that the package does not write, before folders of that name; raises ``AttributeError`` for those
            that are none.
    """
    module = sys.modules[package]
    homes = _written_names(Path(str(module.__file__)))
    moved = _moved_from(package)

    def find(name: str) -> Any:
        if name in homes:
            home, original = homes[name]
            # What a dependency says, when it is imported, of bars that are not used here, in a notebook without widgets.
            warnings.filterwarnings("ignore", message="IProgress not found")
            value = getattr(importlib.import_module(home), original)
            module.__dict__[name] = value
            return value
        if name in moved:
            return _warned(package, name, *moved[name])
        try:
            if otherwise is not None and not name.startswith("_"):
                return otherwise(name)
        except AttributeError:
            if (folder := sys.modules.get(f"{package}.{name}")) is not None:
                return folder
            raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    module.__dict__.update(__getattr__=find, __all__=list(homes), _homes=frozenset(homes), _is_open=otherwise is not None)
    module.__class__ = _Face


class _Face(ModuleType):
    """A package whose names stay what they are when a module of the same name is imported (``predict``)."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, ModuleType) and (name in self._homes or self._is_open):
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        """What completion offers: public names, without the imports that find them."""
        return sorted({name for name in super().__dir__() if name.startswith("__")} | self._homes)


def _written_names(file: Path) -> dict[str, tuple[str, str]]:
    """Name → (module, name there) of the imports below ``if TYPE_CHECKING:``."""
    tree = ast.parse(file.read_bytes())
    blocks = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname: (str(node.module), alias.name) for node in imports for alias in node.names if alias.asname is not None}


def find_moved_packages() -> None:
    """Let packages of earlier versions that are gone be imported; their names warn."""
    sys.meta_path.append(_MovedPackages())


class _MovedPackages(MetaPathFinder, Loader):
    """Comes after all other finders, so that it is asked for what is not there."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        package, moved = module.__name__, _moved_from(module.__name__)

        def find(name: str) -> Any:
            if name in moved:
                return _warned(package, name, *moved[name])
            raise AttributeError(f"module {package!r} has no attribute {name!r}")

        module.__dict__["__getattr__"] = find


def _moved_from(package: str) -> dict[str, tuple[str, str]]:
    """Old name → (module of today, name of today)."""
    spelled = [(home, *name.partition("=")) for home, names in MOVED.get(package, {}).items() for name in names.split()]
    return {old: (home, new or old) for home, old, _, new in spelled}


def _warned(package: str, name: str, home: str, now: str) -> Any:
    warnings.warn(
        f"{package}.{name} goes with the next release: write `from {home} import {now}`.", DeprecationWarning, stacklevel=3
    )
    return getattr(importlib.import_module(home), now)
