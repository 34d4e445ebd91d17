"""Open DICOM files: with and without their mark, deflated, in gzip, damaged; none unpacks into more than there is room for."""

from __future__ import annotations

import gzip
import io
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crossgraft.compute import require_memory, room_for
from crossgraft.data.medical.display import Display, LookupTable, Window, WindowPolicy
from crossgraft.data.medical.formats import DICOM_MARK, DICOM_MARK_AT, GZIP_MARK, UnreadableFileError

if TYPE_CHECKING:
    from pydicom.dataelem import RawDataElement
    from pydicom.dataset import Dataset, FileDataset
    from pydicom.uid import UID


GREY = ("MONOCHROME1", "MONOCHROME2")
_COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")
_PALETTE = "PALETTE COLOR"
_SAMPLES = {**dict.fromkeys(GREY, 1), **dict.fromkeys(_COLOUR, 3), _PALETTE: 1}
# Only names of the standard are repeated in messages: a damaged header may have something of the patient in that place.
_NOT_READ = ("HSV", "ARGB", "CMYK", "YBR_PARTIAL_422", "YBR_PARTIAL_420", "XYB")
_BITS_ALLOCATED = (1, 8, 16, 32, 64)
_FLOAT_PIXELS = {"FloatPixelData": 32, "DoubleFloatPixelData": 64}
_MOST_FRAMES = 100_000
_FUNCTIONS = ("LINEAR", "LINEAR_EXACT", "SIGMOID")


@dataclass(frozen=True)
class PixelLayout:
    """How the pixels lie in the file.

    Attributes:
        rows: Height of a frame.
        columns: Width of a frame.
        samples: 1 or 3 per pixel.
        bits_allocated: Bits that a sample takes.
        bits_stored: Bits of these that carry the value; the others may hold anything.
        shift: Number of bits below the value that carry something else.
        signed: Whether values are stored in two's complement.
        photometric: The photometric interpretation.
        num_frames: Number of frames, at least 1.
        is_float: Samples are floating-point numbers.
    """

    rows: int
    columns: int
    samples: int
    bits_allocated: int
    bits_stored: int
    shift: int
    signed: bool
    photometric: str
    num_frames: int
    is_float: bool

    @property
    def is_grey(self) -> bool:
        """Intensities, to which windows apply, and not colours."""
        return self.photometric in GREY

    @property
    def frame_bytes(self) -> int:
        """Size of the decoded samples of one frame."""
        return self.rows * self.columns * self.samples * math.ceil(self.bits_allocated / 8)

    @property
    def num_bytes(self) -> int:
        """Uncompressed size of all frames."""
        samples = self.samples * (2 / 3 if self.photometric == "YBR_FULL_422" else 1)
        return math.ceil(self.rows * self.columns * samples * self.bits_allocated * self.num_frames / 8)


def read_layout(dataset: Dataset) -> PixelLayout:
    """The layout of the pixels.

    Raises:
        UnreadableFileError: Something is missing, contradictory, too large or not read.
    """
    rows, columns = _whole(dataset, "Rows"), _whole(dataset, "Columns")
    if rows < 1 or columns < 1:
        raise UnreadableFileError(f"its size is given as {rows}×{columns} pixels")
    photometric = str(dataset.get("PhotometricInterpretation", "")).strip()
    samples = _whole(dataset, "SamplesPerPixel", default=1)
    if photometric not in _SAMPLES:
        problem = f"is {photometric}, which is not read" if photometric in _NOT_READ else "is unknown"
        problem = problem if photometric else "is missing"
        raise UnreadableFileError(f"its PhotometricInterpretation {problem}")
    if samples != _SAMPLES[photometric]:
        raise UnreadableFileError(f"its PhotometricInterpretation is {photometric}, but it has {samples} samples per pixel")
    frames = _whole(dataset, "NumberOfFrames", default=1)
    if not 1 <= frames <= _MOST_FRAMES:
        raise UnreadableFileError(f"its number of frames is given as {frames}")
    float_bits = _float_bits(dataset)
    if float_bits is not None:
        return PixelLayout(rows, columns, samples, float_bits, float_bits, 0, True, photometric, frames, True)
    allocated, stored, shift, signed = _read_bits(dataset)
    if samples == 3 and (signed or (photometric.startswith("YBR") and stored != 8)):
        raise UnreadableFileError(f"its colours ({photometric}, {stored} bits{', signed' if signed else ''}) are not read")
    return PixelLayout(rows, columns, samples, allocated, stored, shift, signed, photometric, frames, False)


