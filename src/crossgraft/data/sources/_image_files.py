"""From files to images: what the sources that read files have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Required, TypedDict, Unpack

import numpy as np

from crossgraft.data.decoding import IMAGE_EXTENSIONS, decode_file, has_unnamed_channels
from crossgraft.data.file_counts import FileCounts, PassedOver, describe_files
from crossgraft.data.medical.display import parse_window
from crossgraft.data.medical.files import (
    DicomPlace,
    FileGroups,
    MedicalFile,
    MedicalReader,
    SlicePolicy,
    describe_reading,
    group_files,
    list_medical_file,
    parse_slices,
    warn_of_reading,
)
from crossgraft.data.medical.formats import MEDICAL_EXTENSIONS, file_extension, medical_format
from crossgraft.data.sources._inventory import kind_of_file
from crossgraft.data.sources._source import NO_LABEL, SourceRequest, SourceRows
from crossgraft.errors import DataError, UsageError, nearest_names
from crossgraft.paths import real_path, shortened
from crossgraft.words.formatting import counted

_NAMES_IN_MESSAGE = 5


class ImageRoot:
    """Folders that images must be in, looked up once each; symbolic links count as what they lead to.

    Args:
        folders: Any of them will do.
    """

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = [real_path(folder) for folder in folders]
        self._known: dict[Path, bool] = {}

    def holds_folder(self, folder: Path) -> bool:
        """Whether this folder lies inside, or is one of them. It need not exist."""
        if folder not in self._known:
            self._known[folder] = self._holds(folder)
        return self._known[folder]

    def holds_file(self, path: Path, *, is_link: bool) -> bool:
        """Whether this file, and what it leads to, lies inside."""
        return self.holds_folder(path.parent) and (not is_link or self._holds(path))

    def _holds(self, path: Path) -> bool:
        real = real_path(path)
        return any(real.is_relative_to(folder) for folder in self._folders)


def refuse_outside(
    names: Sequence[str], outside: Sequence[int], *, root: str, of_what: str, row_name: Callable[[int], str]
) -> None:
    """Raise if images lie outside of the folder that they must be in.

    Args:
        names: Path of each row as it is written.
        outside: Rows whose image lies outside.
        root: Name of the folder.
        of_what: Kind of the data that name the images.
        row_name: Function that names row i in messages.

    Raises:
        DataError: There are such rows; the first ones are named.
    """
    if not outside:
        return
    verb = "is" if len(outside) == 1 else "are"
    raise DataError(
        f"{len(outside)} of {len(names)} image files {verb} not in {root}, where the images of {of_what} must be: "
        f"{listed_rows(names, outside, row_name)}. Correct the paths, or pass --allow-outside if these files are meant."
    )


def listed_rows(names: Sequence[str], rows: Sequence[int], row_name: Callable[[int], str]) -> str:
    """The first of some rows, each with the path that it names."""
    shown = "; ".join(f"{shortened(names[row]) or '(empty)'} in {row_name(row)}" for row in rows[:_NAMES_IN_MESSAGE])
    return shown + (f"; and {len(rows) - _NAMES_IN_MESSAGE} more" if len(rows) > _NAMES_IN_MESSAGE else "")


_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")


def location_error(location: str, descriptions: Iterable[str]) -> DataError:
    """The error for a location that no source accepts.

    Args:
        location: Location as the user wrote it.
        descriptions: Descriptions of what the sources can open, for the message.
    """
    path = Path(location)
    if not path.exists():
        return DataError(_missing(location, path))
    suffix = file_extension(path.name)
    if suffix in _ARCHIVES:
        return DataError(f"{location} is an archive. Unpack it and give the folder or the table inside.")
    if suffix in (*IMAGE_EXTENSIONS, *MEDICAL_EXTENSIONS):
        return DataError(f"{location} is one image. Give the folder that holds one sub-folder per class.")
    return DataError(f"{location} is not a kind of data that can be opened. Data can be: {'; '.join(descriptions)}.")


def _missing(location: str, path: Path) -> str:
    what = "file" if path.suffix else "folder"
    parent = path.parent
    if not parent.is_dir():
        return f"No such {what}: {location}. There is no folder {parent} either."
    siblings = [entry.name for entry in parent.iterdir() if not entry.name.startswith(".")]
    known = [*siblings, "digits"] if location == path.name else siblings
    alike = [name for name in known if Path(name).suffix.casefold() == path.suffix.casefold()]
    near = nearest_names(path.name, alike) or nearest_names(path.name, known)
    if not near:
        return f"No such {what}: {location}."
    shown = [name if location == path.name else str(parent / name) for name in near]
    return f"No such {what}: {location}. Did you mean {' or '.join(shown)}?"


class OtherFields(TypedDict, total=False):
    """Fields of ``SourceRows`` that are the same whether a file holds one image or several; ``name`` is needed."""

    name: Required[str]
    label_names: Sequence[str] | None
    split_method: str
    split_names: tuple[str, ...]
    problems: tuple[str, ...]


def rows_of_files(
    files: Sequence[Path],
    names: Sequence[str],
    request: SourceRequest,
    *,
    labels: Sequence[str] | np.ndarray | None,
    splits: Sequence[str] | np.ndarray | None = None,
    groups: np.ndarray | None = None,
    group_column: str | None = None,
    attributes: Mapping[str, np.ndarray] | None = None,
    notices: Sequence[str] = (),
    passed_over: Sequence[PassedOver] = (),
    tables: Sequence[Path] = (),
    **others: Unpack[OtherFields],
) -> SourceRows:
    """The images of ``files``: one per file, or several where a file holds slices; reads headers at most.

    Args:
        files: Files, each of which exists.
        names: Name of each file in messages.
        request: Says which slices and which window.
        labels: One per file, or a row of 0 and 1; None: there are none.
        splits: One per file.
        groups: One per file; None: those that the files name in their own headers, as numbers.
        group_column: Column that the groups come from.
        attributes: Further columns, one entry per file.
        notices: Notices to the user about the data, before those about the files.
        passed_over: Files that are not read.
        tables: Files that say what these files are, where they are a part of the data.
        others: Fields of ``SourceRows`` that are no columns.

    Raises:
        MissingExtraError: There are DICOM or NIfTI files, and the package that reads them is not installed.
        UsageError: The window or the slices have no meaning.
    """
    policy = parse_window(request.default_window if request.window is None else request.window)
    slices = parse_slices(request.default_slices if request.slices is None else request.slices)
    listed = [_listed(path, name, slices) for path, name in zip(files, names, strict=True)]
    medical = [file for file in listed if file is not None]
    if not medical:
        for option in ("window", "slices"):
            if getattr(request, option) is not None:
                raise UsageError(f"--{option} has no meaning here: none of the files is DICOM or NIfTI.")
    grouped = group_files(listed)
    listed = [None if file is None else file.without_patient() for file in listed]
    images = [(row, index) for row, file in enumerate(listed) for index in range(1 if file is None else len(file.slices))]
    rows = np.asarray([row for row, _ in images], dtype=np.int64)
    reader = MedicalReader(policy)

    def decode(image: int) -> np.ndarray:
        row, index = images[image]
        file = listed[row]
        return decode_file(files[row], name=names[row]) if file is None else reader.read(file, index)

    def dicom_place(image: int) -> DicomPlace | None:
        row, index = images[image]
        file = listed[row]
        return None if file is None else file.dicom_place(index)

    classes = [""] * len(files) if labels is None or np.ndim(labels) == 2 else [str(label) for label in np.asarray(labels)]
    read = Counter([*zip(map(kind_of_file, files), classes, strict=True), *((kind_of_file(path), "") for path in tables)])
    counts = FileCounts(read, tuple(passed_over))
    grouping = FileGroups(groups, None, group_column, grouped.notices) if groups is not None else grouped
    return SourceRows(
        labels=np.asarray([NO_LABEL] * len(files) if labels is None else labels)[rows],
        has_labels=labels is not None,
        image_names=[name for row, file in enumerate(listed) for name in ([names[row]] if file is None else file.image_names)],
        decode=decode,
        splits=None if splits is None else np.asarray(splits)[rows],
        groups=None if grouping.groups is None else grouping.groups[rows],
        group_column=grouping.group_column,
        groups_known=None if grouping.known is None else grouping.known[rows],
        attributes={column: values[rows] for column, values in (attributes or {}).items()},
        notices=(*notices, *grouped.notices, *warn_of_reading(medical, policy)),
        files=counts,
        reading=(*describe_files(counts), *_about_channels(files), *describe_reading(medical, policy, slices)),
        stamps=None if medical else lambda: tuple(map(stamp_of, files)),
        dicom_place=dicom_place if medical else None,
        **others,
    )


def stamp_of(file: Path) -> tuple[str, int, int, int]:
    """Whole path, size in bytes, nanoseconds of the last change, and number of the file in its file system."""
    status = file.stat()
    return str(file.absolute()), status.st_size, status.st_mtime_ns, status.st_ino


def _about_channels(files: Sequence[Path]) -> tuple[str, ...]:
    """What becomes of channels of TIFF files that they do not name, as a sentence; none where there are none."""
    number = sum(has_unnamed_channels(path) for path in files if kind_of_file(path) in (".tif", ".tiff"))
    if not number:
        return ()
    return (
        f"Channels beyond the colours that the header does not name are not read ({counted(number, 'TIFF file')}). If one of "
        "them is to be used, such as near infrared, save the three channels to be used.",
    )


def _listed(path: Path, name: str, slices: SlicePolicy) -> MedicalFile | None:
    """The file as its header describes it, or None for a file that holds one ordinary image."""
    file_format = medical_format(path)
    return None if file_format is None else list_medical_file(path, name, file_format, slices)
