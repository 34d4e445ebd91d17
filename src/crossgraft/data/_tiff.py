"""How the samples lie in a TIFF, as its tags say, and which of these layouts are read by whom.

TIFF stores samples in more layouts than Pillow knows, and some it opens and misreads without a word. So the tags are looked at
first: Pillow gets the layouts that it reads faithfully, tifffile the others, and what neither reads is named.
"""

from __future__ import annotations

import io
import math
import sys
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from crossgraft.compute import room_for
from crossgraft.data._pillow_files import OpenFile

WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE, CMYK, YCBCR = 0, 1, 2, 3, 5, 6
UNSPECIFIED, PREMULTIPLIED, ALPHA = 0, 1, 2

_COLOURS = {WHITE_IS_ZERO: 1, BLACK_IS_ZERO: 1, RGB: 3, PALETTE: 1, CMYK: 4, YCBCR: 3}
_OTHER_COLOURS = {
    4: "a transparency mask", 8: "CIELab", 9: "ICCLab", 10: "ITULab", 32803: "a colour filter array", 32844: "LogL",
    32845: "LogLuv", 34892: "linear raw",
}  # fmt: skip
_NAMES = {WHITE_IS_ZERO: "grey", BLACK_IS_ZERO: "grey", RGB: "RGB", PALETTE: "palette", CMYK: "CMYK", YCBCR: "YCbCr"}
_UNSIGNED, _SIGNED, _FLOAT = 1, 2, 3
_KINDS = {_UNSIGNED: "unsigned", _SIGNED: "signed", _FLOAT: "float", 5: "complex", 6: "complex"}
_NUMBERS = {_UNSIGNED: (8, 16, 32, 64), _SIGNED: (16, 32, 64), _FLOAT: (16, 32, 64)}  # bits that tifffile reads
_NO_COMPRESSION, _PACKBITS = 1, 32773
DEFLATE = (8, 32946)
_OWN_OF_TIFFFILE = (_NO_COMPRESSION, _PACKBITS, *DEFLATE)  # what it undoes without another package
_SUBSAMPLING = 530


class UnsupportedLayoutError(ValueError):
    """The file is sound, but its samples lie in it in a way that cannot be read faithfully."""


@dataclass(frozen=True)
class TiffLayout:
    """What the tags of a page say.

    Attributes:
        photometric: Meaning of the samples.
        kind: 1 unsigned, 2 signed, 3 float.
        bits: Bits per sample.
        samples: Samples per pixel.
        extras: Meaning of each sample beyond the colours.
        in_planes: Whether each sample of all pixels is stored together.
        compression: Its number.
        predictor: Its number; 1 for none.
        byte_order: ``little`` or ``big``.
    """

    photometric: int
    kind: int
    bits: int
    samples: int
    extras: tuple[int, ...]
    in_planes: bool
    compression: int
    predictor: int
    byte_order: str

    @property
    def colours(self) -> int:
        """Samples of a pixel that are colours or grey."""
        return _COLOURS[self.photometric]

    @property
    def alpha(self) -> int | None:
        """PREMULTIPLIED or ALPHA, or None without transparency."""
        return next((extra for extra in self.extras[:1] if extra in (PREMULTIPLIED, ALPHA)), None)

    @property
    def unnamed(self) -> int:
        """Samples of a pixel beyond the colours that the file does not name, and that are not read."""
        return sum(extra == UNSPECIFIED for extra in self.extras)

    def describe(self) -> str:
        """In words, for messages."""
        alpha = {None: "", ALPHA: " with alpha", PREMULTIPLIED: " with premultiplied alpha"}[self.alpha]
        planes = " in separate planes" if self.in_planes else ""
        return f"{self.bits}-bit {_KINDS[self.kind]} {_NAMES[self.photometric]}{alpha}{planes}"


