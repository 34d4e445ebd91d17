"""NIfTI files: slices of a volume as a radiologist looks at them.

Voxels are brought into the closest order right, anterior, superior (RAS). Slices are axial, from the feet up; the
patient's right is at the left of the image and the front (anterior) at its top. Where the volume is one plane of
another orientation, that plane is the slice: coronal with the head at the top, sagittal with the front at the left.
"""

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

from crossgraft.compute import room_for
from crossgraft.data.decoding import composite_on_black
from crossgraft.data.medical.display import WIDEST_TABLE_BITS, Display, Span, WindowPolicy, display_table, look_up, show_wide
from crossgraft.data.medical.formats import GZIP_MARK, UnreadableFileError, named_problems
from crossgraft.errors import UnreadableImageError

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
        raise UnreadableFileError("it is a text file" if text else "it is not a NIfTI file, or its first bytes are damaged")
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
    return NiftiHeader(spatial, shape[3], dtype, int(offset), slope, intercept, _checked_range(header), _checked_affine(header))


def _checked_type(header: Any) -> np.dtype:
    code = int(header["datatype"])
    try:
        dtype = cast("np.dtype", header.get_data_dtype())
    except KeyError as error:
        raise UnreadableFileError(f"its type of values (number {code}) does not exist") from error
    name = str(header._data_type_codes.label[code]) if code in header._data_type_codes else str(code)
    is_colour = dtype.names is not None and set(dtype.names) >= _RGB
    is_number = dtype.kind in "iu" or (dtype.kind == "f" and dtype.itemsize <= 8)
    if not (is_colour or is_number) or dtype.itemsize == 0:
        raise UnreadableFileError(f"its values are of type {name}, which is not read")
    if int(header["bitpix"]) not in (0, 8 * dtype.itemsize):
        raise UnreadableFileError(f"its header contradicts itself: values of type {name} and {int(header['bitpix'])} bits")
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


_AXIAL = 2  # of an array in the order right, anterior, superior
_MOST_SLICES = 2**15 - 1
"""The limit of NIfTI-1. Version 2 counts further: a few packed megabytes may announce billions, each of them listed."""


@dataclass(frozen=True)
class NiftiFacts:
    """What the listing needs to know of one file.

    Attributes:
        num_slices: Planes along the slice axis of the first volume.
        shown: Display under the policy ``file``: ``own range``, ``lowest to highest value`` or ``colours``.
        num_volumes: Number of volumes, of which only the first is read.
        aspect: Height of a pixel over its width.
    """

    num_slices: int
    shown: str
    num_volumes: int
    aspect: float = 1.0


def nifti_facts(path: Path, where: str) -> NiftiFacts:
    """Read the header.

    Raises:
        UnreadableImageError: There is none, or it contradicts itself.
    """
    with named_problems(where):
        header = read_header(path)
        shape = _canonical(np.broadcast_to(np.int8(0), header.shape), header).shape
        shown = "colours" if header.is_colour else "lowest to highest value"
        shown = "own range" if header.cal_range is not None and not header.is_colour else shown
        axis = _slice_axis(shape)
        right, front, top = _spacings(header)
        width, height = {0: (front, top), 1: (right, top), 2: (right, front)}[axis]
        return NiftiFacts(shape[axis], shown, header.num_volumes, float(height / width))


