"""A named set of plug-ins, open to other packages through entry points.

A plug-in is added by one explicit line in the package that owns the registry, or by an installed distribution that
declares an entry point in the registry's group::

    [project.entry-points."crossgraft.scores"]
    my_score = "my_package.my_score:my_score"
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from crossgraft.errors import CrossgraftWarning, UnknownNameError, UsageError

T = TypeVar("T")
_PACKAGE = Path(__file__).parent


class Brought(NamedTuple):
    """A plug-in of another package.

    Attributes:
        kind: What it is.
        name: Its name.
        origin: The distribution that brought it.
        module: Where its code is.
        attribute: Its name there.
    """

    kind: str
    name: str
    origin: str
    module: str
    attribute: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name} of the package {self.origin}"


BROUGHT: list[Brought] = []
"""Plug-ins of other packages that were loaded in this process."""
IN_USE: dict[tuple[str, str], Brought] = {}
"""Those of them that were looked up by name."""


class Registry(Generic[T]):
    """Names to plug-ins of one kind, in the order they were added.

    Args:
        kind: What one entry is called in messages, for example ``score``.
        group: Entry-point group that other packages use; read once, on the first look-up.
        plugin_type: Every entry must be an instance of it.
        rooms: Where each room of this package (a folder) shows its own: module and name, such as ``options:COMMAND``; one
            plug-in with a ``name``, or several. None: the owner adds them.
        order: Sorts those of this package; None: as they came.
        named_by: Attribute of an entry that holds its name, where it has one.
        facts: What a class of another package has to say of itself beside that, so that it can be listed; such a class is a
            dataclass. Empty: nothing.
    """

    def __init__(
        self,
        kind: str,
        *,
        group: str,
        plugin_type: type[T],
        rooms: str | None = None,
        order: Callable[[T], Any] | None = None,
        named_by: str = "name",
        facts: Sequence[str] = ("title",),
    ) -> None:
        self.kind = kind
        self.group = group
        self.plugin_type = plugin_type
        self._plugins: dict[str, T] = {}
        self._origins: dict[str, str] = {}
        self._broken: dict[str, str] = {}
        self._brought: dict[str, Brought] = {}
        self._is_complete = False
        self._rooms = rooms
        self._order = order
        self._named_by = named_by
        self._facts = facts

    def add(self, name: str, plugin: T, *, origin: str = "crossgraft") -> T:
        """Register ``plugin``; a name can be taken once.

        Raises:
            UsageError: The name is taken, or the object is of the wrong type.
        """
        if not isinstance(plugin, self.plugin_type):
            raise UsageError(
                f"The {self.kind} {name} from {origin} is a {type(plugin).__name__}, expected {self.plugin_type.__name__}."
            )
        if name in self._plugins:
            raise UsageError(
                f"The {self.kind} {name} from {origin} is already registered by {self._origins[name]}. Rename one of them."
            )
        self._plugins[name] = plugin
        self._origins[name] = origin
        return plugin

    def get(self, name: str, *, room: str = "") -> T:
        """Look up one plug-in; arguments as in ``find``.

        Raises:
            UnknownNameError: With the nearest names.
            UsageError: The package that brings it cannot be imported.
        """
        plugin = self.find(name, room=room)
        if plugin is None and name in self._broken:
            raise UsageError(f"The {self.kind} {name} cannot be used: {self._broken[name]}. Mend or uninstall that package.")
        if plugin is None:
            raise UnknownNameError(self.kind, name, self._plugins)
        if name in self._brought:
            IN_USE[self.kind, name] = self._brought[name]
        return plugin

    def find(self, name: str, *, room: str = "") -> T | None:
        """One plug-in; None where there is none of this name.

        Args:
            name: Its name.
            room: The room of this package that is looked into first; where it has one of this name, others are not imported.
        """
        if not self._is_complete and self._rooms is not None and room:
            for plugin in _shown_by_room(room, *self._rooms.split(":")):
                if plugin.name == name:
                    return plugin
        self._complete()
        return self._plugins.get(name)

    def names(self) -> list[str]:
        """All names, built-in ones first."""
        self._complete()
        return list(self._plugins)

    def origin(self, name: str) -> str:
        """The distribution that brought ``name``."""
        if self.find(name) is None:
            self.get(name)  # raises
        return self._origins[name]

    def __iter__(self) -> Iterator[tuple[str, T]]:
        self._complete()
        return iter(self._plugins.items())

    def __contains__(self, name: object) -> bool:
        self._complete()
        return name in self._plugins

    def _complete(self) -> None:
        """All rooms and entry points, once."""
        if self._is_complete:
            return
        self._is_complete = True
        for plugin in () if self._rooms is None else _shown_by_rooms(*self._rooms.split(":")):
            self.add(plugin.name, plugin)
        if (order := self._order) is not None:
            self._plugins = dict(sorted(self._plugins.items(), key=lambda item: order(item[1])))
        for entry_point in entry_points(group=self.group):
            origin = entry_point.dist.name if entry_point.dist else entry_point.value
            try:
                plugin = cast(T, entry_point.load())
                self._refuse_unfit(entry_point.name, plugin, origin)
                self.add(entry_point.name, plugin, origin=origin)
                brought = Brought(self.kind, entry_point.name, origin, entry_point.module, entry_point.attr)
                BROUGHT.append(brought)
                self._brought[entry_point.name] = brought
            except UsageError as error:  # of another type, or under a name that is taken
                self._leave_out(entry_point.name, origin, str(error).removesuffix("."))
            except (Exception, SystemExit) as error:  # whatever the code of another package raises
                why = f"{origin} brings it, and cannot be imported: {type(error).__name__}: {error}"
                self._leave_out(entry_point.name, origin, why)

    def _refuse_unfit(self, name: str, plugin: object, origin: str) -> None:
        """A class without what every list shows of it, or anything that records would know under another name."""
        where = f"The {self.kind} {name} from {origin}"
        called = getattr(plugin, self._named_by, None)
        if self.plugin_type is type:
            lacks = [fact for fact in (self._named_by, *self._facts) if not hasattr(plugin, fact)]
            if lacks:
                raise UsageError(f"{where} has no {', no '.join(lacks)}. See CONTRIBUTING for what such a class says of itself.")
            if self._facts and not dataclasses.is_dataclass(plugin):
                raise UsageError(f"{where} is no dataclass, so it has no options. Put @dataclass above its class.")
        if isinstance(called, str) and called != name:
            raise UsageError(f"{where} calls itself {called}. Give its entry point that name.")

    def _leave_out(self, name: str, origin: str, why: str) -> None:
        self._broken[name] = why
        warnings.warn(f"The {self.kind} {name} is left out: {why}. Mend or uninstall {origin}.", CrossgraftWarning, stacklevel=2)


def _shown_by_rooms(module: str, name: str) -> Iterator[Any]:
    """What every folder of this package shows as ``name`` in its file ``module``; nothing else of the folder is imported."""
    for folder in pkgutil.iter_modules([str(_PACKAGE)]):
        if folder.ispkg:
            yield from _shown_by_room(folder.name, module, name)


def _shown_by_room(room: str, module: str, name: str) -> tuple[Any, ...]:
    """What one folder shows; nothing where there is no such folder, or it has no such file."""
    if not room.isidentifier() or not (_PACKAGE / room / f"{module}.py").is_file():
        return ()
    shown = getattr(importlib.import_module(f"crossgraft.{room}.{module}"), name, ())
    return cast("tuple[Any, ...]", shown) if isinstance(shown, tuple) else (shown,)
