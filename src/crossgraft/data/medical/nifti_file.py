"""Open NIfTI files: the header, checked before anything is allocated, and the bytes of one volume."""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from crossgraft.data.medical._problem import UnreadableFileError
from crossgraft.data.medical.formats import GZIP_MARK

_HEADER_BYTES = {348: 1, 540: 2}
"""What a header says first, its own length → the version of NIfTI."""

_MAGIC = {1: b"n+1\0", 2: b"n+2\0\r\n\x1a\n"}
_PAIR_MAGIC = {1: b"ni1\0", 2: b"ni2\0\r\n\x1a\n"}
_MOST_COMPRESSION = 1032  # deflate cannot do more
_CHUNK_BYTES = 2**20
_RGB = {"R", "G", "B"}


@dataclass(frozen=True)
class NiftiHeader:
    """What is needed to read one file.

    Attributes:
        shape: Sizes along the first three axes; 1 where the file has fewer.
        num_volumes: Along the fourth axis.
        dtype: Type of a stored value, with its byte order; a structured type for colours.
        offset: Position of the first value, in bytes.
        slope: Physical = slope · stored + intercept.
        intercept: See ``slope``.
        cal_range: cal_min and cal_max, the range that the file wants to be shown; None if it names none.
        affine: (4, 4) from voxels to millimetres to the right, front and top.
    """

    shape: tuple[int, int, int]
    num_volumes: int
    dtype: np.dtype
    offset: int
    slope: float
    intercept: float
    cal_range: tuple[float, float] | None
    affine: np.ndarray

    @property
    def is_colour(self) -> bool:
        """Whether a voxel is red, green and blue instead of one number."""
        return self.dtype.names is not None

    @property
    def volume_bytes(self) -> int:
        """Unpacked size of one volume."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(path: Path) -> NiftiHeader:
    """Read and check the header alone.

    Raises:
        UnreadableFileError: It is missing, damaged, or of a kind that is not read.
    """
    with _opened(path) as file:
        start = file.read(max(_HEADER_BYTES))
    header = _parse(start)
    checked = _check(header)
    _refuse_impossible_size(path, checked)
    return checked


def read_first_volume(path: Path, header: NiftiHeader) -> np.ndarray:
    """The stored values of the first volume, shaped as ``header.shape``; the rest is only checked for damage."""
    with _opened(path) as file:
        _skip(file, header.offset)
        data = file.read(header.volume_bytes)
        if len(data) < header.volume_bytes:
            raise UnreadableFileError(
                f"the file is truncated, or its header is wrong: {header.volume_bytes:,} bytes of values are announced "
                f"and {len(data):,} are there"
            )
        # Read to the end, where the check sum of a compressed file stands.
        other_volumes = header.volume_bytes * (header.num_volumes - 1)
        if _skip(file, other_volumes) < other_volumes:
            raise UnreadableFileError(f"the file is truncated: it announces {header.num_volumes} volumes")
        if file.read(_CHUNK_BYTES).strip(b"\0") or file.read(1):
            raise UnreadableFileError("its header is wrong: the file holds more values than it announces")
    return np.frombuffer(data, dtype=header.dtype).reshape(header.shape, order="F")


@contextmanager
def _opened(path: Path) -> Generator[io.BufferedIOBase]:
    with path.open("rb") as file:
        start = file.read(2)
        if not start:
            raise UnreadableFileError("the file is empty")
        file.seek(0)
        if start == GZIP_MARK:
            with gzip.open(file) as unpacked:
                yield unpacked
        else:
            yield file


def _parse(start: bytes) -> Any:
    """The header as nibabel sees it, of either version and byte order."""
    from nibabel.nifti1 import Nifti1Header
    from nibabel.nifti2 import Nifti2Header

    length = {order: int.from_bytes(start[:4], order) for order in ("little", "big")}
    order = next((order for order, number in length.items() if number in _HEADER_BYTES), None)
    if order is None:
        text = start[:256].isascii() and start[:256].decode("ascii").replace("\n", "").isprintable()
        raise UnreadableFileError(
            "it is a text file" if text else "it is not a NIfTI file, or its first bytes are damaged"
        )
    version = _HEADER_BYTES[length[order]]
    if len(start) < length[order]:
        raise UnreadableFileError("the file is truncated in its header")
    kind = {1: Nifti1Header, 2: Nifti2Header}[version]
    header = kind(start[: length[order]], endianness="<" if order == "little" else ">", check=False)
    magic = start[344:348] if version == 1 else start[4:12]
    if magic == _PAIR_MAGIC[version]:
        raise UnreadableFileError("its values are in another file (.img); save both as one .nii file")
    if magic != _MAGIC[version]:
        raise UnreadableFileError("it is not a NIfTI file, or its header is damaged")
    return header


def _check(header: Any) -> NiftiHeader:
    """The parts of nibabel's header that matter, each checked."""
    sizes = [int(size) for size in header["dim"]]
    if not 1 <= sizes[0] <= 7 or any(size < 1 for size in sizes[1 : sizes[0] + 1]):
        raise UnreadableFileError(f"its sizes are damaged ({' × '.join(map(str, sizes[1 : max(1, sizes[0]) + 1]))})")
    shape = sizes[1 : sizes[0] + 1] + [1] * (7 - sizes[0])
    if any(size > 1 for size in shape[4:]):
        raise UnreadableFileError(f"it has {sizes[0]} dimensions; read are 2 to 4")
    spatial = (shape[0], shape[1], shape[2])
    dtype = _checked_type(header)
    offset = float(header["vox_offset"])
    if not (math.isfinite(offset) and offset >= header.single_vox_offset and offset == int(offset)):
        raise UnreadableFileError(f"its values are said to begin at byte {offset:g}")
    slope, intercept = _checked_scaling(header)
    return NiftiHeader(
        spatial, shape[3], dtype, int(offset), slope, intercept, _checked_range(header), _checked_affine(header)
    )