def _float_bits(dataset: Dataset) -> int | None:
    """Bits of a floating-point sample, or None for whole numbers; a header without its pixels shows it, too."""
    without_pixels = "BitsStored" not in dataset and "PixelData" not in dataset
    if without_pixels and dataset.get("BitsAllocated") in _FLOAT_PIXELS.values():
        return int(dataset.BitsAllocated)
    return next((bits for name, bits in _FLOAT_PIXELS.items() if name in dataset), None)


def _read_bits(dataset: Dataset) -> tuple[int, int, int, bool]:
    """Bits allocated, bits stored, bits below the value, and whether the value is signed."""
    allocated, stored = _whole(dataset, "BitsAllocated"), _whole(dataset, "BitsStored")
    high = _whole(dataset, "HighBit", default=stored - 1)
    if allocated not in _BITS_ALLOCATED:
        raise UnreadableFileError(f"its BitsAllocated is {allocated}; read are 1, 8, 16, 32 and 64")
    if not 1 <= stored <= allocated or not stored - 1 <= high < allocated:
        raise UnreadableFileError(f"its bits contradict each other: {allocated} allocated, {stored} stored, highest {high}")
    sign = _whole(dataset, "PixelRepresentation")
    if sign not in (0, 1):
        raise UnreadableFileError(f"its PixelRepresentation is {sign}, neither 0 (unsigned) nor 1 (signed)")
    return allocated, stored, high + 1 - stored, sign == 1


def frame_display(dataset: Dataset, layout: PixelLayout, frame: int, policy: WindowPolicy) -> Display:
    """How to show the stored values of one frame of intensities.

    ``full`` leaves a Modality LUT sequence and the padding value aside: both would let different stored values look
    alike. So would an intercept that is large for the slope; only the sign of the slope matters for the full range.

    Raises:
        UnreadableFileError: The rescale slope is 0, a number is none, or the intercept leaves nothing of the stored values.
    """
    inverted = layout.photometric == "MONOCHROME1"
    table = modality_table(dataset)
    slope, intercept = (1.0, 0.0) if table is not None else rescale(dataset, frame)
    if policy.kind == "full":
        return Display(math.copysign(1, slope), inverted=inverted)
    if slope + intercept == intercept or not math.isfinite(slope * 2.0**layout.bits_stored + intercept):
        raise UnreadableFileError(f"its rescale slope and intercept are {slope:g} and {intercept:g}")
    shown = policy.window if policy.kind == "given" else own_window(dataset, layout, frame)
    return Display(slope, intercept, table, shown, inverted, _padding(dataset, layout))


def rescale(dataset: Dataset, frame: int) -> tuple[float, float]:
    """Slope and intercept from stored values to physical ones."""
    item = _frame_item(dataset, frame, "PixelValueTransformationSequence")
    slope = _first_number(item, "RescaleSlope", default=1.0)
    intercept = _first_number(item, "RescaleIntercept", default=0.0)
    if slope == 0 or not math.isfinite(slope) or not math.isfinite(intercept):
        raise UnreadableFileError(f"its rescale slope and intercept are {slope:g} and {intercept:g}")
    return slope, intercept


def modality_table(dataset: Dataset) -> LookupTable | None:
    """The table that takes the place of slope and intercept."""
    sequence = dataset.get("ModalityLUTSequence")
    return _lookup_table(sequence[0], word_type(dataset), signed=False) if sequence else None


