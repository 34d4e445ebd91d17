"""Which Python code may run to build a network: what the user named, and nothing that a file names.

A zoo file, a saved model and the header of a checkpoint can say ``package.module:factory``. They are data, so such a
function is called only if the user named it, or named the file or folder that it is in. A callable of Python's standard
library is never a factory, whoever names it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crossgraft.errors import UntrustedCodeError, UsageError
from crossgraft.types import AllowedCode


@dataclass(frozen=True)
class TrustedCode:
    """What the user named.

    Attributes:
        places: Python files and folders, whose functions may be called.
        functions: ``package.module:factory`` sources that may be called wherever they are.
    """

    places: tuple[Path, ...] = ()
    functions: tuple[str, ...] = ()

    def and_also(self, other: TrustedCode) -> TrustedCode:
        """What either of the two allows."""
        return TrustedCode((*self.places, *other.places), (*self.functions, *other.functions))

    def find(self, module_name: str) -> Location | None:
        """Where the module lies in one of ``places``; None if it is in none of them."""
        locations = (_find_in(path, module_name) for path in self.places)
        return next((location for location in locations if location is not None), None)


@dataclass(frozen=True)
class Location:
    """A module in a place that the user named.

    Attributes:
        place: The file or folder that was named.
        root: The folder that imports start from.
        file: File of the module.
    """

    place: Path
    root: Path
    file: Path

    def holds(self, file: Path) -> bool:
        """Whether ``file`` is the place, or in it; links are followed."""
        return file.resolve().is_relative_to(self.place.resolve())


NOTHING = TrustedCode()
"""Only architectures of timm and torchvision are built."""


def trusted_code(allow_code: AllowedCode | TrustedCode) -> TrustedCode:
    """What ``--code`` (``allow_code=``) names.

    Args:
        allow_code: A Python file, a folder (of modules, or a package), ``package.module:factory``, or several of them.

    Raises:
        UsageError: A file or folder does not exist, or is no Python code.
    """
    if isinstance(allow_code, TrustedCode):
        return allow_code
    if allow_code is None:
        return NOTHING
    paths: list[Path] = []
    functions: list[str] = []
    for item in _items(allow_code):
        path = Path(item)
        if path.is_dir() or (path.is_file() and path.suffix == ".py"):
            paths.append(path.resolve())
        elif isinstance(item, str) and not path.exists() and is_function_name(item):
            functions.append(item)
        else:
            what = "is no Python file" if path.exists() else "does not exist"
            raise UsageError(f"--code {item} {what}. Give a .py file, a folder, or package.module:factory.")
    return TrustedCode(tuple(paths), tuple(functions))


def _items(allow_code: str | Path | Sequence[str | Path]) -> list[str | Path]:
    """Several may also stand in one text, with commas."""
    if isinstance(allow_code, Path):
        return [allow_code]
    if not isinstance(allow_code, str):
        return [part for item in allow_code for part in _items(item)]
    return [allow_code] if Path(allow_code).exists() else [part.strip() for part in allow_code.split(",")]


def is_function_name(text: str) -> bool:
    """Whether ``text`` is written as ``package.module:factory``."""
    module, colon, function = text.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def is_standard_library(module_name: str) -> bool:
    """Whether the module is one of Python's own.

    >>> [is_standard_library(name) for name in ("os", "os.path", "posix", "timm.models")]
    [True, True, True, False]
    """
    top = module_name.partition(".")[0]
    return top in sys.stdlib_module_names or top in sys.builtin_module_names or top == "__main__"


def untrusted_code_error(source: str, *, consent: str) -> UntrustedCodeError:
    """The error for a function that nobody allowed.

    Args:
        source: ``package.module:factory``, as the file says.
        consent: Flag to type, for example ``--code nets.py``.
    """
    return UntrustedCodeError(
        f"The network is built by the function {source}, and calling it runs its code, which nobody has allowed. If you trust "
        f"it, add {consent} (allow_code= in Python)."
    )


def _find_in(path: Path, module_name: str) -> Location | None:
    """The place itself may be the module's file, its package, or a folder that holds one of them."""
    parts = module_name.split(".")
    if path.is_file():
        return Location(path, path.parent, path) if parts == [path.stem] else None
    roots = [path]
    if (path / "__init__.py").is_file() and path.name == parts[0]:
        roots.append(path.parent)
    for root in roots:
        stem = root.joinpath(*parts)
        for file in (stem.with_name(f"{stem.name}.py"), stem / "__init__.py"):
            location = Location(path, root, file)
            if file.is_file() and location.holds(file):
                return location
    return None
