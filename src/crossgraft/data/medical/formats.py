"""Which files are DICOM or NIfTI, by extension or mark, and what is wrong with one, in words that name no patient."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Literal

from crossgraft.data._pillow_files import quiet_libraries
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.errors import CrossgraftError, OutOfMemoryError, UnreadableImageError
from crossgraft.optional import require
from crossgraft.paths import why_impossible

MedicalFormat = Literal["DICOM", "NIfTI"]

MEDICAL_EXTENSIONS: dict[str, MedicalFormat] = {
    ".dcm": "DICOM",
    ".dcm.gz": "DICOM",
    ".dicom": "DICOM",
    ".nii": "NIfTI",
    ".nii.gz": "NIfTI",
}
"""Extensions in lower case; any case of the letters is recognised."""

DICOM_MARK_AT = 128
DICOM_MARK = b"DICM"
GZIP_MARK = b"\x1f\x8b"

# A vendor's extension that other programs use as well, so the content decides.
_SHARED_EXTENSIONS = (".ima",)


def file_extension(name: str) -> str:
    """The extension in lower case; ``.nii.gz`` and ``.dcm.gz`` are one extension."""
    folded = Path(name.casefold())
    both = "".join(folded.suffixes[-2:])
    return both if both in MEDICAL_EXTENSIONS else folded.suffix


def file_stem(name: str) -> str:
    """The name without its extension, ``.nii.gz`` and ``.dcm.gz`` being one."""
    extension = file_extension(name)
    return name[: -len(extension)] if extension else name


def is_image_file(path: Path) -> bool:
    """Whether this file of a folder is an image. Looks into it only where its name says nothing.

    DICOM files are often called ``IM000001`` or by their unique identifier, which ends in a number.
    """
    extension = file_extension(path.name)
    if extension in IMAGE_EXTENSIONS or extension in MEDICAL_EXTENSIONS:
        return True
    says_nothing = not any(character.isalpha() for character in extension)
    return (says_nothing or extension in _SHARED_EXTENSIONS) and has_dicom_mark(path)


def medical_format(path: Path) -> MedicalFormat | None:
    """DICOM, NIfTI, or None for every other file."""
    extension = file_extension(path.name)
    if extension in IMAGE_EXTENSIONS:
        return None
    return MEDICAL_EXTENSIONS.get(extension) or ("DICOM" if has_dicom_mark(path) else None)


def has_dicom_mark(path: Path) -> bool:
    """Whether the file carries the mark that DICOM files have after 128 free bytes."""
    try:
        with path.open("rb") as file:
            return file.read(DICOM_MARK_AT + len(DICOM_MARK))[DICOM_MARK_AT:] == DICOM_MARK
    except OSError:
        return False


def require_reader(medical_format: MedicalFormat) -> ModuleType:
    """The package that reads this format.

    Raises:
        MissingExtraError: It is not installed.
    """
    module = {"DICOM": "pydicom", "NIfTI": "nibabel"}[medical_format]
    return require(module, extra="medical", needed_for=f"Reading {medical_format} files")


class UnreadableFileError(ValueError):
    """Why a file cannot be read, as the end of the sentence "Cannot read the image …: "."""


@contextmanager
def named_problems(where: str) -> Generator[None]:
    """Turn whatever goes wrong in a block into an UnreadableImageError that names the file.

    Remarks are not shown: what matters of those of pydicom and nibabel is said in a notice or an error of our own.
    """
    try:
        with quiet_libraries():
            yield
    except OutOfMemoryError as error:
        raise UnreadableImageError(where, str(error).removesuffix(".")) from error
    except CrossgraftError:
        raise
    except Exception as error:
        raise UnreadableImageError(where, _reason(error)) from error


def _reason(error: Exception) -> str:
    if isinstance(error, UnreadableFileError):
        return str(error)
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    if isinstance(error, PermissionError):
        return "permission is denied"
    if isinstance(error, OSError) and (reason := why_impossible(error)) is not None:
        return reason
    if isinstance(error, IsADirectoryError):
        return "it is a folder"
    if isinstance(error, MemoryError):
        return "not enough memory to decode it"
    if isinstance(error, EOFError):
        return "the file is truncated"
    if isinstance(error, zlib.error | gzip.BadGzipFile):
        return f"its compression is damaged ({error})"
    # On a damaged header pydicom and nibabel raise nearly anything. What they say may quote the header and with it the
    # patient, so only the kind of error is passed on.
    return f"the file is damaged ({type(error).__name__})"