def own_window(dataset: Dataset, layout: PixelLayout, frame: int) -> Window | LookupTable | None:
    """The file's VOI table, else the first of its windows, else None; a window without a width above 0 is none."""
    sequence = dataset.get("VOILUTSequence")
    if sequence:
        # The table is asked for rescaled values, so these decide whether its first value may be negative.
        slope, intercept = (1.0, 0.0) if modality_table(dataset) is not None else rescale(dataset, frame)
        return _lookup_table(sequence[0], word_type(dataset), signed=layout.signed or min(slope, intercept) < 0)
    item = _frame_item(dataset, frame, "FrameVOILUTSequence")
    center = _first_number(item, "WindowCenter", default=math.nan)
    width = _first_number(item, "WindowWidth", default=math.nan)
    if not (math.isfinite(center) and math.isfinite(width) and width > 0):
        return None
    function = str(item.get("VOILUTFunction") or "LINEAR").strip()
    if function not in _FUNCTIONS:
        raise UnreadableFileError("its VOILUTFunction is none of LINEAR, LINEAR_EXACT and SIGMOID")
    return Window(center, width, function)


def _padding(dataset: Dataset, layout: PixelLayout) -> tuple[float, float] | None:
    """The stored values that mean "outside the picture"."""
    name = "FloatPixelPadding" if layout.is_float else "PixelPadding"
    value = _first_number(dataset, f"{name}Value", default=math.nan)
    if not math.isfinite(value):
        return None
    limit = _first_number(dataset, f"{name}RangeLimit", default=value)
    ends = sorted(_as_signed(end, layout) for end in (value, limit))
    return ends[0], ends[1]


def _as_signed(value: float, layout: PixelLayout) -> float:
    """Some files write the padding of signed pixels as the unsigned number with the same bits."""
    overflows = layout.signed and not layout.is_float and value >= 2 ** (layout.bits_allocated - 1)
    return value - 2**layout.bits_allocated if overflows else value


def _frame_item(dataset: Dataset, frame: int, sequence: str) -> Dataset:
    """Where a frame's own settings are: in its functional group, in the one of all frames, or in the file itself."""
    per_frame = dataset.get("PerFrameFunctionalGroupsSequence")
    shared = dataset.get("SharedFunctionalGroupsSequence")
    groups = [per_frame[frame]] if per_frame and frame < len(per_frame) else []
    groups += [shared[0]] if shared else []
    for group in groups:
        items = group.get(sequence)
        if items:
            return items[0]
    return dataset


def pixel_aspect(dataset: Dataset) -> float:
    """Height of a pixel over its width, by the first of the elements that say it; 1 where none does.

    PS3.3 C.7.6.3.1.7: PixelAspectRatio is vertical over horizontal; spacings are between rows, then between columns.
    """
    measures = _frame_item(dataset, 0, "PixelMeasuresSequence")
    for item, keyword in (
        (measures, "PixelSpacing"),
        (dataset, "PixelSpacing"),
        (dataset, "ImagerPixelSpacing"),
        (dataset, "NominalScannedPixelSpacing"),
        (dataset, "PixelAspectRatio"),
    ):
        values: Any = item.get(keyword)
        try:
            height, width = (float(value) for value in values)
        except (TypeError, ValueError):
            continue
        if math.isfinite(height) and math.isfinite(width) and min(height, width) > 0:
            return height / width
    return 1.0


def word_type(dataset: Dataset) -> str:
    """The name that numpy gives to the 16-bit words in which the file keeps its tables."""
    is_little_endian = dataset.original_encoding[1]
    return ">u2" if is_little_endian is False else "<u2"


def _lookup_table(item: Dataset, word: str, *, signed: bool) -> LookupTable:
    """A Modality or VOI table (PS3.3 C.11.1.1 and C.11.2.1.1)."""
    descriptor = [int(number) for number in cast("list[int]", item.LUTDescriptor)]
    data = item.LUTData
    if len(descriptor) != 3 or not 1 <= descriptor[2] <= 16:
        raise UnreadableFileError("the description of its look-up table is damaged")
    length, first, bits = descriptor[0] or 2**16, descriptor[1], descriptor[2]
    if isinstance(data, bytes):
        entries = np.frombuffer(data, dtype=np.uint8 if len(data) in (length, length + 1) and bits <= 8 else word)
    else:
        entries = np.atleast_1d(np.asarray(data, dtype=np.int64))
    entries = entries[:length]
    if len(entries) != length or entries.min() < 0 or entries.max() >= 2**bits:
        raise UnreadableFileError(f"its look-up table should have {length} entries of {bits} bits and has others")
    if signed and first >= 2**15:
        first -= 2**16
    return LookupTable(first, bits, entries.astype("<u2").tobytes())


