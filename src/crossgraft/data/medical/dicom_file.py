"""Open DICOM files: with and without their mark, deflated, damaged; no file takes more memory than is reasonable."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.data.medical._problem import UnreadableFileError
from crossgraft.data.medical.formats import DICOM_MARK, DICOM_MARK_AT

if TYPE_CHECKING:
    from pydicom.dataset import FileDataset
    from pydicom.uid import UID

LISTED_TAGS = (
    "SOPClassUID", "Modality", "PatientID", "NumberOfFrames", "PhotometricInterpretation", "SamplesPerPixel", "Rows",
    "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "RescaleSlope", "RescaleIntercept",
    "ModalityLUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction", "VOILUTSequence",
    "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence",
)  # fmt: skip
"""All that is looked at when files are listed. The patient's identity becomes a number at once."""

MAX_INFLATED_BYTES = 2**30
"""A deflated file that unpacks into more is refused."""

_DEFLATED = "1.2.840.10008.1.2.1.99"
_META_STARTS_AT = DICOM_MARK_AT + len(DICOM_MARK)
_META_LENGTH_ELEMENT_BYTES = 12  # the element that says how long the rest of the file meta information is
_WINDOW_BITS = -15  # a raw deflate stream
_CHUNK_BYTES = 2**20


def read_dicom(path: Path, *, header_only: bool = False) -> FileDataset:
    """Parse one file.

    Args:
        path: With or without the mark of DICOM files; files of old systems have none.
        header_only: Read the ``LISTED_TAGS`` alone.

    Raises:
        UnreadableFileError: It is not DICOM, or unpacks into too much.
    """
    import pydicom
    from pydicom.dataset import FileMetaDataset

    with path.open("rb") as file:
        start = file.read(4096)
        _refuse_other_files(start)
        if _DEFLATED.encode() in start:
            _refuse_bomb(path)
        file.seek(0)
        dataset = pydicom.dcmread(
            file if header_only else io.BytesIO(file.read()),  # lengths in a damaged header can not outgrow a buffer
            stop_before_pixels=header_only,
            specific_tags=list(LISTED_TAGS) if header_only else None,
            force=True,
        )
    if "SOPClassUID" not in dataset and "Rows" not in dataset and not _has_mark(start):
        raise UnreadableFileError("it is not a DICOM file, or its first bytes are damaged")
    if not hasattr(dataset, "file_meta"):
        dataset.file_meta = FileMetaDataset()
    if "TransferSyntaxUID" not in dataset.file_meta:
        dataset.file_meta.TransferSyntaxUID = _plain_transfer_syntax(*dataset.original_encoding)
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


def _refuse_bomb(path: Path) -> None:
    """Unpack a deflated file piece by piece and keep nothing; pydicom would unpack all of it at once."""
    from pydicom.filereader import read_file_meta_info

    meta = read_file_meta_info(path)
    if meta.get("TransferSyntaxUID") != _DEFLATED:
        return
    stream = zlib.decompressobj(_WINDOW_BITS)
    unpacked = 0
    with path.open("rb") as file:
        file.seek(_META_STARTS_AT + _META_LENGTH_ELEMENT_BYTES + int(meta.FileMetaInformationGroupLength))
        while not stream.eof and (packed := stream.unconsumed_tail or file.read(_CHUNK_BYTES)):
            unpacked += len(stream.decompress(packed, _CHUNK_BYTES))
            if unpacked > MAX_INFLATED_BYTES:
                raise UnreadableFileError(f"it unpacks into more than {MAX_INFLATED_BYTES:,} bytes")
    if not stream.eof:
        raise UnreadableFileError("the file is truncated")
