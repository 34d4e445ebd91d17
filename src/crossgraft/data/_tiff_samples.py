"""TIFF files whose samples Pillow would change or cannot open: decoded by tifffile, brought to the rules of ``decoding``."""

from __future__ import annotations

import io
import math
import zlib
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from crossgraft.data._pillow_files import OpenFile
from crossgraft.data._room import room_for
from crossgraft.data._tiff_layouts import (
    ALPHA,
    DEFLATE,
    WHITE_IS_ZERO,
    TiffLayout,
    UnsupportedLayoutError,
    is_right_in_pillow,
    read_layout,
    refuse_unknown_to_tifffile,
)

_UINT16_MAX = 65535
_ORIENTATION = 274
_TURNED = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: np.swapaxes(pixels, 0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.swapaxes(pixels[::-1, ::-1], 0, 1),
    8: lambda pixels: np.rot90(pixels),
}


def read_tiff(file: OpenFile) -> tuple[TiffLayout, np.ndarray | None]:
    """The layout of the only page, and its samples where Pillow would not give them.

    Returns:
        (height, width, colours, or colours and alpha) uint8, uint16 or float32, upright, 0 black; None: Pillow reads it.

    Raises:
        UnsupportedLayoutError: Nobody here reads it faithfully.
        ValueError: It is damaged.
        OutOfMemoryError: It announces more than there is room for.
    """
    import tifffile

    try:
        return _read(file)
    except tifffile.TiffFileError as error:  # a ValueError in newer versions only
        raise ValueError(str(error)) from error


def layout_of(file: OpenFile) -> TiffLayout:
    """The layout of the first page; reads no samples.

    Raises:
        UnsupportedLayoutError, ValueError: As ``read_tiff``.
    """
    import tifffile

    with tifffile.TiffFile(file) as tiff:
        return read_layout(tiff.pages[0])


def _read(file: OpenFile) -> tuple[TiffLayout, np.ndarray | None]:
    import tifffile

    with tifffile.TiffFile(file) as tiff:
        if len(tiff.pages) == 0:
            raise ValueError("no page in it")
        if len(tiff.pages) > 1:
            raise UnsupportedLayoutError(f"it holds {len(tiff.pages)} pages; save each page as a file of its own")
        page: Any = tiff.pages[0]
        layout = read_layout(page)
        segments = _segments(page, layout)
        height, width = int(page.imagelength), int(page.imagewidth)
        if is_right_in_pillow(layout) and not _is_large_for_pillow(height, width, layout):
            return layout, None
        refuse_unknown_to_tifffile(layout)
        _refuse_bad_segments(segments, file, layout)
        announced = height * width * layout.samples * layout.bits // 8
        with room_for(announced, f"a picture of {height}×{width} pixels"):
            samples = np.asarray(page.asarray(squeeze=False, maxworkers=1))
            separate, _, height, width, together = samples.shape
            upright = samples[:, 0].transpose(1, 2, 0, 3).reshape(height, width, separate * together)
            tag = page.tags.get(_ORIENTATION)
            turned = _TURNED.get(1 if tag is None else int(tag.value), _TURNED[1])(upright)
            return layout, np.ascontiguousarray(_known_range(turned, layout))


def _is_large_for_pillow(height: int, width: int, layout: TiffLayout) -> bool:
    """Pillow compares the size of a TIFF with a limit of the process, and raises above twice that.

    Raises:
        UnsupportedLayoutError: It is larger, and tifffile does not read it either.
    """
    limit = Image.MAX_IMAGE_PIXELS
    if limit is None or height * width <= 2 * limit:
        return False
    try:
        refuse_unknown_to_tifffile(layout)
    except UnsupportedLayoutError as error:
        raise UnsupportedLayoutError(
            f"it has {height}×{width} pixels, more than the {2 * limit:,} that are read of {layout.describe()} in this "
            "compression; save it without compression, or shrink it"
        ) from error
    return True


def white_level(layout: TiffLayout) -> int | float:
    """The sample that means the most light, of a layout in which 0 means none or all of it."""
    return 1.0 if layout.kind == 3 else 2**layout.bits - 1


