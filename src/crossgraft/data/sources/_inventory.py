"""Every visible file below a folder: an image, or passed over with its reason."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from crossgraft.data._pillow_files import can_read
from crossgraft.data.class_names import natural_key
from crossgraft.data.decoding import IMAGE_EXTENSIONS
from crossgraft.data.medical.formats import file_extension, is_image_file
from crossgraft.data.sources._derived_pictures import find_derived
from crossgraft.paths import is_folder
from crossgraft.words.formatting import count, counted, joined

_LEFT_BY_PROGRAMS = {
    "@eaDir": "thumbnails of a NAS",
    "#recycle": "bin of a NAS",
    "#snapshot": "copies of a NAS",
    "$RECYCLE.BIN": "bin of Windows",
    "System Volume Information": "kept by Windows",
    "lost+found": "kept by Linux",
    "__MACOSX": "added by an archive program",
}
_ALSO_LEFT = ("Thumbs.db", "desktop.ini", "DICOMDIR")  # the last is the index of a DICOM medium
RUN = "a run of crossgraft"
_OTHER_IMAGES = (
    ".gif",
    ".jp2",
    ".j2k",
    ".svs",
    ".ndpi",
    ".mrxs",
    ".raw",
    ".cr2",
    ".nef",
    ".dng",
    ".psd",
    ".mha",
    ".nrrd",
)
_LINK = "a linked folder, which is not followed"
_MASK = "derived from an image beside it (--keep-masks takes it for one)"
_NEEDS_READER = "needs a reader: pip install 'crossgraft[photos]'"
_NOT_READ = "not read"


class PassedOver(NamedTuple):
    """Files of one kind that are no images of the data.

    Attributes:
        kind: Extension, or what a folder is called.
        reason: Reason, without a full stop.
        place: Folder of the class that they lie in; empty: in none.
        number: Number of files.
    """

    kind: str
    reason: str
    place: str
    number: int

    @property
    def is_expected(self) -> bool:
        """Whether nobody takes these files for data: what programs leave, and runs."""
        return self.reason == RUN or self.reason in _LEFT_BY_PROGRAMS.values()

    @property
    def is_image(self) -> bool:
        """Whether they are images of a format that is not read here."""
        return self.reason == _NEEDS_READER or self.kind in _OTHER_IMAGES

    @property
    def is_derived(self) -> bool:
        """Whether these are pictures that were made from images of the data."""
        return self.reason == _MASK


class FileCounts(NamedTuple):
    """Files of the data, counted.

    Attributes:
        read: Extension → files that are images; empty where the data are no files.
        passed_over: All others.
    """

    read: Mapping[str, int] = {}
    passed_over: tuple[PassedOver, ...] = ()


NO_FILES = FileCounts()


class Inventory(NamedTuple):
    """What lies below a folder.

    Attributes:
        images: Files that are read, in natural order.
        passed_over: All other visible files, the most frequent kind first.
    """

    images: list[Path]
    passed_over: list[PassedOver]


def take_inventory(folder: Path, *, keep_masks: bool = False) -> Inventory:
    """Walk through a folder once.

    Args:
        folder: Where to start; folders that are linked there are followed, and none further down.
        keep_masks: Whether pictures that were derived from others are images.

    Cost: a walk; derived pictures are looked for by name, and a few of each kind are opened.
    """
    images: list[Path] = []
    others: Counter[tuple[str, str, str]] = Counter()

    def pass_over(path: Path, kind: str, reason: str, number: int = 1) -> None:
        parts = path.relative_to(folder).parts
        others[kind, reason, parts[0] if len(parts) > 1 else ""] += number

    pending = [folder]
    while pending:
        at = pending.pop()
        with os.scandir(at) as listed:
            entries = list(listed)
        for entry in entries:
            if not is_visible(entry.name):
                continue
            path = Path(entry.path)
            if is_folder(path):  # a circle of links is none
                reason = folder_passed_over(path)
                if reason is None and entry.is_symlink() and at != folder:
                    reason = _LINK
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
        pass_over(path, kind_of_file(path), _MASK)
    kept = sorted((path for path in images if path not in derived), key=lambda path: natural_key(path.as_posix()))
    passed_over = [PassedOver(*said, number) for said, number in others.items()]
    return Inventory(kept, sorted(passed_over, key=lambda each: (-each.number, each)))


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
    if folder.name in _LEFT_BY_PROGRAMS:
        return _LEFT_BY_PROGRAMS[folder.name]
    return RUN if _is_run(folder) else None


def describe_files(files: FileCounts) -> list[str]:
    """What was read and what was not, in a sentence that names no folder of anybody; empty where all are of one kind.

    >>> describe_files(FileCounts({".png": 4}, (PassedOver(".gif", "not read", "a", 2), PassedOver(".gif", "not read", "b", 1))))
    ['7 files: 4 .png are read; passed over: 3 .gif (not read).']
    >>> describe_files(FileCounts({".png": 3, ".webp": 1}, ()))
    ['4 files: 3 .png and 1 .webp are read.']
    """
    kinds: Counter[tuple[str, str]] = Counter()
    for each in files.passed_over:
        kinds[each.kind, each.reason] += each.number
    if not kinds and len(files.read) < 2:
        return []
    read = joined([f"{count(number)} {kind}" for kind, number in Counter(files.read).most_common()]) or "none"
    said = f"{counted(sum(files.read.values()) + sum(kinds.values()), 'file')}: {read} are read"
    listed = ", ".join(f"{count(number)} {kind} ({reason})" for (kind, reason), number in kinds.most_common())
    return [f"{said}; passed over: {listed}." if listed else f"{said}."]


def _is_run(folder: Path) -> bool:
    """Whether a command of this program wrote it: its record says so."""
    try:
        return "crossgraft_version" in json.loads((folder / "run.json").read_bytes())
    except (OSError, ValueError, TypeError):
        return False


def _kind_of_folder(name: str, reason: str) -> str:
    return {RUN: "in folders of runs", _LINK: "link"}.get(reason, f"in {name}")


def _num_files(folder: Path, reason: str) -> int:
    return 1 if reason == _LINK else sum(len(names) for _, _, names in os.walk(folder))


def _why_not(path: Path) -> str:
    extension = file_extension(path.name)
    return _NEEDS_READER if extension in IMAGE_EXTENSIONS and not can_read(extension) else _NOT_READ