def _checked_type(header: Any) -> np.dtype:
    code = int(header["datatype"])
    try:
        dtype = cast("np.dtype", header.get_data_dtype())
    except Exception as error:
        raise UnreadableFileError(f"its type of values (number {code}) does not exist") from error
    name = str(header._data_type_codes.label[code]) if code in header._data_type_codes else str(code)
    is_colour = dtype.names is not None and set(dtype.names) >= _RGB
    is_number = dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize <= 8)
    if not (is_colour or is_number) or dtype.itemsize == 0:
        raise UnreadableFileError(f"its values are of type {name}, which is not read")
    if int(header["bitpix"]) not in (0, 8 * dtype.itemsize):
        raise UnreadableFileError(
            f"its header contradicts itself: values of type {name} and {int(header['bitpix'])} bits"
        )
    return dtype


def _checked_scaling(header: Any) -> tuple[float, float]:
    """Slope and intercept; a slope of 0 or NaN means none, as the standard says."""
    slope, intercept = float(header["scl_slope"]), float(header["scl_inter"])
    if slope == 0 or math.isnan(slope):
        return 1.0, 0.0
    if not (math.isfinite(slope) and math.isfinite(intercept)):
        raise UnreadableFileError(f"its scaling is damaged (slope {slope:g}, intercept {intercept:g})")
    return slope, intercept


def _checked_range(header: Any) -> tuple[float, float] | None:
    low, high = float(header["cal_min"]), float(header["cal_max"])
    return (low, high) if math.isfinite(low) and math.isfinite(high) and low < high else None


def _checked_affine(header: Any) -> np.ndarray:
    with np.errstate(all="ignore"):
        affine = np.asarray(header.get_best_affine(), dtype=np.float64)
        sound = np.isfinite(affine).all() and np.isfinite(np.linalg.det(affine)) and np.linalg.det(affine[:3, :3]) != 0
    if not sound:
        raise UnreadableFileError("its orientation is damaged (the affine cannot be inverted)")
    return affine


def _refuse_impossible_size(path: Path, header: NiftiHeader) -> None:
    """A header may announce gigabytes that the file cannot hold."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MARK
        available = file.seek(0, io.SEEK_END) * (_MOST_COMPRESSION if packed else 1)
    announced = header.offset + header.volume_bytes * header.num_volumes
    if available < announced:
        raise UnreadableFileError(
            f"the file is truncated, or its header is wrong: {announced:,} bytes are announced, and it can hold at most "
            f"{available:,}"
        )


def _skip(file: io.BufferedIOBase, num_bytes: int) -> int:
    """Read up to so many bytes and forget them; how many there were."""
    done = 0
    while done < num_bytes and (chunk := file.read(min(_CHUNK_BYTES, num_bytes - done))):
        done += len(chunk)
    return done
