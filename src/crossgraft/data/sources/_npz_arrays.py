"""Arrays of an ``.npz`` file, read one by one, each only when it is needed. Pickled objects are refused."""

from __future__ import annotations

import io
import lzma
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from crossgraft.compute import require_memory, rounded_size
from crossgraft.errors import DataError, OutOfMemoryError, nearest_names

# What damaged archives and arrays are known to raise.
_READ_ERRORS = (
    ValueError, OSError, EOFError, SyntaxError, NotImplementedError, RuntimeError, zlib.error, lzma.LZMAError,
    zipfile.BadZipFile,
)  # fmt: skip
_HEADER_BYTES = 2**14
"""More than numpy allows a header to have; a header may announce a length of gigabytes."""
_ADVICE = "Free some memory, or save fewer or smaller images."


class _Header(NamedTuple):
    """What an array says of itself, before any of it is unpacked: bytes as the header and as the archive count them."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    announced: int
    held: int


class NpzArrays:
    """One ``.npz`` file.

    Raises:
        DataError: The file is not an archive of arrays, or is damaged at its end (where the list of arrays
            is).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.namelist()
        except (zipfile.BadZipFile, OSError) as error:
            raise DataError(f"{path} is not an .npz file, or it is damaged: {str(error).rstrip('.')}.") from error
        self.keys = tuple(member.removesuffix(".npy") for member in members if member.endswith(".npy"))

    def read(self, key: str) -> np.ndarray:
        """One array; byte strings become text.

        Raises:
            DataError: The key does not exist, or the array is damaged or holds Python objects.
            OutOfMemoryError: It announces more than there is memory for; nothing was unpacked.
        """
        if key not in self.keys:
            near = nearest_names(key, self.keys)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise DataError(f"{self.name} has no array {key}.{hint} Its arrays: {', '.join(self.keys) or 'none'}.")
        try:
            self._require_memory(key, self._header(key))
            with np.load(self.path, allow_pickle=False) as archive:
                array = np.asarray(archive[key])
            return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array
        except MemoryError as error:
            if isinstance(error, OutOfMemoryError):
                raise
            raise OutOfMemoryError(f"The array {key} of {self.name} does not fit into memory. {_ADVICE}") from error
        except _READ_ERRORS as error:
            if "allow_pickle" in str(error):
                raise DataError(
                    f"The array {key} of {self.name} holds Python objects, and reading those can run code. Save it as a "
                    "plain array: numbers, or text of a fixed width."
                ) from error
            raise DataError(f"The array {key} of {self.name} is damaged: {str(error).rstrip('.')}.") from error

    def read_column(self, key: str, num_rows: int, images_key: str) -> np.ndarray:
        """An array with one entry per image, (n,) or (n, 1).

        Raises:
            DataError: It has another shape.
        """
        values = self.read(key)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.shape != (num_rows,):
            raise DataError(
                f"The arrays {images_key} and {key} of {self.name} do not belong together: {num_rows} images, but {key} "
                f"has shape {values.shape}."
            )
        return values

    def read_labels(self, key: str, num_rows: int, images_key: str) -> np.ndarray:
        """Like ``read_column``, or (n, k) with k > 1: one column per label.

        Raises:
            DataError: It has another shape.
        """
        values = self.read(key)
        is_label_set = values.ndim == 2 and len(values) == num_rows and values.shape[1] > 1
        return values if is_label_set else self.read_column(key, num_rows, images_key)

    def first_of(self, usual: Sequence[str]) -> str | None:
        """The first of these keys that the file has."""
        return next((key for key in usual if key in self.keys), None)

    def columns_beside(self, known: Sequence[str | None], num_rows: int, *, prefix: str = "") -> list[str]:
        """Keys of the other arrays with one entry per image; only headers are read."""
        others = [key for key in self.keys if key.startswith(prefix) and key not in known]
        return [key for key in others if self._shape(key) == (num_rows,)]

    def _shape(self, key: str) -> tuple[int, ...] | None:
        """Shape from the header, or None where that cannot be read."""
        try:
            header = self._header(key)
        except _READ_ERRORS:
            return None
        return None if header.dtype.hasobject else header.shape

    def _header(self, key: str) -> _Header:
        """Unpacks the first bytes of an array only.

        Raises:
            ValueError: There is no header, or it makes no sense; and whatever damaged archives raise.
        """
        with zipfile.ZipFile(self.path) as archive:
            entry = archive.getinfo(f"{key}.npy")
            with archive.open(entry) as file:
                start = io.BytesIO(file.read(_HEADER_BYTES))
        version = npy_format.read_magic(start)
        read_header = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, _, dtype = read_header(start)
        if any(isinstance(length, bool) or length < 0 for length in shape):
            raise ValueError(f"its shape is {shape}")
        return _Header(shape, dtype, math.prod(shape) * dtype.itemsize, entry.file_size - start.tell())

    def _require_memory(self, key: str, header: _Header) -> None:
        """Compare what is announced with what the archive says it holds, and with the memory there is.

        The archive's own size bounds what is unpacked: ``zipfile`` stops there, whatever the compressed stream goes on to.
        """
        if header.dtype.hasobject:  # refused when it is read, with nothing of it unpacked
            return
        if header.announced > header.held:
            announced, held = rounded_size(header.announced), rounded_size(max(0, header.held))
            raise ValueError(f"its header announces {announced}, and the file holds {held}")
        copies = 1 + (np.dtype("U1").itemsize if header.dtype.kind == "S" else 0)  # byte strings become text
        require_memory(header.announced * copies, what=f"The array {key} of {self.name}", advice=_ADVICE)
