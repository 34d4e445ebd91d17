"""From a file to pixels: 8-bit, 16-bit or float samples, grey or RGB, nothing lost and nothing guessed.

Rules: EXIF rotation is applied; an alpha channel is composited on black; palettes, CMYK and samples of 1 to 4 bits
become 8-bit RGB or grey; 16-bit samples keep their range; float samples become float32 and must lie in [0, 1]. A
damaged file is an error, never a picture with a grey lower half. What the header announces must fit into memory before
anything is unpacked.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageFile, ImageOps

from crossgraft.compute import room_for
from crossgraft.data._pillow_files import (
    PHOTO_EXTENSIONS,
    TIFF_SIGNATURES,
    is_tiff,
    open_lazily,
    quiet_libraries,
    transparent_key,
)
from crossgraft.data._tiff import WHITE_IS_ZERO, UnsupportedLayoutError, layout_of, read_tiff, unsigned_16_bit
from crossgraft.errors import OutOfMemoryError, UnreadableImageError
from crossgraft.paths import why_impossible

# 16-bit colour images through Pillow, which on its own keeps only the high byte of every sample.
#
# Pillow has no 16-bit colour mode: it unpacks such a file into 8 bits and says nothing. Its unpackers come in
# two byte orders, though, and the wrong one hands over the low byte. So the file is decoded twice, once for
# each byte, and the two halves are put together. Filters, interlacing and compression stay in the hands of
# Pillow and libtiff.

_OTHER_ORDER = {"B": "L", "L": "B", "N": "B" if sys.byteorder == "little" else "L"}
"""Big- and little-endian and the byte order of this machine, at the end of rawmodes of Pillow that drop the low byte."""


def is_wide_colour(image: ImageFile.ImageFile) -> bool:
    """Whether Pillow would reduce this image (opened, not yet loaded) from 16 to 8 bits per sample."""
    return not image.mode.startswith(("I", "F")) and any(";16" in _rawmode(tile.args) for tile in image.tile)


def read_wide_colour(reopen: Callable[[], AbstractContextManager[ImageFile.ImageFile]]) -> np.ndarray:
    """Decode all 16 bits.

    Returns:
        (height, width, channels) uint16, channels 2 (grey and alpha), 3 or 4 (colour and alpha), EXIF
        rotation applied.

    Raises:
        UnsupportedLayoutError: The layout of the samples is one that cannot be read byte by byte.
    """
    with reopen() as image:
        if [_rawmode(tile.args) for tile in image.tile] == ["LA;16B"]:
            # A pixel of 16-bit grey and alpha has the four bytes of an 8-bit RGBA pixel, and is unpacked as one.
            image._mode = "RGBA"
            image.tile = [tile._replace(args="RGBA") for tile in image.tile]
            four_bytes = np.asarray(ImageOps.exif_transpose(image)).astype(np.uint16)
            return (four_bytes[..., 0::2] << 8) | four_bytes[..., 1::2]
        high = np.asarray(ImageOps.exif_transpose(image))
    with reopen() as image:
        image.tile = [tile._replace(args=_low_byte_args(tile.args)) for tile in image.tile]
        low = np.asarray(ImageOps.exif_transpose(image))
    return (high.astype(np.uint16) << 8) | low


def _rawmode(args: Any) -> str:
    """The unpacker of a tile; decoders take it alone or as the first of several arguments."""
    return str(args[0] if isinstance(args, tuple) and args else args)


def _low_byte_args(args: Any) -> Any:
    rawmode = _rawmode(args)
    stem, _, order = rawmode.partition(";16")
    if stem not in ("RGB", "RGBA") or order not in _OTHER_ORDER:
        raise UnsupportedLayoutError(
            f"its 16-bit samples have the layout {rawmode}, which is not read; save it as 16-bit RGB PNG"
        )
    swapped = f"{stem};16{_OTHER_ORDER[order]}"
    return (swapped, *args[1:]) if isinstance(args, tuple) else swapped


_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_SIGNATURE_BYTES = 8
_CHUNK_BYTES = 2**20
# The seven passes of an interlaced image: first column, first row, and the steps between them.
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_WHOLE = ((0, 0, 1, 1),)
_EXIF_ORIENTATION = 0x0112


def may_lack_rows(image: Image.Image, pixels: np.ndarray) -> bool:
    """Whether the end of this PNG could be missing. Only then is it worth unpacking it again."""
    if image.format != "PNG":
        return False
    last_row_is_somewhere_else = bool(image.info.get("interlace")) or _EXIF_ORIENTATION in image.getexif()
    return last_row_is_somewhere_else or "palette" in image.info or image.palette is not None or not pixels[-1].any()


def lacks_rows(content: bytes) -> bool:
    """Whether the data of a PNG file unpack into fewer bytes than its header announces."""
    announced, unpacked = 0, 0
    stream = zlib.decompressobj()
    offset = _SIGNATURE_BYTES
    while offset + 8 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, offset)
        body = content[offset + 8 : offset + 8 + length]
        if kind == b"IHDR":
            announced = _bytes_of_rows(body)
        elif kind == b"IDAT":
            while body and not stream.eof:
                unpacked += len(stream.decompress(body, _CHUNK_BYTES))
                body = stream.unconsumed_tail
        offset += 12 + length
    return unpacked + len(stream.flush()) < announced


def _bytes_of_rows(header: bytes) -> int:
    """One byte for the filter of each row, and the samples."""
    width, height, depth, colour, _, _, interlace = struct.unpack(">IIBBBBB", header)
    total = 0
    for left, top, column_step, row_step in _PASSES if interlace else _WHOLE:
        columns = max(0, -(-(width - left) // column_step))
        rows = max(0, -(-(height - top) // row_step))
        total += rows * (1 + -(-columns * _SAMPLES[colour] * depth // 8)) if columns else 0
    return total


IMAGE_EXTENSIONS = (".png", ".jpg", ".jpeg", ".jfif", ".jpe", ".tif", ".tiff", ".bmp", *PHOTO_EXTENSIONS)
"""Extensions that are looked at, in any case of the letters."""

_OTHER_FORMATS = {b"GIF8": "GIF", b"\0\0\0\x0cjP": "JPEG 2000", b"%PDF": "PDF", b"PK": "zip", b"<": "web page (HTML or SVG)"}
# What Pillow and tifffile are known to raise on damaged files.
_DECODER_ERRORS = (
    OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, EOFError, OverflowError, MemoryError,
    struct.error, zlib.error, RuntimeError, ZeroDivisionError, Image.DecompressionBombError,
)  # fmt: skip
_MODES_READ_AS_GREY = ("1", "L", "LA", "La")
_UINT16_MAX = np.uint16(65535)


@dataclass(frozen=True)
class _Content:
    """The bytes of a file that is stored inside another one; opens like a path."""

    content: bytes

    def open(self, mode: Literal["rb"]) -> BytesIO:
        return BytesIO(self.content)


def decode_file(path: Path, *, name: str | None = None) -> np.ndarray:
    """Decode one image file.

    Args:
        path: A PNG, JPEG, TIFF, BMP or WebP file, or AVIF or HEIC where a reader is here; what counts is the
            content, not the extension.
        name: Name of the image in an error; the file name by default.

    Returns:
        (height, width, channels), channels 1 or 3, of type uint8, uint16 (0 … 65535 is black … white) or
        float32.

    Raises:
        UnreadableImageError: The file is missing, empty, damaged, of several pages, too large, or not an
            image.
    """
    with _named_problems(name if name is not None else path.name, path):
        return _decode(path)


def decode_bytes(content: bytes, *, name: str) -> np.ndarray:
    """Decode an image file that was read already, by the rules of ``decode_file``.

    Raises:
        UnreadableImageError: As ``decode_file``.
    """
    source = _Content(content)
    with _named_problems(name, source):
        return _decode(source)


def decode_picture(picture: Image.Image, *, name: str) -> np.ndarray:
    """The samples of an image that Pillow has opened, by the rules of ``decode_file``.

    Raises:
        UnreadableImageError: As ``decode_file``.
    """
    with _named_problems(name):
        _refuse_animation(picture)
        key = transparent_key(picture) if getattr(picture, "tile", None) else None  # Pillow knows it, once it is loaded
        return _to_samples(picture, key, white_is_zero=False)


def has_unnamed_channels(path: Path) -> bool:
    """Whether a TIFF file has channels beyond its colours that it does not name, so that they are not read.

    Cost: reads its header; of a damaged file, which decoding names, the answer is no.
    """
    try:
        with quiet_libraries(), path.open("rb") as file:
            return is_tiff(file) and layout_of(file).unnamed > 0
    except _DECODER_ERRORS:
        return False


@contextmanager
def _named_problems(where: str, source: Path | _Content | None = None) -> Generator[None]:
    try:
        with quiet_libraries():
            yield
    except (UnsupportedLayoutError, OutOfMemoryError) as error:
        raise UnreadableImageError(where, str(error).removesuffix(".")) from error
    except _DECODER_ERRORS as error:
        unknown = source if isinstance(error, Image.UnidentifiedImageError) else None
        raise UnreadableImageError(where, _reason(error) if unknown is None else _why_unidentified(unknown)) from error


@contextmanager
def strict_decoding() -> Generator[None]:
    """Hold Pillow's process-wide switch in the safe position while many images are decoded.

    Another library may have told Pillow to fill truncated images with grey.
    """
    before = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = before


def _decode(source: Path | _Content) -> np.ndarray:
    white_is_zero = False
    with source.open("rb") as file:
        if is_tiff(file):
            layout, samples = read_tiff(file)
            if samples is not None:
                return composite_on_black(samples)
            white_is_zero = layout.photometric == WHITE_IS_ZERO
    with _opened(source) as image:
        _refuse_animation(image)
        with room_for(_announced_bytes(image), f"a picture of {image.height}×{image.width} pixels"):
            key = transparent_key(image)
            if is_wide_colour(image):
                pixels = composite_on_black(_hide_key(read_wide_colour(lambda: _opened(source)), key))
            else:
                pixels = _to_samples(image, key, white_is_zero=white_is_zero)
            if may_lack_rows(image, pixels):
                with source.open("rb") as file:
                    if lacks_rows(file.read()):
                        raise UnsupportedLayoutError("the file is truncated: its last rows are missing")
            return pixels


@contextmanager
def _opened(source: Path | _Content) -> Generator[ImageFile.ImageFile]:
    """The image, not yet decoded."""
    # Pillow gets a file and not a path: given a path it may map an uncompressed TIFF into memory, and then (seen in
    # Pillow 13.0) it scrambles the rows of one that is to be turned by 90°.
    with source.open("rb") as file, open_lazily(file) as image:
        yield image


def _announced_bytes(image: ImageFile.ImageFile) -> int:
    """Size of the samples, none of which is unpacked yet."""
    return image.width * image.height * max(3, len(image.getbands())) * (2 if is_wide_colour(image) else 1)


def _refuse_animation(image: Image.Image) -> None:
    """A photo of several pictures (MPO) has a main one; an animation has none."""
    pages = getattr(image, "n_frames", 1)
    if image.format in ("PNG", "WEBP", "AVIF") and pages > 1:
        raise UnsupportedLayoutError(f"it holds {pages} pages; save each page as a file of its own")


def _to_samples(image: Image.Image, key: object, *, white_is_zero: bool) -> np.ndarray:
    """The array of an image whose samples Pillow keeps whole; of 8 bits, it turns those around in which 0 is white."""
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        samples = _hide_key(_with_channel(unsigned_16_bit(np.asarray(image))), key)
        return _UINT16_MAX - samples if white_is_zero else samples
    if image.mode == "F":
        samples = _with_channel(np.asarray(image, dtype=np.float32))
        return np.float32(1) - samples if white_is_zero else samples
    grey = image.mode in _MODES_READ_AS_GREY
    if key is None and image.has_transparency_data:
        return composite_on_black(np.asarray(image.convert("LA" if grey else "RGBA")))
    mode: Literal["L", "RGB"] = "L" if grey else "RGB"
    return _hide_key(_with_channel(np.asarray(image if image.mode == mode else image.convert(mode))), key)


def _hide_key(pixels: np.ndarray, key: object) -> np.ndarray:
    """Blacken the one colour that a PNG without an alpha channel may declare as transparent."""
    if key is None:
        return pixels
    hidden = (pixels == np.asarray(key, dtype=np.int64)).all(axis=-1, keepdims=True)
    return np.where(hidden, pixels.dtype.type(0), pixels)


def composite_on_black(pixels: np.ndarray) -> np.ndarray:
    """Lay (height, width, channels) samples over black where their alpha (the 2nd or 4th channel) is low."""
    colour_channels = {1: 1, 2: 1, 3: 3, 4: 3}[pixels.shape[-1]]
    colour, alpha = pixels[..., :colour_channels], pixels[..., colour_channels:]
    if alpha.shape[-1] == 0:
        return pixels
    if pixels.dtype.kind == "f":
        return colour * alpha
    full = np.uint64(np.iinfo(pixels.dtype).max)
    product = colour.astype(np.uint64) * alpha
    return ((product + full // 2) // full).astype(pixels.dtype)


def _with_channel(pixels: np.ndarray) -> np.ndarray:
    return pixels[..., np.newaxis] if pixels.ndim == 2 else pixels


def _why_unidentified(source: Path | _Content) -> str:
    with source.open("rb") as file:
        start = file.read(512)
    if not start:
        return "the file is empty"
    if start[128:132] == b"DICM":
        return "it is a DICOM file; give it the extension .dcm"
    if start.startswith(b"\x1f\x8b"):
        return "it is a gzip file; give it the extension .nii.gz or .dcm.gz if that is what it holds, or unpack it"
    if start[344:348] in (b"ni1\0", b"n+1\0") or start[4:8] in (b"ni2\0", b"n+2\0"):
        return "it is a NIfTI file, or the header of one in two files (.hdr and .img); save it as one .nii file"
    for signature, format_name in _OTHER_FORMATS.items():
        if start.startswith(signature):
            return f"it is a {format_name} file, which is not read; save it as PNG"
    if start.startswith(TIFF_SIGNATURES):
        return "its kind of TIFF is not read, or it is damaged; save it as 8- or 16-bit grey or RGB PNG"
    if start.isascii() and start.decode("ascii").replace("\n", "").replace("\r", "").isprintable():
        return "it is a text file"
    if start[4:8] == b"ftyp":
        return "it is an AVIF or HEIC photograph, or a film; photographs need: pip install 'crossgraft[photos]'"
    return "it is not a PNG, JPEG, TIFF, BMP or WebP image, or its first bytes are damaged"


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission is denied"
    if isinstance(error, MemoryError):
        return "not enough memory to decode it"
    if isinstance(error, OSError) and error.errno is not None:  # the text of an OSError has the whole path in it
        return why_impossible(error) or f"the system says: {error.strerror}"
    if isinstance(error, Image.DecompressionBombError):  # that of WebP cannot be switched off
        return "it has more pixels than Pillow reads of its format; save it as PNG, or shrink it"
    if "truncated" in str(error):
        return "the file is truncated"
    return f"the file is damaged ({str(error).rstrip('.') or type(error).__name__})"
