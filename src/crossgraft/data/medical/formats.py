"""Which files are DICOM or NIfTI: by extension, and DICOM without one by its mark."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Literal

from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.optional import require

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