def _known_range(samples: np.ndarray, layout: TiffLayout) -> np.ndarray:
    """8- and 16-bit samples as they are, wider whole numbers as 16-bit, floats as float32; unspecified samples left out."""
    samples = samples[..., : layout.colours + (layout.alpha == ALPHA)]  # premultiplied colours lie on black already
    if layout.kind == 3:
        samples = _single_precision(samples)
    elif layout.bits > 8:
        samples = unsigned_16_bit(samples)
    if layout.photometric == WHITE_IS_ZERO:
        grey = samples[..., :1]
        inverted = np.asarray(white_level(layout), dtype=samples.dtype) - grey
        samples = np.concatenate([inverted, samples[..., 1:]], axis=-1)
    return samples


def _single_precision(samples: np.ndarray) -> np.ndarray:
    limit = float(np.finfo(np.float32).max)
    if np.isfinite(samples).all() and samples.size and np.abs(samples.astype(np.float64)).max() > limit:
        raise UnsupportedLayoutError(
            f"its samples go from {samples.min():g} to {samples.max():g}; rescale them to 0 … 1"
        )
    with np.errstate(over="ignore"):  # beside NaN, which is named when images are looked at
        return samples.astype(np.float32)


def unsigned_16_bit(samples: np.ndarray) -> np.ndarray:
    """Whole-number samples of more than 8 bits as uint16.

    Raises:
        UnsupportedLayoutError: They do not lie in the unsigned 16-bit range, so nobody knows what is white.
    """
    if samples.size and (samples.min() < 0 or samples.max() > _UINT16_MAX):
        found = f"{samples.min()} to {samples.max()}"
        raise UnsupportedLayoutError(f"its samples go from {found}; rescale them to 0 … {_UINT16_MAX}")
    return samples.astype(np.uint16)


class _Segments(NamedTuple):
    """The strips or tiles of a page: place and length of each, and the bytes that a whole one unpacks into."""

    offsets: tuple[int, ...]
    lengths: tuple[int, ...]
    unpacked_bytes: int


def _segments(page: Any, layout: TiffLayout) -> _Segments:
    """All that the size of the picture asks for. Where some are missing, Pillow and tifffile leave black rows.

    Raises:
        ValueError: There are fewer.
    """
    if page.is_tiled:
        rows, columns = int(page.tilelength), int(page.tilewidth)
    else:
        rows, columns = min(int(page.rowsperstrip), int(page.imagelength)), int(page.imagewidth)
    if min(rows, columns) < 1:
        raise ValueError("strips or tiles without pixels")
    planes = layout.samples if layout.in_planes else 1
    expected = math.ceil(page.imagelength / rows) * math.ceil(page.imagewidth / columns) * planes
    offsets, lengths = tuple(page.dataoffsets), tuple(page.databytecounts)
    if min(len(offsets), len(lengths)) < expected:
        raise ValueError("truncated: strips or tiles are missing")
    unpacked_bytes = rows * columns * (layout.samples // planes) * layout.bits // 8
    return _Segments(offsets[:expected], lengths[:expected], unpacked_bytes)


def _refuse_bad_segments(segments: _Segments, file: OpenFile, layout: TiffLayout) -> None:
    """Every strip or tile must lie in the file and must not unpack into more than its place in the picture.

    tifffile fills what is missing with zeros, and unpacks whatever is there.
    """
    end = file.seek(0, io.SEEK_END)
    for offset, length in zip(segments.offsets, segments.lengths, strict=True):
        if offset <= 0 or length <= 0 or offset + length > end:
            raise ValueError("truncated: a strip or tile lies outside the file")
        if layout.compression in DEFLATE:
            file.seek(offset)
            _refuse_bomb(file.read(length), segments.unpacked_bytes)


def _refuse_bomb(packed: bytes, most: int) -> None:
    stream, unpacked = zlib.decompressobj(), 0
    while packed and not stream.eof:
        unpacked += len(stream.decompress(packed, 2**20))
        packed = stream.unconsumed_tail
        if unpacked > most:
            raise ValueError(f"a strip or tile unpacks into more than {most:,} bytes")