def read_layout(page: Any) -> TiffLayout:
    """The layout of a page of tifffile.

    Raises:
        UnsupportedLayoutError: Nobody here reads that kind of samples.
        ValueError: The tags are damaged.
    """
    photometric = int(page.photometric)
    if photometric not in _COLOURS:
        name = _OTHER_COLOURS.get(photometric, f"photometric interpretation {photometric}")
        raise UnsupportedLayoutError(f"its colours ({name}) are not read; save it as RGB")
    kind, bits = _one_of(page, 339, "SampleFormat", default=_UNSIGNED), _one_of(page, 258, "BitsPerSample", default=1)
    if kind not in _NUMBERS:
        name = "complex numbers" if _KINDS.get(kind) == "complex" else f"of the undefined type {kind}"
        raise UnsupportedLayoutError(f"its samples are {name}; save it as 8- or 16-bit grey or RGB")
    if (kind, bits) == (_SIGNED, 8):
        raise UnsupportedLayoutError("its samples are signed 8-bit numbers; rescale them to 0 … 255")
    if int(getattr(page, "imagedepth", 1)) != 1:
        raise UnsupportedLayoutError("it is a volume; save each slice as a file of its own")
    if int(page.planarconfig) not in (1, 2) and int(page.samplesperpixel) > 1:  # tifffile would leave memory as it found it
        raise ValueError(f"its PlanarConfiguration is {int(page.planarconfig)}, neither 1 nor 2")
    layout = TiffLayout(
        photometric=photometric,
        kind=kind,
        bits=bits,
        samples=int(page.samplesperpixel),
        extras=tuple(int(extra) for extra in page.extrasamples),
        in_planes=int(page.planarconfig) == 2 and int(page.samplesperpixel) > 1,
        compression=int(page.compression),
        predictor=int(page.predictor),
        byte_order="little" if page.parent.byteorder == "<" else "big",
    )
    _refuse_undeclared_samples(layout)
    _refuse_other_colours(page, layout)
    return layout


def _one_of(page: Any, code: int, name: str, *, default: int) -> int:
    """The value of a tag that has one for each sample, all the same."""
    tag = page.tags.get(code)
    value = default if tag is None else tag.value
    values = tuple(value) if isinstance(value, tuple | list) else (value,)
    if len(set(values)) != 1:
        raise UnsupportedLayoutError(f"its samples differ ({name} {', '.join(map(str, values))}); save it as RGB PNG")
    return int(values[0])


def _refuse_undeclared_samples(layout: TiffLayout) -> None:
    beyond = layout.samples - layout.colours
    if beyond < 0:
        raise UnsupportedLayoutError(f"its header contradicts itself: {layout.samples} samples per pixel in {layout.describe()}")
    if layout.colours == 1 and beyond and (layout.alpha is None or beyond > 1):
        raise UnsupportedLayoutError(
            f"it has {layout.samples} channels, of which only one is said to be grey; save the one to be used, or RGB"
        )
    if any(extra in (PREMULTIPLIED, ALPHA) for extra in layout.extras[1:]):
        raise UnsupportedLayoutError("its transparency does not follow its colours; save it as PNG")


def _refuse_other_colours(page: Any, layout: TiffLayout) -> None:
    """Colours that Pillow would take for others."""
    if layout.photometric == PALETTE and page.colormap is not None and 0 < page.colormap.max() < 256:
        raise UnsupportedLayoutError("its palette has 8 bits where a TIFF has 16; save it as RGB")
    subsampling = page.tags.get(_SUBSAMPLING)
    subsampled = subsampling is None or tuple(subsampling.value) != (1, 1)
    if layout.photometric == YCBCR and layout.compression == _NO_COMPRESSION and subsampled:
        raise UnsupportedLayoutError("its YCbCr colours are subsampled without compression; save it as RGB")


def _is_right_in_pillow(layout: TiffLayout) -> bool:
    """Whether Pillow decodes all samples of this layout, unchanged."""
    unsigned, first_extra = layout.kind == _UNSIGNED, layout.extras[0] if layout.extras else None
    if layout.photometric in (PALETTE, YCBCR):
        return unsigned and layout.bits <= 8 and layout.samples == layout.colours and not layout.in_planes
    if layout.photometric == CMYK:
        return unsigned and layout.bits == 8 and layout.samples == layout.colours
    if layout.samples == 1:
        if unsigned and layout.bits <= 16:
            return layout.bits <= 8 or layout.byte_order == "little" or layout.photometric == BLACK_IS_ZERO
        if unsigned and (layout.byte_order == "big" or layout.compression in _OWN_OF_TIFFFILE):
            return False
        # libtiff unpacks into the byte order of the machine, and Pillow then reads these in that of the file.
        in_file_order = layout.compression == _NO_COMPRESSION or layout.byte_order == sys.byteorder
        may_invert = layout.kind == _FLOAT or layout.photometric == BLACK_IS_ZERO
        readable = layout.bits == 32 or (layout.kind, layout.bits) == (_SIGNED, 16)
        return readable and in_file_order and may_invert
    if layout.bits == 8 and unsigned and layout.in_planes:
        return layout.samples == layout.colours
    if layout.photometric == RGB and unsigned and layout.bits == 16 and not layout.in_planes:
        return first_extra in (None, ALPHA) and layout.samples <= 4
    plain_alpha = first_extra != PREMULTIPLIED and layout.photometric != WHITE_IS_ZERO
    return unsigned and layout.bits == 8 and not layout.in_planes and plain_alpha