def _whole(dataset: Dataset, keyword: str, *, default: int | None = None) -> int:
    value: Any = dataset.get(keyword)
    if value is None or value == "":
        if default is None:
            raise UnreadableFileError(f"its header lacks {keyword}")
        return default
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise UnreadableFileError(f"its {keyword} is not one whole number") from error


def _first_number(dataset: Dataset, keyword: str, *, default: float) -> float:
    """The first value; an empty one counts as missing."""
    value: Any = dataset.get(keyword)
    if value is not None and not isinstance(value, str | bytes) and hasattr(value, "__len__"):
        value = value[0] if len(value) else None
    if value is None or value == "":
        return default
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise UnreadableFileError(f"its {keyword} is not a number") from error


LISTED_TAGS = (
    "SOPClassUID", "Modality", "PatientID", "NumberOfFrames", "PhotometricInterpretation", "SamplesPerPixel", "Rows",
    "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "RescaleSlope", "RescaleIntercept",
    "ModalityLUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction", "VOILUTSequence",
    "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence", "PixelSpacing", "ImagerPixelSpacing",
    "NominalScannedPixelSpacing", "PixelAspectRatio",
)  # fmt: skip
"""All that is looked at when files are listed. The patient's identity becomes a number at once."""

_UNPACKED_AT_FIRST = 2**26
"""Bytes of a file in gzip that are unpacked before its header is known; a header is smaller."""

_DEFLATED = b"1.2.840.10008.1.2.1.99"
_META_STARTS_AT = DICOM_MARK_AT + len(DICOM_MARK)
_META_LENGTH = struct.Struct("<HH2sHI")  # the element that says how long the rest of the file meta information is
_WINDOW_BITS = -15  # a raw deflate stream
_CHUNK_BYTES = 2**20
_UNDEFINED_LENGTH = 2**32 - 1
_ITEM, _END_OF_ITEMS = (0xFFFE, 0xE000), (0xFFFE, 0xE0DD)


def read_dicom(path: Path, *, header_only: bool = False) -> FileDataset:
    """Parse one file.

    Args:
        path: File with or without the mark of DICOM files (files of old systems have none), as it is or in gzip.
        header_only: Read the ``LISTED_TAGS`` alone.

    Raises:
        UnreadableFileError: It is not DICOM, is cut, or unpacks into more than it announces.
        OutOfMemoryError: It is larger than the memory.
    """
    with path.open("rb") as file:
        packed = file.read(len(GZIP_MARK)) == GZIP_MARK
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        if packed:
            return _parse(io.BytesIO(_unpacked(file, header_only=header_only)), header_only=header_only)
        if header_only:
            return _parse(file, header_only=True)
        with room_for(size, "the file", copies=1):
            content = file.read()  # lengths in a damaged header cannot outgrow a buffer
    return _parse(io.BytesIO(content), header_only=False)


def _unpacked(file: io.BufferedIOBase, *, header_only: bool) -> bytes:
    """What a file in gzip holds: its beginning, or all of it, which may not be more than its own header announces."""
    with gzip.open(file) as stream:
        start = stream.read(_UNPACKED_AT_FIRST)
        if header_only or len(start) < _UNPACKED_AT_FIRST:
            return start
        header = io.BytesIO(start)
        layout = read_layout(_parse(header, header_only=True))
        # Behind the pixels there may be other elements, and lossless compression may make noise a little larger.
        most = header.tell() + layout.num_bytes + layout.num_bytes // 4 + _UNPACKED_AT_FIRST
        with room_for(most, "what its header announces", copies=2):
            content = start + stream.read(most - len(start) + 1)
        if len(content) > most:
            raise UnreadableFileError(f"it unpacks into more than the {layout.num_bytes:,} bytes of pixels that it announces")
        return content