class NiftiVolume:
    """The first volume of one file, in memory; may be asked by several threads."""

    def __init__(self, path: Path, where: str, policy: WindowPolicy) -> None:
        """Read the values and check them.

        Raises:
            UnreadableImageError: The file is damaged, of a kind that is not read, or holds NaN.
        """
        self._where = where
        with named_problems(where):
            self._header = read_header(path)
            sizes = "×".join(map(str, self._header.shape))
            with room_for(self._header.volume_bytes, f"a volume of {sizes} voxels", copies=2):
                stored = read_first_volume(path, self._header)
            self._values = _canonical(stored, self._header)
            self._axis = _slice_axis(self._values.shape)
            if not self._header.is_colour:
                self._stored_span = _span(stored)
                self._display = _display(self._header, self._stored_span, policy)

    def read_slice(self, index: int) -> np.ndarray:
        """(height, width, 1 or 3) uint8, uint16 or float32 of one slice, counted from 0.

        Raises:
            UnreadableImageError: There is no such slice.
        """
        if index >= self._values.shape[self._axis]:
            raise UnreadableImageError(
                self._where, f"it has {self._values.shape[self._axis]} slices; slice {index + 1} was asked for"
            )
        # Not np.take, which would first make a copy of the whole volume.
        plane = np.moveaxis(self._values, self._axis, 0)[index]
        seen = np.ascontiguousarray(plane[::-1, ::-1].T)
        if self._header.is_colour:
            names = [name for name in ("R", "G", "B", "A") if name in (seen.dtype.names or ())]
            return composite_on_black(np.stack([seen[name] for name in names], axis=-1))
        return self._shown(seen.astype(seen.dtype.newbyteorder("="), copy=False))[..., np.newaxis]

    def _shown(self, stored: np.ndarray) -> np.ndarray:
        bits = 8 * stored.dtype.itemsize
        if stored.dtype.kind == "f" or bits > WIDEST_TABLE_BITS:
            return show_wide(stored, self._display, self._stored_span)
        codes = stored.view(f"u{stored.dtype.itemsize}")
        return look_up(display_table(self._display, bits, stored.dtype.kind == "i"), codes)


def _canonical(values: np.ndarray, header: NiftiHeader) -> np.ndarray:
    """A view with the axes right, anterior, superior."""
    from nibabel.orientations import apply_orientation, io_orientation

    with np.errstate(all="ignore"):
        orientation = io_orientation(header.affine)
    if not np.isfinite(orientation).all():
        raise UnreadableFileError("its orientation is damaged (two axes of the affine coincide)")
    return np.asarray(apply_orientation(values, orientation))


def _spacings(header: NiftiHeader) -> np.ndarray:
    """(3,) millimetres between voxels, in the order of the canonical axes."""
    from nibabel.orientations import io_orientation

    spacings = np.empty(3)
    spacings[io_orientation(header.affine)[:, 0].astype(int)] = np.linalg.norm(header.affine[:3, :3], axis=0)
    return spacings


def _slice_axis(shape: tuple[int, ...]) -> int:
    """The axial axis, unless the volume is one plane across another axis."""
    planes = [axis for axis, size in enumerate(shape) if size == 1]
    axis = planes[0] if len(planes) == 1 else _AXIAL
    if shape[axis] > _MOST_SLICES:
        raise UnreadableFileError(f"its header announces {shape[axis]:,} slices; read are at most {_MOST_SLICES:,}")
    return axis


def _display(header: NiftiHeader, stored_span: Span, policy: WindowPolicy) -> Display:
    """``full`` spreads what the type can hold (for floats and wide types what is there); ``file`` what is there."""
    if policy.kind == "given":
        return Display(header.slope, header.intercept, shown=policy.window)
    if policy.kind == "full":
        return _whole_span(header)
    if header.cal_range is not None:
        return Display(header.slope, header.intercept, shown=Span(*header.cal_range))
    narrow = header.dtype.kind in "iu" and 8 * header.dtype.itemsize <= WIDEST_TABLE_BITS
    return _whole_span(header, stored_span if narrow else None)


def _whole_span(header: NiftiHeader, stored_span: Span | None = None) -> Display:
    """From the lowest to the highest value, of those found or of all; only the sign of the slope matters for it."""
    if header.slope > 0 or stored_span is None:
        return Display(math.copysign(1, header.slope), shown=stored_span)
    return Display(-1.0, shown=Span(-stored_span.high, -stored_span.low))


def _span(stored: np.ndarray) -> Span:
    """The lowest and the highest stored value."""
    if stored.dtype.kind == "f":
        bad = stored.size - int(np.isfinite(stored).sum())
        if bad:
            raise UnreadableFileError(f"{bad} of its {stored.size} values are NaN or infinite")
    return Span(float(stored.min()), float(stored.max()))
