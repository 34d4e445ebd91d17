"""Networks that a user's own function builds: ``package.module:factory``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from typing import cast

from timm.models import PretrainedCfg
from torch import nn

from crossgraft.errors import UnknownNameError, UsageError

Factory = Callable[..., object]

_imported: dict[str, tuple[Path, ...]] = {}


def find_factory(source: str, folders: Sequence[Path]) -> Factory:
    """Import the function that ``source`` names; modules in ``folders`` can be imported while this runs.

    Importing runs the module's code, as any import does: name only code that you trust.

    Raises:
        UsageError: The module does not exist or fails to import, or the name is not a function.
        UnknownNameError: The module has no such function; the message gives the nearest names.
    """
    module_name, _, function_name = source.partition(":")
    with _importable(folders):
        _refuse_namesake(module_name, folders)
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            places = ", ".join(str(folder) for folder in folders)
            raise UsageError(
                f"Cannot import {module_name} for the source {source}: {error}. Looked among installed packages and in "
                f"{places}."
            ) from error
    _imported[module_name] = tuple(Path(folder).resolve() for folder in folders)
    if not hasattr(module, function_name):
        public = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise UnknownNameError(f"function in {module_name}", function_name, public)
    factory = getattr(module, function_name)
    if not callable(factory):
        raise UsageError(f"{source} is a {type(factory).__name__}, not a function that returns a torch.nn.Module.")
    return factory


def imported_modules() -> dict[str, tuple[Path, ...]]:
    """Modules that ``find_factory`` imported in this process, each with the folders that it was looked for in."""
    return dict(_imported)


def import_modules(modules: Mapping[str, Sequence[Path]]) -> None:
    """Import in another process what ``imported_modules`` says of the first one, from the same folders.

    Raises:
        ImportError: A module is no longer there.
    """
    for name, folders in modules.items():
        with _importable(folders):
            importlib.import_module(name)


@contextmanager
def _importable(folders: Sequence[Path]) -> Generator[None]:
    before = list(sys.path)
    sys.path[:0] = [str(folder) for folder in folders]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _refuse_namesake(module_name: str, folders: Sequence[Path]) -> None:
    """Python keeps one module a name, so the file of a second zoo would silently be the file of the first."""
    loaded = sys.modules.get(module_name.partition(".")[0])
    found = PathFinder.find_spec(module_name.partition(".")[0], [str(folder) for folder in folders])
    if loaded is None or found is None or found.origin is None or not getattr(loaded, "__file__", None):
        return
    if Path(found.origin).resolve() != Path(cast(str, loaded.__file__)).resolve():
        raise UsageError(
            f"Two modules are called {found.name}: {loaded.__file__}, already imported, and {found.origin}. Rename one."
        )


def build_from_factory(factory: Factory, source: str, kwargs: Mapping[str, object], *, random: bool) -> nn.Module:
    """Call the factory.

    Args:
        factory: From ``find_factory``.
        source: For messages.
        kwargs: Passed to it.
        random: Ask for random weights: ``pretrained=False`` is passed to a factory that takes it.

    Raises:
        UsageError: The arguments do not fit, or the result is not a ``torch.nn.Module``.
    """
    signature = inspect.signature(factory)
    if random and "pretrained" in signature.parameters:
        kwargs = {**kwargs, "pretrained": False}
    try:
        signature.bind(**kwargs)
    except TypeError as error:
        raise UsageError(f"{source}{signature} does not take the kwargs {dict(kwargs)}: {error}.") from error
    module = factory(**kwargs)
    if not isinstance(module, nn.Module):
        raise UsageError(f"{source} returned a {type(module).__name__}; it must return a torch.nn.Module.")
    return module


def factory_config(module: nn.Module) -> dict[str, object]:
    """What the network says about its input: ``pretrained_cfg`` or ``default_cfg``, in timm's words."""
    for attribute in ("pretrained_cfg", "default_cfg"):
        config = getattr(module, attribute, None)
        if isinstance(config, PretrainedCfg):
            config = config.to_dict()
        if isinstance(config, Mapping) and config:
            return {str(key): value for key, value in config.items()}
    return {}
