"""Open DICOM files: with and without their mark, deflated, in gzip, damaged; none unpacks into more than there is room for."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, cast

from crossgraft.compute import require_memory
from crossgraft.data._room import room_for
from crossgraft.data.medical._problem import UnreadableFileError
from crossgraft.data.medical.dicom_header import read_layout
from crossgraft.data.medical.formats import DICOM_MARK, DICOM_MARK_AT, GZIP_MARK

if TYPE_CHECKING:
    from pydicom.dataelem import RawDataElement
    from pydicom.dataset import FileDataset
    from pydicom.uid import UID

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
            raise UnreadableFileError(
                f"it unpacks into more than the {layout.num_bytes:,} bytes of pixels that it announces"
            )
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
        stream,
        stop_before_pixels=header_only,
        specific_tags=list(LISTED_TAGS) if header_only else None,
        force=True,
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


def _refuse_cut_items(stream: io.BufferedIOBase, place: int) -> None:
    """Compressed pixels are items, each with its length, and a mark after the last; pydicom does not miss the mark's end."""
    end = stream.seek(0, io.SEEK_END)
    while place + 8 <= end:
        stream.seek(place)
        group, element, length = struct.unpack("<HHI", stream.read(8))
        if (group, element) == _END_OF_ITEMS:
            return
        if (group, element) != _ITEM:
            raise UnreadableFileError(f"its compressed pixels are damaged at byte {place:,}")
        place += 8 + length
    raise UnreadableFileError("the file is truncated in its compressed pixels")


def _refuse_bomb(file: io.BufferedIOBase, start: bytes) -> None:
    """Unpack a deflated file piece by piece and keep nothing; pydicom would unpack all of it at once."""
    place = _META_STARTS_AT + _META_LENGTH.size
    group, element, _, _, length = _META_LENGTH.unpack(start[_META_STARTS_AT:place].ljust(_META_LENGTH.size))
    if (group, element) != (2, 0) or _DEFLATED not in start[place : place + length]:
        return
    stream = zlib.decompressobj(_WINDOW_BITS)
    unpacked, asked = 0, _UNPACKED_AT_FIRST
    file.seek(place + length)
    while not stream.eof and (packed := stream.unconsumed_tail or file.read(_CHUNK_BYTES)):
        unpacked += len(stream.decompress(packed, _CHUNK_BYTES))
        if unpacked > asked:
            asked = 2 * unpacked
            require_memory(asked, what="what it unpacks into", advice="Cut or shrink it.")
    if not stream.eof:
        raise UnreadableFileError("the file is truncated")
