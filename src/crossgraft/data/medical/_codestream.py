"""What a compressed frame says of its own size, before any decoder unpacks it."""

from __future__ import annotations

import struct

_JPEG_START = b"\xff\xd8"
_JPEG_2000_START = b"\xff\x4f\xff\x51"  # start of the codestream, and of the segment of sizes
# The segments with which a frame of JPEG (T.81, table B.1) or JPEG-LS (T.87) begins; C4, C8 and CC mean something else.
_FRAME_MARKERS = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD8)}


def announced_size(frame: bytes) -> tuple[int, int] | None:
    """Height and width of a frame of JPEG, JPEG-LS or JPEG 2000; None where it does not say them."""
    if frame.startswith(_JPEG_START):
        return _jpeg_size(frame)
    place = frame.find(_JPEG_2000_START, 0, 4096)  # JPEG 2000 may stand in boxes
    if place < 0 or place + 24 > len(frame):
        return None
    right, bottom, left, top = struct.unpack_from(">4I", frame, place + 8)
    return bottom - top, right - left


def _jpeg_size(frame: bytes) -> tuple[int, int] | None:
    place = len(_JPEG_START)
    while place + 9 <= len(frame) and frame[place] == 0xFF:
        marker = frame[place + 1]
        if marker in _FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", frame, place + 5)
            return (height, width) if height and width else None
        if marker == 0xFF:  # fill bytes may precede a marker
            place += 1
        elif marker in _WITHOUT_LENGTH:
            place += 2
        else:
            place += 2 + struct.unpack_from(">H", frame, place + 2)[0]
    return None
