"""Memory for what the header of an image announces, checked before anything is unpacked."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from crossgraft.compute import require_memory

_WORTH_ASKING = 2**27
"""Bytes from which on memory is asked for; a pool of eight threads takes at most a gigabyte without."""

_one_large_image = threading.Lock()


@contextmanager
def room_for(num_bytes: int, what: str, *, copies: int = 4) -> Generator[None]:
    """Decode in this block. Large images come one at a time: the memory that was free when it was asked for still is then.

    Args:
        num_bytes: Size of the decoded samples according to the header; any number.
        what: Subject of the message, such as "a picture of 9×9 pixels".
        copies: Number of arrays of that size at a time. A decoder holds a picture of its own, the array that is
            made of it, and up to two conversions.

    Raises:
        OutOfMemoryError: There is less memory than that; the message has both numbers.
    """
    needed = copies * num_bytes
    if needed < _WORTH_ASKING:
        yield
        return
    with _one_large_image:
        require_memory(needed, what=what, advice="Cut or shrink it.")
        yield
