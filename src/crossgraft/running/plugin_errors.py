"""Errors of plug-ins that other packages bring: whose code raised, so that nobody looks for the fault here."""

from __future__ import annotations

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from crossgraft.compute import is_out_of_memory
from crossgraft.errors import CrossgraftError, DivergedError, UsageError
from crossgraft.registry import BROUGHT, IN_USE, Brought
from crossgraft.words.formatting import joined


@contextmanager
def naming_plugins() -> Generator[None]:
    """Name the plug-in of another package whose code raises; other errors that it may be behind say which are in use.

    Raises:
        UsageError: In the place of whatever such code raises, also where it ends the program.
    """
    is_outermost = not _open
    if is_outermost:
        IN_USE.clear()
    _open.append(None)
    try:
        yield
    except DivergedError as error:
        if not is_outermost or not IN_USE:
            raise
        raise DivergedError(f"{error} {_those_in_use()}") from error
    except CrossgraftError:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, Exception) and is_out_of_memory(error):
            raise  # no fault of its, and told otherwise
        if (found := _who_raised(error)) is not None:
            raise UsageError(found) from error
        if is_outermost and IN_USE:
            error.add_note(_those_in_use())
        raise
    finally:
        _open.pop()


_open: list[None] = []
"""One for each block that is open."""


def _those_in_use() -> str:
    return f"In use: {joined([str(plugin) for plugin in IN_USE.values()])}. Does it happen without, too?"


def _who_raised(error: BaseException) -> str | None:
    """Which plug-in raised, what and where; None where this package did, or nobody knows who."""
    packages = {plugin.module.partition(".")[0] for plugin in BROUGHT} - {"crossgraft"}
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        module = str(frame.f_globals.get("__name__", ""))
        package = module.partition(".")[0]
        if package == "crossgraft":
            return None
        if package in packages:
            plugin = max(
                (each for each in BROUGHT if each.module.partition(".")[0] == package), key=lambda each: _fits(each, frame)
            )
            message = " ".join(str(error).split())
            cause = f"{type(error).__name__}{f': {message}' if message else ''}"
            file = Path(frame.f_code.co_filename).name
            return (
                f"{str(plugin)[0].upper()}{str(plugin)[1:]} raised {cause} "
                f"({file}, line {line}). Mend or uninstall {plugin.origin}, or leave {plugin.name} out."
            )
    return None


def _fits(plugin: Brought, frame: FrameType) -> tuple[bool, bool, bool]:
    """How well a plug-in fits the code that raised, of those of its package: the largest does best."""
    is_module = plugin.module == frame.f_globals.get("__name__")
    is_named = frame.f_code.co_qualname.partition(".")[0] in (plugin.attribute, plugin.name)
    return is_module and is_named, (plugin.kind, plugin.name) in IN_USE, is_module
