"""Features on disk: one array (n, d) per layer in an npz or safetensors file, read as a memory map where the file allows it."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.lib import format as npy_format
from safetensors import SafetensorError, safe_open

from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError

Rows = Int[np.ndarray, " _"]
_ROWS_HASHED = 4096
PREFIX = "features:"
_PENULTIMATE = "features"
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U8": "u1"}


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Features of some images that another program made.

    Attributes:
        name: Name of the file without its suffix.
        layers: (n, d) by layer, in the order of the file; all of the same images.
    """

    name: str
    layers: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.layers.values())))

    @property
    def penultimate(self) -> np.ndarray:
        """The array called ``features``, or the last one."""
        return self.layers.get(_PENULTIMATE, list(self.layers.values())[-1])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of names, types and numbers."""
        digest = hashlib.sha256()
        for name, values in self.layers.items():
            digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
            for start in range(0, len(values), _ROWS_HASHED):
                digest.update(np.ascontiguousarray(values[start : start + _ROWS_HASHED]).tobytes())
        return digest.hexdigest()

    def at(self, rows: Rows) -> dict[str, np.ndarray]:
        """Features of a batch, read from the file."""
        return {name: np.asarray(values[rows]) for name, values in self.layers.items()}

    def rows_of(self, label: str, rows: Rows, images: ImageRows | None) -> Rows:
        """Where the images that are looked at stand in the file: these alone, or all images.

        Raises:
            DataError: The features are of another number of images.
        """
        if len(self) == len(rows):
            return np.arange(len(rows))
        if images is not None and len(self) == len(images):
            return np.asarray(rows)
        every = "" if images is None else f", or all {len(images)}"
        raise DataError(
            f"{label} ({self.name}) has features of {len(self)} images; what is compared are {len(rows)} of them{every}. "
            "Give features of the same images in the same order."
        )


def are_stored_features(given: object) -> bool:
    """Whether this names features: ``features:FILE``, an npz file, or a safetensors file of matrices of equal length."""
    if not isinstance(given, str | Path):
        return False
    if str(given).startswith(PREFIX) or Path(given).suffix == ".npz":
        return True
    path = Path(given)
    if path.suffix != ".safetensors" or not path.is_file():
        return False
    try:
        with safe_open(path, framework="numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118 - no mapping
    except SafetensorError:
        return False
    return bool(shapes) and all(len(shape) == 2 for shape in shapes) and len({shape[0] for shape in shapes}) == 1


def read_stored_features(given: str | Path) -> StoredFeatures:
    """Open a file of features.

    Raises:
        DataError: The file is missing or damaged, an array is no matrix of numbers, or arrays have different lengths.
    """
    path = Path(str(given).removeprefix(PREFIX))
    if not path.is_file():
        raise DataError(f"There is no file of features {path}. Give an npz or safetensors file with arrays (n, d).")
    try:
        layers = _read_npz(path) if path.suffix == ".npz" else _read_safetensors(path)
    except (OSError, ValueError, zipfile.BadZipFile, SafetensorError) as error:
        raise DataError(f"{path} cannot be read as features: {' '.join(str(error).split())}. Write it again.") from error
    for name, rows in layers.items():
        if rows.ndim != 2 or rows.dtype.kind not in "fiu" or 0 in rows.shape:
            raise DataError(
                f"{name} in {path} has the shape {rows.shape} and type {rows.dtype}; features are numbers (n, d), one row per "
                "image. Pool or flatten maps first."
            )
    lengths = {name: len(rows) for name, rows in layers.items()}
    if not lengths:
        raise DataError(f"{path} holds no array.")
    if len(set(lengths.values())) > 1:
        numbers_of_rows = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"The arrays in {path} are not of the same images: {numbers_of_rows} rows.")
    return StoredFeatures(path.stem, layers)


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Maps of the arrays; those of a type that numpy does not have are read as float32."""
    with safe_open(path, framework="pt") as file:  # which checks header and offsets
        names = list(file.keys())
        others = {name: file.get_slice(name).get_dtype() for name in names}
        read = {name: file.get_tensor(name).float().numpy() for name in names if others[name] not in _TYPES}
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: dict[str, Any] = json.loads(stream.read(length))
    return {
        name: read[name]
        if name in read
        else np.memmap(
            path,
            dtype=_TYPES[others[name]],
            mode="r",
            shape=tuple(header[name]["shape"]),
            offset=8 + length + header[name]["data_offsets"][0],
        )
        for name in names
    }


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    """Arrays that are stored as they are become maps; compressed ones are read."""
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if entry.compress_type != zipfile.ZIP_STORED:
                with archive.open(entry) as part:
                    arrays[name] = npy_format.read_array(part, allow_pickle=False)
                continue
            with archive.open(entry) as part:  # which refuses a header that contradicts the directory of the archive
                shape, in_columns, dtype = _header(part)
                offset = part.tell()
            file.seek(entry.header_offset + 26)
            name_length, extra_length = np.frombuffer(file.read(4), "<u2").tolist()
            start = entry.header_offset + 30 + name_length + extra_length + offset
            order = "F" if in_columns else "C"
            arrays[name] = np.memmap(path, dtype=dtype, mode="r", shape=shape, order=order, offset=start)
    return arrays


def _header(part: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array; no objects, which would be code.

    Raises:
        ValueError: It is no array, or one of objects.
    """
    version = npy_format.read_magic(part)
    read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
    shape, in_columns, dtype = read(part)
    if dtype.hasobject:
        raise ValueError("an array of Python objects is not read, because it may hold code")
    return shape, in_columns, dtype
