"""DICOM files: what the header says when files are listed, and the pixels of one frame."""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossgraft.compute import room_for
from crossgraft.data.decoding import composite_on_black
from crossgraft.data.medical.dicom_file import (
    PixelLayout,
    frame_display,
    modality_table,
    own_window,
    pixel_aspect,
    read_dicom,
    read_layout,
    rescale,
    word_type,
)
from crossgraft.data.medical.display import WIDEST_TABLE_BITS, Display, Span, WindowPolicy, display_table, look_up, show_wide
from crossgraft.data.medical.formats import UnreadableFileError, named_problems

if TYPE_CHECKING:
    from pydicom.dataset import Dataset, FileDataset
    from pydicom.uid import UID


_COLOURS = ("Red", "Green", "Blue")


def palette_colours(numbers: np.ndarray, dataset: Dataset) -> np.ndarray:
    """(height, width, 3) uint8 or uint16.

    Args:
        numbers: (height, width) stored values.
        dataset: Holds the palette, plain or in segments.

    Raises:
        UnreadableFileError: The palette is missing or damaged.
    """
    descriptor = dataset.get("RedPaletteColorLookupTableDescriptor")
    if descriptor is None or len(descriptor) != 3:
        raise UnreadableFileError("it has no palette, which its PhotometricInterpretation announces")
    length, first, bits = int(descriptor[0]) or 2**16, int(descriptor[1]), int(descriptor[2])
    if "RedPaletteColorLookupTableData" in dataset:
        colours = _plain_palette(dataset, length)
    else:
        colours = _segmented_palette(dataset, length, first, bits)
    indices = np.clip(numbers.astype(np.int64) - first, 0, length - 1)
    return composite_on_black(colours[indices])


def _plain_palette(dataset: Dataset, length: int) -> np.ndarray:
    """(length, 3 or 4): how many bits an entry really has follows from the number of bytes."""
    names = (*_COLOURS, "Alpha") if "AlphaPaletteColorLookupTableData" in dataset else _COLOURS
    columns: list[np.ndarray] = []
    for name in names:
        data = dataset.get(f"{name}PaletteColorLookupTableData")
        if not isinstance(data, bytes) or len(data) not in (length, length + length % 2, 2 * length):
            raise UnreadableFileError(f"its palette of {length} colours is damaged")
        columns.append(np.frombuffer(data, dtype=word_type(dataset) if len(data) == 2 * length else np.uint8)[:length])
    if len({column.dtype for column in columns}) > 1:
        raise UnreadableFileError(f"its palette of {length} colours is damaged")
    return np.stack([column.astype(column.dtype.newbyteorder("=")) for column in columns], axis=-1)


def _segmented_palette(dataset: Dataset, length: int, first: int, bits: int) -> np.ndarray:
    from pydicom.pixels.processing import apply_color_lut

    if bits == 8 and length > 2**8:
        raise UnreadableFileError(f"its palette has {length} colours in segments of 8 bits, which is not read")
    return apply_color_lut(np.arange(first, first + length), dataset)


_HEADER = struct.Struct("<16I")  # the number of segments, then where each begins; 0 for those that are not there
_NO_OPERATION = 128


def missing_from_rle(frame: bytes, num_pixels: int) -> str | None:
    """What a frame lacks at its end, in words; None if nothing.

    A segment holds one byte of each pixel, packed. The last one reaches to the end of the frame, so the last segment of a
    cut frame begins behind its end, or unpacks into fewer bytes than there are pixels. The byte that pads a frame to an even
    length belongs to no run and may be missing.
    """
    if len(frame) < _HEADER.size:
        return f"{len(frame)} of the {_HEADER.size} bytes of its header are there"
    num_segments, *starts = _HEADER.unpack_from(frame)
    if not 1 <= num_segments <= len(starts):
        return None  # damaged rather than cut: the decoder refuses it
    start = starts[num_segments - 1]
    if start >= len(frame):
        return f"its last segment begins at byte {start:,}, and {len(frame):,} bytes are there"
    num_unpacked = _unpacked_length(frame, start, num_pixels)
    return None if num_unpacked >= num_pixels else f"its last segment unpacks into {num_unpacked:,} of {num_pixels:,} bytes"