def _why_not_by_tifffile(layout: TiffLayout) -> str | None:
    """What tifffile alone does not undo: it needs a decoder that is not here, or has no known black and white."""
    wide_alpha = layout.alpha is not None and layout.kind != _FLOAT and (layout.kind == _SIGNED or layout.bits > 16)
    unclear_white = layout.photometric == WHITE_IS_ZERO and layout.kind != _FLOAT and layout.bits > 16
    known = layout.photometric in (WHITE_IS_ZERO, BLACK_IS_ZERO, RGB) and layout.bits in _NUMBERS[layout.kind]
    if not known or wide_alpha or unclear_white or (layout.kind == _SIGNED and layout.photometric == WHITE_IS_ZERO):
        return f"{layout.describe()} is not read; save it as 8- or 16-bit grey or RGB PNG"
    if layout.compression not in _OWN_OF_TIFFFILE or layout.predictor not in (1, 2):
        return f"{layout.describe()} is not read in its compression; save it without compression, or as PNG"
    return None


_UINT16_MAX = 65535
_ORIENTATION = 274
_TURNED = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: np.swapaxes(pixels, 0, 1),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.swapaxes(pixels[::-1, ::-1], 0, 1),
    8: lambda pixels: np.rot90(pixels),
}


def read_tiff(file: OpenFile) -> tuple[TiffLayout, np.ndarray | None]:
    """The layout of the only page, and its samples where Pillow would not give them.

    Returns:
        (height, width, colours, or colours and alpha) uint8, uint16 or float32, upright, 0 black; None: Pillow reads it.

    Raises:
        UnsupportedLayoutError: Nobody here reads it faithfully.
        ValueError: It is damaged.
        OutOfMemoryError: It announces more than there is room for.
    """
    import tifffile

    try:
        return _read(file)
    except tifffile.TiffFileError as error:  # a ValueError in newer versions only
        raise ValueError(str(error)) from error


def layout_of(file: OpenFile) -> TiffLayout:
    """The layout of the first page; reads no samples.

    Raises:
        UnsupportedLayoutError, ValueError: As ``read_tiff``.
    """
    import tifffile

    with tifffile.TiffFile(file) as tiff:
        return read_layout(tiff.pages[0])


def _read(file: OpenFile) -> tuple[TiffLayout, np.ndarray | None]:
    import tifffile

    with tifffile.TiffFile(file) as tiff:
        if len(tiff.pages) == 0:
            raise ValueError("no page in it")
        if len(tiff.pages) > 1:
            raise UnsupportedLayoutError(f"it holds {len(tiff.pages)} pages; save each page as a file of its own")
        page: Any = tiff.pages[0]
        layout = read_layout(page)
        segments, unpacked_bytes = _segments(page, layout)
        height, width = int(page.imagelength), int(page.imagewidth)
        most = math.inf if Image.MAX_IMAGE_PIXELS is None else 2 * Image.MAX_IMAGE_PIXELS  # above that, Pillow raises
        in_pillow = _is_right_in_pillow(layout)
        if in_pillow and height * width <= most:
            return layout, None
        if reason := _why_not_by_tifffile(layout):
            if in_pillow:
                reason = (
                    f"it has {height}×{width} pixels, more than the {most:,} that are read of {layout.describe()} in this "
                    "compression; save it without compression, or shrink it"
                )
            raise UnsupportedLayoutError(reason)
        _refuse_bad_segments(segments, unpacked_bytes, file, layout)
        announced = height * width * layout.samples * layout.bits // 8
        with room_for(announced, f"a picture of {height}×{width} pixels"):
            samples = np.asarray(page.asarray(squeeze=False, maxworkers=1))
            separate, _, height, width, together = samples.shape
            upright = samples[:, 0].transpose(1, 2, 0, 3).reshape(height, width, separate * together)
            tag = page.tags.get(_ORIENTATION)
            turned = _TURNED.get(1 if tag is None else int(tag.value), _TURNED[1])(upright)
            return layout, np.ascontiguousarray(_known_range(turned, layout))


