"""Open image files with Pillow's own classes for them.

``Image.open`` compares with a number of pixels that belongs to the process, and warns or raises; here the memory decides (see
``room_for``). It also tries formats that are not read here.
"""

from __future__ import annotations

import ctypes
import importlib
import io
import logging
import threading
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from typing import Any, cast

from PIL import Image, features
from PIL.BmpImagePlugin import BmpImageFile, DibImageFile
from PIL.ImageFile import ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.TiffImagePlugin import TiffImageFile

_LIBRARIES = ("PIL", "tifffile", "pydicom", "nibabel")
_LOGGERS = (
    "PIL.Image", "PIL.ImageFile", "PIL.PngImagePlugin", "PIL.TiffImagePlugin", "tifffile", "nibabel.global",
    "pydicom", "pydicom.pixels.decoders.base", "pydicom.pixels.utils",
)  # fmt: skip


class _Muffle(threading.local):
    """Lets nothing of these libraries pass in a thread that is in a quiet block, and everything elsewhere."""

    num_blocks = 0  # in which this thread is

    def filter(self, record: logging.LogRecord) -> bool:
        """As a filter of logs."""
        return self.num_blocks == 0

    def match(self, module: str) -> bool:
        """As a pattern of ``warnings``: whether the warnings of this module are to be ignored now."""
        return self.num_blocks > 0 and module.partition(".")[0] in _LIBRARIES


_muffle = _Muffle()
_IGNORE = ("ignore", None, Warning, _muffle, 0)
_lock = threading.Lock()
_num_blocks = 0
_libtiff_handler: int | None = None  # the address of what libtiff called for errors before
for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_muffle)


@contextmanager
def quiet_libraries() -> Generator[None]:
    """Ignore what the libraries that decode remark in this block: warnings and log messages of this thread, lines of libtiff.

    Images are decoded in threads, while the list of warning filters belongs to the process: ``warnings.catch_warnings`` in
    several threads would restore the list that another one had saved. So one entry is put into the list, and taken out
    again when no block is open, and that entry asks which thread is speaking.
    """
    global _libtiff_handler, _num_blocks
    _muffle.num_blocks += 1
    with _lock:
        _num_blocks += 1
        if _num_blocks == 1:
            _libtiff_handler = _libtiff_setter()(None)
        if warnings.filters[:1] != [_IGNORE]:
            _let_warnings_pass()
            cast("list[Any]", warnings.filters).insert(0, _IGNORE)
    try:
        yield
    finally:
        _muffle.num_blocks -= 1
        with _lock:
            _num_blocks -= 1
            if _num_blocks == 0:
                _libtiff_setter()(_libtiff_handler)
                _let_warnings_pass()


def _let_warnings_pass() -> None:
    if _IGNORE in warnings.filters:
        cast("list[Any]", warnings.filters).remove(_IGNORE)


@cache
def _libtiff_setter() -> Callable[[int | None], int | None]:
    """Sets what Pillow's libtiff calls to print an error, None for nothing; returns what it was. Pillow raises the error, too.

    It does nothing where the function is not to be found in what Pillow has loaded (Windows: it is built in).
    """
    try:
        setter = ctypes.CDLL(str(getattr(Image.core, "__file__", ""))).TIFFSetErrorHandler
    except (OSError, AttributeError):
        return lambda address: None
    setter.argtypes, setter.restype = [ctypes.c_void_p], ctypes.c_void_p
    return setter


OpenFile = io.BufferedReader | io.BytesIO
"""A file that is open for reading, on disk or in memory."""

TIFF_SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
# Only these are tried, whatever the extension says: some others of Pillow start external programs.
_CLASSES: dict[bytes, type[ImageFile]] = {
    b"\x89PNG\r\n\x1a\n": PngImageFile,
    b"\xff\xd8\xff": JpegImageFile,
    b"BM": BmpImageFile,
    **dict.fromkeys(TIFF_SIGNATURES, TiffImageFile),
    **{bytes((size, 0, 0, 0)): DibImageFile for size in (12, 40, 52, 56, 64, 108, 124)},
}
_CONTAINERS = {b"WEBP": "webp", b"avif": "avif", b"avis": "avif"} | dict.fromkeys(
    (b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1"), "heif"
)
"""Formats that name themselves from the ninth byte on."""
_CONTAINER_OF = {".webp": "webp", ".avif": "avif", ".heic": "heif", ".heif": "heif"}
_CLASS_OF = {
    "webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
    "avif": ("PIL.AvifImagePlugin", "AvifImageFile"),
    "heif": ("pillow_heif", "HeifImageFile"),
}
PHOTO_EXTENSIONS = tuple(_CONTAINER_OF)
"""Extensions of formats that Pillow, or an optional package, may or may not read."""
_GREY_BITS = {"1": 1, "L;2": 2, "L;4": 4, "L": 8}


def is_tiff(file: OpenFile) -> bool:
    """Whether it begins as a TIFF does. The file is at its beginning afterwards."""
    start = file.read(4)
    file.seek(0)
    return start in TIFF_SIGNATURES


def open_lazily(file: OpenFile) -> ImageFile:
    """The image, not yet decoded.

    Raises:
        Image.UnidentifiedImageError: It has none of these formats, or its header is damaged.
    """
    start = file.read(12)
    file.seek(0)
    file_class = next((image_class for mark, image_class in _CLASSES.items() if start.startswith(mark)), None)
    if file_class is None and (container := _CONTAINERS.get(start[8:12])) is not None:
        file_class = _class_of(container)
    if file_class is None:
        raise Image.UnidentifiedImageError("unknown signature")
    try:
        return file_class(file)
    except SyntaxError as error:
        raise Image.UnidentifiedImageError(str(error)) from error


def can_read(extension: str) -> bool:
    """Whether the reader of files with this extension is on this machine: of photographs it may not be."""
    container = _CONTAINER_OF.get(extension)
    return container is None or _class_of(container) is not None


@cache
def _class_of(container: str) -> type[ImageFile] | None:
    """Pillow's class for one of the formats of photographs, or that of the package that brings it; None: there is none."""
    module, name = _CLASS_OF[container]
    if module.startswith("PIL.") and not features.check(container):
        return None
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError:
        return None


def transparent_key(image: Image.Image) -> int | tuple[int, ...] | None:
    """The one grey or colour that a PNG without an alpha channel declares as transparent, in the range of decoded samples.

    The file names it in its own bits, of which only as many count as a sample has. Asked before the image is loaded.
    """
    key = image.info.get("transparency")
    if image.format != "PNG" or image.mode == "P" or key is None or not isinstance(image, ImageFile):
        return None
    rawmode = str(image.tile[0].args) if image.tile else ""
    if isinstance(key, tuple):
        return tuple(int(value) & (0xFFFF if ";16" in rawmode else 0xFF) for value in key)
    if image.mode.startswith("I"):
        return int(key)
    white = 2 ** _GREY_BITS[rawmode] - 1
    return (int(key) & white) * (255 // white)