def _unpacked_length(frame: bytes, offset: int, enough: int) -> int:
    """How many bytes the runs from ``place`` on give, counted until there are enough."""
    num_unpacked = 0
    while num_unpacked < enough and offset + 1 < len(frame):  # a run is at least two bytes
        head = frame[offset]
        if head == _NO_OPERATION:
            offset += 1
        elif head > _NO_OPERATION:
            num_unpacked += 257 - head
            offset += 2
        else:
            num_unpacked += min(head + 1, len(frame) - offset - 1)
            offset += head + 2
    return num_unpacked


_JPEG_START = b"\xff\xd8"
_JPEG_2000_START = b"\xff\x4f\xff\x51"  # start of the codestream, and of the segment of sizes
# The segments with which a frame of JPEG (T.81, table B.1) or JPEG-LS (T.87) begins; C4, C8 and CC mean something else.
_FRAME_MARKERS = {*range(0xC0, 0xD0), 0xF7} - {0xC4, 0xC8, 0xCC}
_WITHOUT_LENGTH = {0x01, *range(0xD0, 0xD8)}


def announced_size(frame: bytes) -> tuple[int, int] | None:
    """Height and width of a frame of JPEG, JPEG-LS or JPEG 2000; None where it does not say them."""
    if frame.startswith(_JPEG_START):
        return _jpeg_size(frame)
    offset = frame.find(_JPEG_2000_START, 0, 4096)  # JPEG 2000 may stand in boxes
    if offset < 0 or offset + 24 > len(frame):
        return None
    right, bottom, left, top = struct.unpack_from(">4I", frame, offset + 8)
    return bottom - top, right - left


def _jpeg_size(frame: bytes) -> tuple[int, int] | None:
    offset = len(_JPEG_START)
    while offset + 9 <= len(frame) and frame[offset] == 0xFF:
        marker = frame[offset + 1]
        if marker in _FRAME_MARKERS:
            height, width = struct.unpack_from(">HH", frame, offset + 5)
            return (height, width) if height and width else None
        if marker == 0xFF:  # fill bytes may precede a marker
            offset += 1
        elif marker in _WITHOUT_LENGTH:
            offset += 2
        else:
            offset += 2 + struct.unpack_from(">H", frame, offset + 2)[0]
    return None


_PIXEL_ELEMENTS = ("PixelData", "FloatPixelData", "DoubleFloatPixelData")
# Unused bits are taken off here, because pydicom assumes that they lie above the value; and the header says how many
# frames there are.
_DECODER_OPTIONS: dict[str, Any] = {"correct_unused_bits": False, "allow_excess_frames": False}


@dataclass(frozen=True)
class DicomFacts:
    """What the listing needs to know of one file.

    Attributes:
        num_slices: Frames.
        patient: The patient's identity as it stands in the file; goes nowhere but into a group number.
        shown: Display under the policy ``file``: ``own window``, ``own table``, ``full range`` or ``colours``.
        scale: Stored range, slope and intercept, which ``full`` spreads from black to white.
        is_ct: Whether its values are Hounsfield units.
        aspect: Height of a pixel over its width; 1 where the file does not say.
    """

    num_slices: int
    patient: str = field(repr=False)
    shown: str
    scale: tuple[object, ...]
    is_ct: bool
    aspect: float = 1.0


def dicom_facts(path: Path, where: str) -> DicomFacts:
    """Read the header.

    Raises:
        UnreadableImageError: There is none, or it contradicts itself.
    """
    with named_problems(where):
        dataset = read_dicom(path, header_only=True)
        layout = read_layout(dataset)
        shown, scale = "colours", ()
        if layout.is_grey:
            window = own_window(dataset, layout, 0)
            shown = "full range" if window is None else f"own {'window' if hasattr(window, 'width') else 'table'}"
            slope = (1.0, 0.0) if modality_table(dataset) is not None else rescale(dataset, 0)
            scale = (layout.bits_stored, layout.signed, *slope)
        patient = str(dataset.get("PatientID") or "").strip()
        return DicomFacts(
            layout.num_frames, patient, shown, scale, str(dataset.get("Modality", "")) == "CT", pixel_aspect(dataset)
        )