def _known_range(samples: np.ndarray, layout: TiffLayout) -> np.ndarray:
    """8- and 16-bit samples as they are, wider whole numbers as 16-bit, floats as float32; unspecified samples left out."""
    samples = samples[..., : layout.colours + (layout.alpha == ALPHA)]  # premultiplied colours lie on black already
    if layout.kind == _FLOAT:
        samples = _single_precision(samples)
    elif layout.bits > 8:
        samples = unsigned_16_bit(samples)
    if layout.photometric == WHITE_IS_ZERO:
        white = np.asarray(1 if layout.kind == _FLOAT else 2**layout.bits - 1, dtype=samples.dtype)
        samples = np.concatenate([white - samples[..., :1], samples[..., 1:]], axis=-1)
    return samples


def _single_precision(samples: np.ndarray) -> np.ndarray:
    limit = float(np.finfo(np.float32).max)
    if np.isfinite(samples).all() and samples.size and np.abs(samples.astype(np.float64)).max() > limit:
        raise UnsupportedLayoutError(f"its samples go from {samples.min():g} to {samples.max():g}; rescale them to 0 … 1")
    with np.errstate(over="ignore"):  # beside NaN, which is named when images are looked at
        return samples.astype(np.float32)


def unsigned_16_bit(samples: np.ndarray) -> np.ndarray:
    """Whole-number samples of more than 8 bits as uint16.

    Raises:
        UnsupportedLayoutError: They do not lie in the unsigned 16-bit range, so nobody knows what is white.
    """
    if samples.size and (samples.min() < 0 or samples.max() > _UINT16_MAX):
        span = f"{samples.min()} to {samples.max()}"
        raise UnsupportedLayoutError(f"its samples go from {span}; rescale them to 0 … {_UINT16_MAX}")
    return samples.astype(np.uint16)


def _segments(page: Any, layout: TiffLayout) -> tuple[list[tuple[int, int]], int]:
    """All strips or tiles that the size of the picture asks for. Where some are missing, Pillow and tifffile leave black rows.

    Returns:
        Place and length of each, and the bytes that a whole one unpacks into.

    Raises:
        ValueError: There are fewer.
    """
    if page.is_tiled:
        rows, columns = int(page.tilelength), int(page.tilewidth)
    else:
        rows, columns = min(int(page.rowsperstrip), int(page.imagelength)), int(page.imagewidth)
    if min(rows, columns) < 1:
        raise ValueError("strips or tiles without pixels")
    planes = layout.samples if layout.in_planes else 1
    expected = math.ceil(page.imagelength / rows) * math.ceil(page.imagewidth / columns) * planes
    segments = list(zip(page.dataoffsets, page.databytecounts, strict=False))[:expected]
    if len(segments) < expected:
        raise ValueError("truncated: strips or tiles are missing")
    return segments, rows * columns * (layout.samples // planes) * layout.bits // 8


def _refuse_bad_segments(segments: list[tuple[int, int]], most: int, file: OpenFile, layout: TiffLayout) -> None:
    """Every strip or tile must lie in the file and must not unpack into more than its place in the picture.

    tifffile fills what is missing with zeros, and unpacks whatever is there.
    """
    end = file.seek(0, io.SEEK_END)
    for offset, length in segments:
        if offset <= 0 or length <= 0 or offset + length > end:
            raise ValueError("truncated: a strip or tile lies outside the file")
        if layout.compression in DEFLATE:
            file.seek(offset)
            packed, stream, unpacked = file.read(length), zlib.decompressobj(), 0
            while packed and not stream.eof:
                unpacked += len(stream.decompress(packed, 2**20))
                packed = stream.unconsumed_tail
                if unpacked > most:
                    raise ValueError(f"a strip or tile unpacks into more than {most:,} bytes")
