"""Keep from the terminal what other libraries remark about a file: what matters of it is an error or a notice of our own."""

from __future__ import annotations

import ctypes
import logging
import threading
import warnings
from functools import cache
from types import TracebackType
from typing import Any, cast

from PIL import Image

_LIBRARIES = ("PIL", "tifffile", "pydicom", "nibabel")
_LOGGERS = (
    "PIL.Image", "PIL.ImageFile", "PIL.PngImagePlugin", "PIL.TiffImagePlugin", "tifffile", "nibabel.global",
    "pydicom", "pydicom.pixels.decoders.base", "pydicom.pixels.utils",
)  # fmt: skip


class _Muffle(logging.Filter):
    """Lets nothing of these libraries pass in a thread that is in a quiet block, and everything elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = threading.local()

    def is_on(self) -> bool:
        return getattr(self.blocks, "open", 0) > 0

    def filter(self, record: logging.LogRecord) -> bool:
        return not self.is_on()

    def match(self, module: str) -> bool:
        """As a pattern of ``warnings``: whether the warnings of this module are to be ignored now."""
        return self.is_on() and module.partition(".")[0] in _LIBRARIES


_muffle = _Muffle()
_IGNORE = ("ignore", None, Warning, _muffle, 0)
_lock = threading.Lock()
_num_blocks = 0
_libtiff_said: int | None = None  # the address of what libtiff called for errors before
for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_muffle)


class quiet_libraries:  # noqa: N801 - read as `with quiet_libraries():`
    """Ignore what the libraries that decode remark in this block: warnings and log messages of this thread, lines of libtiff.

    Images are decoded in threads, while the list of warning filters belongs to the process: ``warnings.catch_warnings`` in
    several threads would restore the list that another one had saved. So one entry is put into the list, and taken out
    again when no block is open, and that entry asks which thread is speaking.
    """

    def __enter__(self) -> None:
        """Add the filter, if it is not the first."""
        global _libtiff_said, _num_blocks
        _muffle.blocks.open = getattr(_muffle.blocks, "open", 0) + 1
        with _lock:
            _num_blocks += 1
            if _num_blocks == 1:
                _libtiff_said = _set_libtiff_handler(None)
            filters = cast("list[Any]", warnings.filters)
            if filters[:1] != [_IGNORE]:
                _remove(filters)
                filters.insert(0, _IGNORE)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Take the filter out, if nobody else needs it."""
        global _num_blocks
        _muffle.blocks.open -= 1
        with _lock:
            _num_blocks -= 1
            if _num_blocks == 0:
                _set_libtiff_handler(_libtiff_said)
                _remove(cast("list[Any]", warnings.filters))


def _remove(filters: list[Any]) -> None:
    if _IGNORE in filters:
        filters.remove(_IGNORE)


def _set_libtiff_handler(address: int | None) -> int | None:
    """What Pillow's libtiff calls to print an error, None for nothing; returns what it was. Pillow raises the error, too."""
    setter = _libtiff_setter()
    return None if setter is None else setter(address)


@cache
def _libtiff_setter() -> Any:
    """The function of the library that Pillow has loaded; None where it is not to be found (Windows: it is built in)."""
    try:
        setter = ctypes.CDLL(str(getattr(Image.core, "__file__", ""))).TIFFSetErrorHandler
    except (OSError, AttributeError):
        return None
    setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
    return setter
