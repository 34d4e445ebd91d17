"""Whether a frame of RLE Lossless is complete (DICOM PS3.5, annex G)."""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16I")  # the number of segments, then where each begins; 0 for those that are not there
_NO_OPERATION = 128


def missing_from_rle(frame: bytes, num_pixels: int) -> str | None:
    """What a frame lacks at its end, in words; None if nothing.

    A segment holds one byte of each pixel, packed. The last one reaches to the end of the frame, so the last segment of a
    cut frame begins behind its end, or unpacks into fewer bytes than there are pixels. The byte that pads a frame to an even
    length belongs to no run and may be missing.

    Args:
        frame: Frame as stored in the file.
        num_pixels: Rows × columns.
    """
    if len(frame) < _HEADER.size:
        return f"{len(frame)} of the {_HEADER.size} bytes of its header are there"
    num_segments, *starts = _HEADER.unpack_from(frame)
    if not 1 <= num_segments <= len(starts):
        return None  # damaged rather than cut: the decoder refuses it
    start = starts[num_segments - 1]
    if start >= len(frame):
        return f"its last segment begins at byte {start:,}, and {len(frame):,} bytes are there"
    found = _unpacked_length(frame, start, num_pixels)
    return None if found >= num_pixels else f"its last segment unpacks into {found:,} of {num_pixels:,} bytes"


def _unpacked_length(frame: bytes, place: int, enough: int) -> int:
    """How many bytes the runs from ``place`` on give, counted until there are enough."""
    found = 0
    while found < enough and place + 1 < len(frame):  # a run is at least two bytes
        head = frame[place]
        if head == _NO_OPERATION:
            place += 1
        elif head > _NO_OPERATION:
            found += 257 - head
            place += 2
        else:
            found += min(head + 1, len(frame) - place - 1)
            place += head + 2
    return found
