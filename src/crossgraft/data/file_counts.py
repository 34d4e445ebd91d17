"""Files of the data, counted: those that are read, and those that are passed over, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from crossgraft.words.formatting import count, counted, joined

LEFT_BY_PROGRAMS = {
    "@eaDir": "thumbnails of a NAS",
    "#recycle": "bin of a NAS",
    "#snapshot": "copies of a NAS",
    "$RECYCLE.BIN": "bin of Windows",
    "System Volume Information": "kept by Windows",
    "lost+found": "kept by Linux",
    "__MACOSX": "added by an archive program",
}
RUN = "a run of crossgraft"
LINK = "a linked folder, which is not followed"
MASK = "derived from an image beside it (--keep-masks takes it for one)"
NEEDS_READER = "needs a reader: pip install 'crossgraft[photos]'"
NOT_READ = "not read"
NO_FILE = "a pipe, a socket or a device, which is not opened"
ARCHIVE = "an archive, which is not opened"
BESIDE = "beside the folders"
OTHER_PART = "a folder beside those of splits; --use-split takes it"
NO_ROW = "without a row in the table"
ROW_LEFT_OUT = "in a row that is left out"
_OTHER_IMAGES = (
    ".gif", ".jp2", ".j2k", ".svs", ".ndpi", ".mrxs", ".raw", ".cr2", ".nef", ".dng", ".psd", ".mha", ".nrrd",
)  # fmt: skip


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
        return self.reason == RUN or self.reason in LEFT_BY_PROGRAMS.values()

    @property
    def is_image(self) -> bool:
        """Whether they are images of a format that is not read here."""
        return self.reason == NEEDS_READER or self.kind in _OTHER_IMAGES

    @property
    def is_archive(self) -> bool:
        """Whether these are archives."""
        return self.reason == ARCHIVE

    @property
    def is_derived(self) -> bool:
        """Whether these are pictures that were made from images of the data."""
        return self.reason == MASK


class FileCounts(NamedTuple):
    """Files of the data, counted.

    Attributes:
        read: (extension, class) → files that are images, or a table beside them that says what they are; empty where the
            data are no files. The class is empty where an image has none or several.
        passed_over: All others.
    """

    read: Mapping[tuple[str, str], int] = {}
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def kinds_read(self) -> Counter[str]:
        """Extension → files that are images."""
        kinds = Counter[str]()
        for (kind, _), number in self.read.items():
            kinds[kind] += number
        return kinds

    @property
    def total(self) -> int:
        """All files."""
        return sum(self.read.values()) + sum(skipped.number for skipped in self.passed_over)

    def with_classes(self, names: Mapping[str, str] | None) -> FileCounts:
        """The same with classes as they are called in the end.

        Args:
            names: Label as the source says it → name of its class; None: labels mean nothing, and folders may be patients.
        """
        read = Counter[tuple[str, str]]()
        for (kind, label), number in self.read.items():
            read[kind, "" if names is None else names.get(label, label)] += number
        if names is None:
            return FileCounts(read, joined_counts(skipped._replace(place="") for skipped in self.passed_over))
        return FileCounts(
            read, tuple(skipped._replace(place=names.get(skipped.place, skipped.place)) for skipped in self.passed_over)
        )


NO_FILES = FileCounts()


def describe_files(files: FileCounts) -> list[str]:
    """What was read and what was not, in a sentence that names no folder of anybody; empty where all are of one kind.

    >>> gifs = PassedOver(".gif", "not read", "a", 2), PassedOver(".gif", "not read", "b", 1)
    >>> describe_files(FileCounts({(".png", "a"): 3, (".png", "b"): 1}, gifs))
    ['7 files: 4 .png are read; passed over: 3 .gif (not read).']
    >>> describe_files(FileCounts({(".png", "a"): 3, (".webp", "a"): 1}, ()))
    ['4 files: 3 .png and 1 .webp are read.']
    """
    kinds: Counter[tuple[str, str]] = Counter()
    for skipped in files.passed_over:
        kinds[skipped.kind, skipped.reason] += skipped.number
    if not kinds and len(files.kinds_read) < 2:
        return []
    read = joined([f"{count(number)} {kind}" for kind, number in files.kinds_read.most_common()]) or "none"
    read_in_words = f"{counted(files.total, 'file')}: {read} are read"
    listed = ", ".join(f"{count(number)} {kind} ({reason})" for (kind, reason), number in kinds.most_common())
    return [f"{read_in_words}; passed over: {listed}." if listed else f"{read_in_words}."]


def joined_counts(passed_over: Iterable[PassedOver]) -> tuple[PassedOver, ...]:
    """One entry for what is of one kind, reason and place; the most frequent first."""
    numbers = Counter[tuple[str, str, str]]()
    for kind, reason, place, number in passed_over:
        numbers[kind, reason, place] += number
    summed = [PassedOver(*key, number) for key, number in numbers.items() if number]
    return tuple(sorted(summed, key=lambda skipped: (-skipped.number, skipped)))