class DicomVolume:
    """One open file, of one frame or several; may be asked by several threads."""

    def __init__(self, path: Path, where: str, policy: WindowPolicy) -> None:
        """Parse the file and check its header.

        Raises:
            UnreadableImageError: It is damaged, holds no pixels, or is compressed in a way that cannot be undone.
        """
        self._where = where
        self._policy = policy
        self._lock = threading.Lock()  # pydicom parses elements when they are first asked for
        self._shown_span: Span | None = None
        with named_problems(where):
            self._dataset = read_dicom(path)
            _refuse_without_pixels(self._dataset)
            self._layout = read_layout(self._dataset)
            _check_length(self._dataset, self._layout)

    def read_slice(self, index: int) -> np.ndarray:
        """(height, width, 1 or 3) uint8, uint16 or float32 of one frame, counted from 0.

        Raises:
            UnreadableImageError: There is no such frame, or its pixels are damaged.
        """
        with self._lock, named_problems(self._where):
            layout = self._layout
            if index >= layout.num_frames:
                raise UnreadableFileError(f"it has {layout.num_frames} frames; frame {index + 1} was asked for")
            with room_for(layout.frame_bytes, f"a frame of {layout.rows}×{layout.columns} pixels"):
                stored = self._stored(index)
            if layout.photometric == "PALETTE COLOR":
                return palette_colours(stored[..., 0], self._dataset)
            if not layout.is_grey:
                return _colours(stored, layout)
            return self._shown(stored, frame_display(self._dataset, layout, index, self._policy))

    def _shown(self, stored: np.ndarray, display: Display) -> np.ndarray:
        layout = self._layout
        if not layout.is_float and layout.bits_stored <= WIDEST_TABLE_BITS:
            return look_up(display_table(display, layout.bits_stored, layout.signed), _codes(stored, layout))
        if self._shown_span is None:
            frames = (_values(self._stored(index), layout) for index in range(layout.num_frames))
            self._shown_span = _joined([_span(frame, display) for frame in frames])
        return show_wide(_values(stored, layout), display, self._shown_span)

    def _stored(self, index: int) -> np.ndarray:
        """(height, width, samples) of one frame, with whatever the unused bits hold."""
        from pydicom.pixels.decoders.base import get_decoder
        from pydicom.uid import RLELossless

        syntax = self._dataset.file_meta.TransferSyntaxUID
        try:
            decoder = get_decoder(syntax)
            if syntax.is_encapsulated:
                self._refuse_frame(index, is_rle=syntax == RLELossless)
            array, properties = decoder.as_array(self._dataset, index=index, **_DECODER_OPTIONS)
        except UnreadableFileError:
            raise
        except Exception as error:
            # Decoders are plug-ins of pydicom; on damaged data each raises what it likes.
            raise UnreadableFileError(_why_not_decoded(syntax, error)) from error
        layout = self._layout
        if layout.samples == 3 and properties["photometric_interpretation"] not in ("RGB", "YBR_ICT", "YBR_RCT"):
            raise UnreadableFileError(f"its colours ({layout.photometric}) are not read")
        expected = (layout.rows, layout.columns, layout.samples)
        return array.astype(array.dtype.newbyteorder("="), copy=False).reshape(expected)

    def _refuse_frame(self, index: int, *, is_rle: bool) -> None:
        """A compressed frame that is cut, or that names another size: a decoder takes the memory for that one."""
        from pydicom.encaps import get_frame

        dataset, layout = self._dataset, self._layout
        tables = [dataset.get(name) for name in ("ExtendedOffsetTable", "ExtendedOffsetTableLengths")]
        frame = get_frame(
            dataset.PixelData,
            index,
            number_of_frames=layout.num_frames,
            extended_offsets=(tables[0], tables[1]) if tables[0] and tables[1] else None,
        )
        if is_rle and (missing := missing_from_rle(frame, layout.rows * layout.columns)) is not None:
            raise UnreadableFileError(f"compressed frame {index + 1} of {layout.num_frames} is truncated: {missing}")
        size = announced_size(frame)
        if size is not None and size != (layout.rows, layout.columns):
            height, width = size
            raise UnreadableFileError(
                f"its header contradicts itself: {layout.rows}×{layout.columns} pixels are announced, and its compressed "
                f"frame has {height}×{width}"
            )


