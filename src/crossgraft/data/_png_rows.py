"""PNG files whose data end too early: Pillow leaves the rows that are missing black and says nothing."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from PIL import Image

_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_SIGNATURE_BYTES = 8
_CHUNK_BYTES = 2**20
# The seven passes of an interlaced image: first column, first row, and the steps between them.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_WHOLE = ((0, 0, 1, 1),)
_EXIF_ORIENTATION = 0x0112


def may_lack_rows(image: Image.Image, pixels: np.ndarray) -> bool:
    """Whether the end of this PNG could be missing. Only then is it worth unpacking it again."""
    if image.format != "PNG":
        return False
    last_row_is_somewhere_else = bool(image.info.get("interlace")) or _EXIF_ORIENTATION in image.getexif()
    return last_row_is_somewhere_else or "palette" in image.info or image.palette is not None or not pixels[-1].any()


def lacks_rows(content: bytes) -> bool:
    """Whether the data of a PNG file unpack into fewer bytes than its header announces."""
    announced, unpacked = 0, 0
    stream = zlib.decompressobj()
    place = _SIGNATURE_BYTES
    while place + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, place)
        body = content[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            announced = _announced_bytes(body)
        elif kind == b"IDAT":
            while body and not stream.eof:
                unpacked += len(stream.decompress(body, _CHUNK_BYTES))
                body = stream.unconsumed_tail
        place += 12 + length
    return unpacked + len(stream.flush()) < announced


def _announced_bytes(header: bytes) -> int:
    """One byte for the filter of each row, and the samples."""
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    total = 0
    for left, top, column_step, row_step in _PASSES if interlace else _WHOLE:
        columns = max(0, -(-(width - left) // column_step))
        rows = max(0, -(-(height - top) // row_step))
        total += rows * (1 + -(-columns * _SAMPLES[colour] * depth // 8)) if columns else 0
    return total
