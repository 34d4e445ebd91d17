"""From files to images: what the sources that read files have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgraft.data._confidential import Confidential
from crossgraft.data.decoding import decode_file
from crossgraft.data.medical.files import (
    MedicalFile,
    MedicalReader,
    describe_reading,
    list_medical_file,
    warn_of_reading,
)
from crossgraft.data.medical.formats import medical_format
from crossgraft.data.medical.patients import group_files
from crossgraft.data.medical.slices import SlicePolicy, parse_slices
from crossgraft.data.medical.windows import parse_window
from crossgraft.data.sources._source import NO_LABEL, SourceRequest, SourceRows
from crossgraft.errors import UsageError


@dataclass(frozen=True, eq=False, repr=False)
class ImageFiles(Confidential):
    """Images in files: one per file, or several where a file holds slices.

    Attributes:
        names: One per image, for messages; no absolute path.
        rows: (num_images,) the file that each image comes from, as a place in the list that was given.
        decode: Pixels of image i; raises UnreadableImageError.
        groups: (num_images,) the patient that each file names in its own header, as a number, or None.
        group_column: Description of the groups.
        groups_known: (num_images,) does the file name its patient? None: there are no groups.
        notices: Notices to the user, one sentence each.
        reading: Description of how files of scanners are read, one sentence each.
    """

    names: Sequence[str]
    rows: np.ndarray
    decode: Callable[[int], np.ndarray]
    groups: np.ndarray | None = None
    group_column: str | None = None
    groups_known: np.ndarray | None = None
    notices: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()


def open_image_files(files: Sequence[Path], names: Sequence[str], request: SourceRequest) -> ImageFiles:
    """List the images of ``files``; reads headers at most.

    Args:
        files: Files, each of which exists.
        names: Name of each file in messages.
        request: Says which slices and which window.

    Raises:
        MissingExtraError: There are DICOM or NIfTI files, and the package that reads them is not installed.
        UsageError: The window or the slices have no meaning.
    """
    policy = parse_window(request.default_window if request.window is None else request.window)
    slices = parse_slices(request.default_slices if request.slices is None else request.slices)
    listed = [_listed(path, name, slices) for path, name in zip(files, names, strict=True)]
    medical = [file for file in listed if file is not None]
    if not medical:
        _refuse_medical_options(request)
    grouped = group_files(listed)
    listed = [None if file is None else file.without_patient() for file in listed]
    images = [
        (row, place) for row, file in enumerate(listed) for place in range(1 if file is None else len(file.slices))
    ]
    rows = np.asarray([row for row, _ in images], dtype=np.int64)
    reader = MedicalReader(policy)

    def decode(image: int) -> np.ndarray:
        row, place = images[image]
        file = listed[row]
        return decode_file(files[row], name=names[row]) if file is None else reader.read(file, place)

    return ImageFiles(
        names=[
            name for row, file in enumerate(listed) for name in ([names[row]] if file is None else file.image_names)
        ],
        rows=rows,
        decode=decode,
        groups=None if grouped.groups is None else grouped.groups[rows],
        group_column=grouped.group_column,
        groups_known=None if grouped.known is None else grouped.known[rows],
        notices=(*grouped.notices, *warn_of_reading(medical, policy)),
        reading=tuple(describe_reading(medical, policy, slices)),
    )


def rows_of_files(
    files: Sequence[Path], names: Sequence[str], name: str, request: SourceRequest, labels: Sequence[str] | None = None
) -> SourceRows:
    """The images of ``files`` (a file of slices holds several), with a label per file or without any."""
    images = open_image_files(files, names, request)
    return SourceRows(
        name=name,
        labels=np.asarray([NO_LABEL] * len(files) if labels is None else labels)[images.rows],
        image_names=images.names,
        decode=images.decode,
        groups=images.groups,
        group_column=images.group_column,
        groups_known=images.groups_known,
        notices=images.notices,
        reading=images.reading,
        has_labels=labels is not None,
    )


def _listed(path: Path, name: str, slices: SlicePolicy) -> MedicalFile | None:
    """The file as its header describes it, or None for a file that holds one ordinary image."""
    found = medical_format(path)
    return None if found is None else list_medical_file(path, name, found, slices)


def _refuse_medical_options(request: SourceRequest) -> None:
    for option in ("window", "slices"):
        if getattr(request, option) is not None:
            raise UsageError(f"--{option} has no meaning here: none of the files is DICOM or NIfTI.")
