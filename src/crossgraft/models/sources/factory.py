"""Networks that a user's own function builds: ``package.module:factory``."""

from __future__ import annotations

import importlib
import inspect
import shlex
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import cast

from timm.models import PretrainedCfg
from torch import nn

from crossgraft.errors import UnknownNameError, UntrustedCodeError, UsageError
from crossgraft.models.sources.architecture_arguments import refuse_other_arguments
from crossgraft.models.trusted_code import Location, TrustedCode, is_function_name, is_standard_library, untrusted_code_error

Factory = Callable[..., object]

_imported: dict[str, tuple[Path, ...]] = {}


def locate_factory(source: str, *, trusted: TrustedCode, folders: Sequence[Path] = ()) -> Location | None:
    """Where the function lies among the places that the user named; None for one that is named itself. Imports nothing.

    Raises:
        UntrustedCodeError: Nobody has allowed this function.
        UsageError: It is not the name of a function, or one of Python's own.
    """
    module_name = source.partition(":")[0]
    if not is_function_name(source):
        raise UsageError(f"{source} is not the name of a function. Write package.module:factory.")
    if is_standard_library(module_name):
        raise UsageError(f"{source} belongs to Python itself, which builds no network. Name a function of your own.")
    location = trusted.find(module_name)
    if location is None and source not in trusted.functions:
        suggestion = shlex.quote(_suggest_place(module_name, folders) or source)
        raise untrusted_code_error(source, consent=f"--code {suggestion}")
    return location


def find_factory(source: str, *, trusted: TrustedCode, folders: Sequence[Path] = ()) -> Factory:
    """Import the function that ``source`` names, if the user has allowed it.

    Importing runs the module's code, as any import does, so nothing is imported before it is known to be allowed.

    Args:
        source: ``package.module:factory``.
        trusted: Code that the user named. A function in one of its places must also be defined there: one that the module only
            imports from elsewhere is refused.
        folders: Folders in which the module of a function that is named itself may lie; installed packages come before
            them, so that no file of such a folder stands in for a package.

    Raises:
        UntrustedCodeError: Nobody has allowed this function.
        UsageError: The module does not exist or fails to import, or the name is not a function.
        UnknownNameError: The module has no such function; the message gives the nearest names.
    """
    module_name, _, function_name = source.partition(":")
    location = locate_factory(source, trusted=trusted, folders=folders)
    searched = list(folders) if location is None else [location.root]
    with _importable(searched, first=location is not None):
        _refuse_namesake(module_name, searched)
        try:
            module = importlib.import_module(module_name)
        except (ImportError, SyntaxError) as error:
            looked = ", ".join(str(folder) for folder in searched)
            raise UsageError(
                f"Cannot import {module_name} for the source {source}: {error}. Looked among installed packages and in {looked}."
            ) from error
    _imported[module_name] = _found_in(module, searched)
    if not hasattr(module, function_name):
        public = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise UnknownNameError(f"function in {module_name}", function_name, public)
    factory = getattr(module, function_name)
    if not callable(factory):
        raise UsageError(f"{source} is a {type(factory).__name__}, not a function that returns a torch.nn.Module.")
    _refuse_from_elsewhere(factory, source, location)
    return factory


def _suggest_place(module_name: str, folders: Sequence[Path]) -> str | None:
    """The file of the module as a person would type it, where it lies in one of ``folders``."""
    location = TrustedCode(tuple(folder.resolve() for folder in folders)).find(module_name)
    if location is None:
        return None
    here = Path.cwd().resolve()
    return str(location.file.relative_to(here) if location.file.is_relative_to(here) else location.file)


def _refuse_from_elsewhere(factory: Factory, source: str, location: Location | None) -> None:
    """A function that the module imports from elsewhere is not in the place that the user named."""
    defined_in = str(getattr(inspect.unwrap(factory), "__module__", None))
    file = getattr(sys.modules.get(defined_in), "__file__", None)
    if is_standard_library(defined_in):
        raise UsageError(
            f"{source} is a {type(factory).__name__} of Python's module {defined_in}, which builds no network. Write a "
            "function (def) that builds it."
        )
    if location is not None and (file is None or not location.holds(Path(file))):
        raise UntrustedCodeError(
            f"{source} is defined in {defined_in}, which is not in {location.place.name}. Name the module that defines it, or "
            "write a function (def) that calls it."
        )


def _found_in(module: ModuleType, searched: Sequence[Path]) -> tuple[Path, ...]:
    """The one of ``places`` that the module was imported from; none for what is installed."""
    file = Path(str(module.__file__ or "")).resolve()
    depth = module.__name__.count(".") + (file.name == "__init__.py")
    root = file.parents[min(depth, len(file.parents) - 1)]
    return (root,) if root in {folder.resolve() for folder in searched} else ()


def imported_modules() -> dict[str, tuple[Path, ...]]:
    """Modules that ``find_factory`` imported in this process, each with the folder that it is in; none if it is installed."""
    return dict(_imported)


def import_modules(modules: Mapping[str, Sequence[Path]]) -> None:
    """Import in another process what ``imported_modules`` says of the first one, from the same folders.

    Raises:
        ImportError: A module is no longer there.
    """
    for name, folders in modules.items():
        with _importable(folders, first=True):
            importlib.import_module(name)


@contextmanager
def _importable(folders: Sequence[Path], *, first: bool) -> Generator[None]:
    """Let modules of ``folders`` be imported inside the block, before or after all others of the same name."""
    before = list(sys.path)
    added = [str(folder) for folder in folders]
    sys.path[:] = [*added, *before] if first else [*before, *added]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before


def _refuse_namesake(module_name: str, folders: Sequence[Path]) -> None:
    """Python keeps one module a name, so the file of a second zoo would silently be the file of the first."""
    loaded = sys.modules.get(module_name.partition(".")[0])
    namesake = PathFinder.find_spec(module_name.partition(".")[0], [str(folder) for folder in folders])
    if loaded is None or namesake is None or namesake.origin is None or not getattr(loaded, "__file__", None):
        return
    if Path(namesake.origin).resolve() != Path(cast(str, loaded.__file__)).resolve():
        raise UsageError(
            f"Two modules are called {namesake.name}: {loaded.__file__}, already imported, and {namesake.origin}. Rename one."
        )


def build_from_factory(factory: Factory, source: str, kwargs: Mapping[str, object], *, random: bool) -> nn.Module:
    """Call the factory.

    Args:
        factory: Factory from ``find_factory``.
        source: Source, for messages.
        kwargs: Passed to it.
        random: Ask for random weights: ``pretrained=False`` is passed to a factory that takes it.

    Raises:
        UsageError: The arguments do not fit, or the result is not a ``torch.nn.Module``.
        UnknownNameError: The function only takes an argument as one of any name (``**kwargs``), and it does not shape a network.
    """
    signature = inspect.signature(factory)
    stated = [name for name, parameter in signature.parameters.items() if parameter.kind is not parameter.VAR_KEYWORD]
    if len(stated) < len(signature.parameters):
        # What a function passes on unseen may end in timm.create_model, which also loads weights.
        refuse_other_arguments([name for name in kwargs if name not in stated], where=f"the kwargs of {source}")
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