def _parse(stream: io.BufferedIOBase, *, header_only: bool) -> FileDataset:
    import pydicom
    from pydicom.dataset import FileMetaDataset

    start = stream.read(4096)
    _refuse_other_files(start)
    if _DEFLATED in start:
        _refuse_bomb(stream, start)
    stream.seek(0)
    dataset = pydicom.dcmread(
        stream, stop_before_pixels=header_only, specific_tags=list(LISTED_TAGS) if header_only else None, force=True
    )
    if not header_only and not len(dataset) and _has_mark(start):  # pydicom drops all elements where one is cut
        raise UnreadableFileError("the file is truncated")
    if "SOPClassUID" not in dataset and "Rows" not in dataset and not _has_mark(start):
        raise UnreadableFileError("it is not a DICOM file, or its first bytes are damaged")
    if not hasattr(dataset, "file_meta"):
        dataset.file_meta = FileMetaDataset()
    if "TransferSyntaxUID" not in dataset.file_meta:
        dataset.file_meta.TransferSyntaxUID = _plain_transfer_syntax(*dataset.original_encoding)
    if "PixelData" in dataset and dataset.file_meta.TransferSyntaxUID.is_encapsulated:
        _refuse_cut_pixels(cast("RawDataElement", dataset.get_item("PixelData")), stream)  # as it was read
    return dataset


def _has_mark(start: bytes) -> bool:
    return start[DICOM_MARK_AT:_META_STARTS_AT] == DICOM_MARK


def _refuse_other_files(start: bytes) -> None:
    if not start:
        raise UnreadableFileError("the file is empty")
    if not any(start):
        raise UnreadableFileError("it is not a DICOM file: it begins with zeros only")
    if not _has_mark(start) and start[:256].isascii() and start[:256].decode("ascii").replace("\n", "").isprintable():
        raise UnreadableFileError("it is a text file")


def _plain_transfer_syntax(is_implicit: bool | None, is_little_endian: bool | None) -> UID:
    """What a file without file meta information is written in, as its first elements show."""
    from pydicom.uid import ExplicitVRBigEndian, ExplicitVRLittleEndian, ImplicitVRLittleEndian

    if is_implicit:
        return ImplicitVRLittleEndian
    return ExplicitVRLittleEndian if is_little_endian else ExplicitVRBigEndian


def _refuse_cut_pixels(element: RawDataElement, stream: io.BufferedIOBase) -> None:
    """Compressed pixels end with a mark, or, against the standard, after the bytes that were announced."""
    if element.length == _UNDEFINED_LENGTH:
        _refuse_cut_items(stream, element.value_tell)
    elif len(element.value or b"") < element.length:
        raise UnreadableFileError("the file is truncated in its compressed pixels")


def _refuse_cut_items(stream: io.BufferedIOBase, offset: int) -> None:
    """Compressed pixels are items, each with its length, and a mark after the last; pydicom does not miss the mark's end."""
    end = stream.seek(0, io.SEEK_END)
    while offset + 8 <= end:
        stream.seek(offset)
        group, element, length = struct.unpack("<HHI", stream.read(8))
        if (group, element) == _END_OF_ITEMS:
            return
        if (group, element) != _ITEM:
            raise UnreadableFileError(f"its compressed pixels are damaged at byte {offset:,}")
        offset += 8 + length
    raise UnreadableFileError("the file is truncated in its compressed pixels")


def _refuse_bomb(file: io.BufferedIOBase, start: bytes) -> None:
    """Unpack a deflated file piece by piece and keep nothing; pydicom would unpack all of it at once."""
    offset = _META_STARTS_AT + _META_LENGTH.size
    group, element, _, _, length = _META_LENGTH.unpack(start[_META_STARTS_AT:offset].ljust(_META_LENGTH.size))
    if (group, element) != (2, 0) or _DEFLATED not in start[offset : offset + length]:
        return
    stream = zlib.decompressobj(_WINDOW_BITS)
    unpacked, reserved = 0, _UNPACKED_AT_FIRST
    file.seek(offset + length)
    while not stream.eof and (packed := stream.unconsumed_tail or file.read(_CHUNK_BYTES)):
        unpacked += len(stream.decompress(packed, _CHUNK_BYTES))
        if unpacked > reserved:
            reserved = 2 * unpacked
            require_memory(reserved, what="what it unpacks into", advice="Cut or shrink it.")
    if not stream.eof:
        raise UnreadableFileError("the file is truncated")
