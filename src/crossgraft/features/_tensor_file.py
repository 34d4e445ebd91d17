"""float32 arrays in one safetensors file: written in pieces, read as a memory map, checked by a sum.

The layout is the safetensors standard (8 bytes of header length, a JSON header, the data), so any other tool
can open the files. Writing it here allows arrays larger than memory; reading it here gives a map instead of a
copy.
"""

from __future__ import annotations

import json
import math
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from crossgraft.errors import StorageError

FloatArray = NDArray[np.float32]

_DTYPE = np.dtype("<f4")
_ALIGNMENT = 64
_LENGTH_BYTES = 8
_LONGEST_HEADER = 2**20
"""Bytes; far above what ``write_tensors`` writes."""


class TensorFile(NamedTuple):
    """A memory-mapped file."""

    tensors: dict[str, FloatArray]
    metadata: dict[str, str]


def checksum(array: FloatArray) -> int:
    """Sum of all 32-bit words modulo 2⁶⁴: a whole has the sum of its parts.

    Runs at the speed of memory. It finds truncated, zeroed and flipped bytes, which is what disks and kills
    do; it is no protection against intent.
    """
    words = np.ascontiguousarray(array, dtype=_DTYPE).reshape(-1).view(np.uint32)
    return int(np.add.reduce(words, dtype=np.uint64))


def write_tensors(
    file: BinaryIO,
    shapes: Mapping[str, tuple[int, ...]],
    pieces: Iterable[FloatArray],
    metadata: Mapping[str, str],
) -> None:
    """Write arrays of ``shapes``, one after the other, from consecutive ``pieces`` of their rows."""
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, shape in shapes.items():
        end = offset + math.prod(shape) * _DTYPE.itemsize
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-(_LENGTH_BYTES + len(text)) % _ALIGNMENT)
    file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
    for piece in pieces:
        file.write(np.ascontiguousarray(piece, dtype=_DTYPE).data)


def map_tensors(path: Path) -> TensorFile | None:
    """Memory-map a file of ``write_tensors``; None when it is missing, truncated or not such a file.

    Raises:
        StorageError: The file is there but may not be read.
    """
    try:
        status = path.stat()
        if stat.S_ISFIFO(status.st_mode):  # opening one waits for somebody who writes
            return None
        size = status.st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if length > min(size, _LONGEST_HEADER):
                return None
            header = json.loads(file.read(length))
    except (FileNotFoundError, NotADirectoryError, ValueError, RecursionError):
        return None
    except OSError as error:
        raise StorageError(
            f"Cannot read {path}: {error.strerror or error}. Allow reading it, or set CROSSGRAFT_CACHE to another folder."
        ) from error
    start = _LENGTH_BYTES + length
    try:
        metadata = {str(key): str(value) for key, value in header.pop("__metadata__").items()}
        entries = cast("dict[str, dict[str, Any]]", header)
        if start + max(entry["data_offsets"][1] for entry in entries.values()) != size:
            return None
        if any(math.prod(entry["shape"]) * _DTYPE.itemsize != _length(entry) for entry in entries.values()):
            return None
        tensors = {
            name: np.memmap(path, _DTYPE, "r", offset=start + entry["data_offsets"][0], shape=tuple(entry["shape"]))
            for name, entry in entries.items()
        }
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None
    # plain views: numpy's memmap subclass makes every small operation slower
    return TensorFile({name: np.asarray(array) for name, array in tensors.items()}, metadata)


def _length(entry: Mapping[str, Any]) -> int:
    begin, end = entry["data_offsets"]
    return end - begin
