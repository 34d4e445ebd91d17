"""NIfTI files: slices of a volume as a radiologist looks at them.

Voxels are brought into the closest order right, anterior, superior (RAS). Slices are axial, from the feet up; the
patient's right is at the left of the image and the front (anterior) at its top. Where the volume is one plane of
another orientation, that plane is the slice: coronal with the head at the top, sagittal with the front at the left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgraft.data._room import room_for
from crossgraft.data.decoding import composite_on_black
from crossgraft.data.medical._problem import UnreadableFileError, named_problems
from crossgraft.data.medical.display import WIDEST_TABLE_BITS, Display, Span, display_table, look_up, show_wide
from crossgraft.data.medical.nifti_file import NiftiHeader, read_first_volume, read_header
from crossgraft.data.medical.windows import WindowPolicy

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
                self._found = _span(stored)
                self._display = _display(self._header, self._found, policy)

    def read_slice(self, index: int) -> np.ndarray:
        """(height, width, 1 or 3) uint8, uint16 or float32 of one slice, counted from 0.

        Raises:
            UnreadableImageError: There is no such slice.
        """
        with named_problems(self._where):
            if index >= self._values.shape[self._axis]:
                raise UnreadableFileError(
                    f"it has {self._values.shape[self._axis]} slices; slice {index + 1} was asked for"
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
            return show_wide(stored, self._display, self._found)
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

    found = np.empty(3)
    found[io_orientation(header.affine)[:, 0].astype(int)] = np.linalg.norm(header.affine[:3, :3], axis=0)
    return found


def _slice_axis(shape: tuple[int, ...]) -> int:
    """The axial axis, unless the volume is one plane across another axis."""
    planes = [axis for axis, size in enumerate(shape) if size == 1]
    axis = planes[0] if len(planes) == 1 else _AXIAL
    if shape[axis] > _MOST_SLICES:
        raise UnreadableFileError(f"its header announces {shape[axis]:,} slices; read are at most {_MOST_SLICES:,}")
    return axis


def _display(header: NiftiHeader, found: Span, policy: WindowPolicy) -> Display:
    """``full`` spreads what the type can hold (for floats and wide types what is there); ``file`` what is there."""
    if policy.kind == "given":
        return Display(header.slope, header.intercept, shown=policy.window)
    if policy.kind == "full":
        return _whole_span(header)
    if header.cal_range is not None:
        return Display(header.slope, header.intercept, shown=Span(*header.cal_range))
    narrow = header.dtype.kind in "iu" and 8 * header.dtype.itemsize <= WIDEST_TABLE_BITS
    return _whole_span(header, found if narrow else None)


def _whole_span(header: NiftiHeader, found: Span | None = None) -> Display:
    """From the lowest to the highest value, of those found or of all; only the sign of the slope matters for it."""
    if header.slope > 0 or found is None:
        return Display(math.copysign(1, header.slope), shown=found)
    return Display(-1.0, shown=Span(-found.high, -found.low))


def _span(stored: np.ndarray) -> Span:
    """The lowest and the highest stored value."""
    if stored.dtype.kind == "f":
        bad = stored.size - int(np.isfinite(stored).sum())
        if bad:
            raise UnreadableFileError(f"{bad} of its {stored.size} values are NaN or infinite")
    return Span(float(stored.min()), float(stored.max()))
