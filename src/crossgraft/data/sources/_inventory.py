"""Every visible file below a folder: an image, or passed over with its reason."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from crossgraft.data._pillow_files import can_read
from crossgraft.data.class_names import natural_key
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.file_counts import (
    ARCHIVE,
    LEFT_BY_PROGRAMS,
    LINK,
    MASK,
    NEEDS_READER,
    NOT_READ,
    RUN,
    PassedOver,
    joined_counts,
)
from crossgraft.data.medical.formats import file_extension, is_image_file
from crossgraft.data.sources._derived_pictures import find_derived
from crossgraft.paths import is_folder

_ALSO_LEFT = ("Thumbs.db", "desktop.ini", "DICOMDIR")  # the last is the index of a DICOM medium
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")


class Inventory(NamedTuple):
    """What lies below a folder.

    Attributes:
        images: Files that are read, in natural order.
        passed_over: All other visible files, the most frequent kind first.
    """

    images: list[Path]
    passed_over: list[PassedOver]


def take_inventory(folder: Path, *, keep_masks: bool = False, skip: Collection[str] = ()) -> Inventory:
    """Walk through a folder once.

    Args:
        folder: Where to start; folders that are linked there are followed, and none further down.
        keep_masks: Whether pictures that were derived from others are images.
        skip: Names of folders there that are no part of the question.

    Cost: a walk; derived pictures are looked for by name, and a few of each kind are opened.
    """
    images: list[Path] = []
    others: list[PassedOver] = []

    def pass_over(path: Path, kind: str, reason: str, number: int = 1) -> None:
        parts = path.relative_to(folder).parts
        others.append(PassedOver(kind, reason, parts[0] if len(parts) > 1 else "", number))

    pending = [folder]
    while pending:
        at = pending.pop()
        with os.scandir(at) as listed:
            entries = list(listed)
        for entry in entries:
            if not is_visible(entry.name) or (at == folder and entry.name in skip):
                continue
            path = Path(entry.path)
            if is_folder(path):  # a circle of links is none
                reason = folder_passed_over(path)
                if reason is None and entry.is_symlink() and at != folder:
                    reason = LINK
                if reason is None:
                    pending.append(path)
                else:
                    pass_over(path, _kind_of_folder(entry.name, reason), reason, _num_files(path, reason))
            elif is_readable(path):
                images.append(path)
            else:
                pass_over(path, kind_of_file(path), _why_not(path))
    derived = set[Path]() if keep_masks else find_derived(images, folder)
    for path in derived:
        pass_over(path, kind_of_file(path), MASK)
    kept = sorted((path for path in images if path not in derived), key=lambda path: natural_key(path.as_posix()))
    return Inventory(kept, list(joined_counts(others)))


def counted_by_kind(files: Iterable[Path], reason: str) -> list[PassedOver]:
    """Files that are passed over for one reason, and are in no folder of a class."""
    return [PassedOver(kind, reason, "", number) for kind, number in Counter(map(kind_of_file, files)).items()]


def kind_of_file(path: Path) -> str:
    """Its extension, if that is one: the end of an identifier or of a date says who somebody is, and no kind.

    >>> kind_of_file(Path("a.PNG")), kind_of_file(Path("1.2.840.4711")), kind_of_file(Path("IM0001"))
    ('.png', 'without extension', 'without extension')
    """
    extension = file_extension(path.name)
    return (
        extension
        if re.fullmatch(r"(\.[a-z][a-z0-9]{0,4}|\.nii\.gz|\.dcm\.gz|\.7z)", extension)
        else "without extension"
    )


def is_visible(name: str) -> bool:
    """Neither hidden nor one of the single files that operating systems leave in every folder."""
    return not name.startswith(".") and name not in _ALSO_LEFT


def is_readable(path: Path) -> bool:
    """Whether a file is an image whose reader is here."""
    return is_image_file(path) and can_read(file_extension(path.name))


def folder_passed_over(folder: Path) -> str | None:
    """Why nothing in a folder is an image of the data; None: it may hold some."""
    if folder.name in LEFT_BY_PROGRAMS:
        return LEFT_BY_PROGRAMS[folder.name]
    return RUN if _is_run(folder) else None


def _is_run(folder: Path) -> bool:
    """Whether a command of this program wrote it: its record says so."""
    try:
        return "crossgraft_version" in json.loads((folder / "run.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def _kind_of_folder(name: str, reason: str) -> str:
    return {RUN: "in folders of runs", LINK: "link"}.get(reason, f"in {name}")


def _num_files(folder: Path, reason: str) -> int:
    return 1 if reason == LINK else sum(is_visible(name) for _, _, names in os.walk(folder) for name in names)


def _why_not(path: Path) -> str:
    extension = file_extension(path.name)
    if extension in _ARCHIVES:
        return ARCHIVE
    return NEEDS_READER if extension in IMAGE_EXTENSIONS and not can_read(extension) else NOT_READ