def _refuse_without_pixels(dataset: FileDataset) -> None:
    from pydicom._uid_dict import UID_dictionary

    present = [name for name in _PIXEL_ELEMENTS if name in dataset]
    if len(present) == 1 and len(dataset[present[0]].value or b"") > 0:
        return
    if len(present) > 1:
        raise UnreadableFileError("it holds pixels twice, as whole numbers and as floats")
    kind = str(dataset.get("SOPClassUID") or dataset.file_meta.get("MediaStorageSOPClassUID") or "")
    known = UID_dictionary.get(kind)  # any other text of the header is not passed on
    raise UnreadableFileError(f"it holds no pixels{f' ({known[0]})' if known else ''}")


def _check_length(dataset: FileDataset, layout: PixelLayout) -> None:
    """Uncompressed pixels must fill what the header says; behind them there may be zeros.

    Anything else means that rows, columns, bits or frames are not what the header says, and the picture would be skewed.
    """
    if dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        return
    element = next(name for name in _PIXEL_ELEMENTS if name in dataset)
    pixels = dataset[element].value
    if len(pixels) < layout.num_bytes:
        raise UnreadableFileError(
            f"the file is truncated, or its header is wrong: {layout.num_bytes:,} bytes of pixels are announced and "
            f"{len(pixels):,} are there"
        )
    if len(pixels) > layout.num_bytes + layout.num_bytes % 2 and any(pixels[layout.num_bytes :]):
        raise UnreadableFileError(
            f"its header is wrong: {layout.num_bytes:,} bytes of pixels are announced and {len(pixels):,} are there"
        )


def _codes(stored: np.ndarray, layout: PixelLayout) -> np.ndarray:
    """The bits that carry the value, as an unsigned number."""
    unsigned = stored.view(stored.dtype.str.replace("i", "u"))
    if layout.shift == 0 and layout.bits_stored == layout.bits_allocated:
        return unsigned
    return (unsigned >> layout.shift) & (2**layout.bits_stored - 1)


def _values(stored: np.ndarray, layout: PixelLayout) -> np.ndarray:
    """The stored values of samples that no table is made for."""
    if layout.is_float or (layout.shift == 0 and layout.bits_stored == layout.bits_allocated):
        return stored
    codes = _codes(stored, layout).astype(np.int64)
    return np.where(codes >= 2 ** (layout.bits_stored - 1), codes - 2**layout.bits_stored, codes) if layout.signed else codes


def _colours(stored: np.ndarray, layout: PixelLayout) -> np.ndarray:
    codes = _codes(stored, layout)
    if layout.bits_stored > WIDEST_TABLE_BITS:
        return (codes / (2**layout.bits_stored - 1)).astype(np.float32)
    return look_up(display_table(Display(), layout.bits_stored, False), codes)


def _span(stored: np.ndarray, display: Display) -> Span | None:
    """The lowest and the highest value of the picture, without padding; None if there is nothing but padding."""
    bad = stored.size - int(np.isfinite(stored).sum())
    if bad:
        raise UnreadableFileError(f"{bad} of its {stored.size} values are NaN or infinite")
    if display.padding is not None:
        stored = stored[(stored < display.padding[0]) | (stored > display.padding[1])]
    return Span(float(stored.min()), float(stored.max())) if stored.size else None


def _joined(spans: list[Span | None]) -> Span:
    known = [span for span in spans if span is not None]
    return Span(min((span.low for span in known), default=0.0), max((span.high for span in known), default=0.0))


_DECODER_PACKAGES = {
    "JPEG 2000": "pylibjpeg pylibjpeg-openjpeg",
    "High-Throughput": "pylibjpeg pylibjpeg-openjpeg",
    "JPEG": "pylibjpeg pylibjpeg-libjpeg",
}


def _why_not_decoded(syntax: UID, error: Exception) -> str:
    """In the user's words; what a decoder says is about pixels, so nothing of the patient is in it."""
    if not syntax.is_encapsulated:
        return f"its pixels cannot be decoded ({error})"
    name = syntax.name if syntax.name != syntax else "an unknown compression"
    package = next((names for start, names in _DECODER_PACKAGES.items() if start in name), None)
    if package is None:
        return f"its pixels ({name}) cannot be decoded"
    if isinstance(error, RuntimeError | NotImplementedError | ImportError):
        return f"its pixels are compressed ({name}); if the file is sound, this reads it: pip install {package}"
    return f"its pixels ({name}) are damaged or truncated"
