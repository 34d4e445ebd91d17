"""Lists of medical files: which slices are images, whose they are, and in words how they are read."""

from __future__ import annotations

import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from crossgraft.data.medical.dicom import DicomFacts, DicomVolume, dicom_facts
from crossgraft.data.medical.display import WindowPolicy
from crossgraft.data.medical.formats import MedicalFormat, require_reader
from crossgraft.data.medical.nifti import NiftiFacts, NiftiVolume, nifti_facts
from crossgraft.errors import UnreadableImageError, UsageError

_NUMBERED = re.compile(r"slice:(\d+)")


@dataclass(frozen=True)
class SlicePolicy:
    """What to take from each file.

    Attributes:
        kind: ``middle``, ``all``, ``count`` (that many, evenly spaced), ``place`` (0 is the first slice and 1 the
            last) or ``number`` (one slice, counted from 1).
        value: The count, the place or the number.
    """

    kind: Literal["middle", "all", "count", "place", "number"] = "middle"
    value: float = 0.0

    def choose(self, num_slices: int) -> list[int]:
        """Which slices to take, from 0, in order; every file of one slice gives that one.

        A count above the number of slices takes all. The count takes the middle of each of so many equal parts, so
        a count of 1 is the middle. A number beyond the last slice is kept: reading it is an error that names the file.
        """
        if num_slices == 1:
            return [0]
        if self.kind == "all":
            return list(range(num_slices))
        if self.kind == "place":
            return [int(self.value * (num_slices - 1) + 0.5)]
        if self.kind == "number":
            return [int(self.value) - 1]
        count = min(int(self.value), num_slices) if self.kind == "count" else 1
        return [(2 * part + 1) * num_slices // (2 * count) for part in range(count)]

    def describe(self) -> str:
        """What was taken of each file, in words."""
        value = f"{self.value:g}"
        words = {
            "middle": "the middle slice",
            "all": "all slices",
            "count": "1 slice" if self.value == 1 else f"{value} evenly spaced slices",
            "place": f"the slice at {value} of the way",
            "number": f"slice {value}",
        }
        return words[self.kind]


def parse_slices(text: str | None) -> SlicePolicy:
    """The policy that ``--slices`` names; None is ``middle``.

    Raises:
        UsageError: It is none of the five forms.
    """
    name = "middle" if text is None else text.strip().casefold()
    if name == "middle" or name == "all":
        return SlicePolicy(name)
    if re.fullmatch(r"\d+", name) and int(name) > 0:
        return SlicePolicy("count", float(name))
    if re.fullmatch(r"\d*\.\d+|\d+\.", name) and 0 <= float(name) <= 1:
        return SlicePolicy("place", float(name))
    numbered = _NUMBERED.fullmatch(name)
    if numbered is not None and int(numbered[1]) > 0:
        return SlicePolicy("number", float(numbered[1]))
    raise UsageError(
        "--slices is middle, all, a count such as 5, a place from 0.0 (first slice) to 1.0 (last), or a number such as "
        f"slice:12; not {text}."
    )


T = TypeVar("T")


@dataclass
class _Entry(Generic[T]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    value: T | None = None
    problem: UnreadableImageError | None = None


class VolumeCache(Generic[T]):
    """The volumes that were used last; may be asked by several threads.

    Rows are read in order, so threads at work meet in one volume, or two at a border.

    Args:
        capacity: Volumes that are kept.
    """

    def __init__(self, capacity: int = 2) -> None:
        self.capacity = capacity
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()

    def get(self, key: Hashable, load: Callable[[], T]) -> T:
        """The volume ``key``; the first thread loads it while others wait. That it is unreadable is remembered, too.

        Raises:
            UnreadableImageError: ``load`` raised it.
        """
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
            while len(self._entries) > self.capacity:
                self._entries.popitem(last=False)
        with entry.lock:
            if entry.problem is not None:
                raise UnreadableImageError(entry.problem.where, entry.problem.reason)
            if entry.value is None:
                try:
                    entry.value = load()
                except UnreadableImageError as error:
                    entry.problem = error
                    raise
            return entry.value


class DicomPlace(NamedTuple):
    """Where an image of DICOM lies.

    Attributes:
        path: Path of the file.
        where: Name of the file in messages.
        frame: Its frame, from 0.
        num_frames: Frames of the file.
    """

    path: Path
    where: str
    frame: int
    num_frames: int


Facts = DicomFacts | NiftiFacts
_SQUARE = 0.01
"""Pixels whose sides differ by less are square."""


@dataclass(frozen=True, eq=False)
class MedicalFile:
    """One file and what its header says.

    Attributes:
        path: Path of the file.
        where: Name of the file in messages.
        medical_format: DICOM or NIfTI.
        facts: Facts of the header; None where the header cannot be read; decoding then says why.
        slices: Slices that are images, from 0.
    """

    path: Path
    where: str
    medical_format: MedicalFormat
    facts: Facts | None
    slices: tuple[int, ...]

    @property
    def patient(self) -> str:
        """The patient as the file names it, or nothing; only to be compared, never to be shown."""
        return self.facts.patient if isinstance(self.facts, DicomFacts) else ""

    def without_patient(self) -> MedicalFile:
        """The same file once it is known which of the others are of the same patient: the identity is needed no more."""
        return replace(self, facts=replace(self.facts, patient="")) if isinstance(self.facts, DicomFacts) else self

    def dicom_place(self, index: int) -> DicomPlace | None:
        """Place of the image number ``index`` of ``slices``; None where the file is not DICOM, or its header cannot be read."""
        if not isinstance(self.facts, DicomFacts):
            return None
        return DicomPlace(self.path, self.where, self.slices[index], self.facts.num_slices)

    @property
    def image_names(self) -> list[str]:
        """One per slice, for messages."""
        if self.facts is None or self.facts.num_slices == 1:
            return [self.where]
        return [f"{self.where} slice {index + 1}" for index in self.slices]


@dataclass(frozen=True)
class MedicalReader:
    """Reads slices; a file of which several are images is kept open.

    Attributes:
        policy: Policy for the intensities that become black and white.
        cache: The volumes that were used last.
    """

    policy: WindowPolicy
    cache: VolumeCache[DicomVolume | NiftiVolume] = field(default_factory=VolumeCache, repr=False)

    def read(self, file: MedicalFile, place: int) -> np.ndarray:
        """Pixels of the slice at this place of ``file.slices``; may be called from several threads.

        Raises:
            UnreadableImageError: The file is damaged or of a kind that is not read.
        """
        if len(file.slices) == 1:
            return self._open(file).read_slice(file.slices[place])
        return self.cache.get(file.path, lambda: self._open(file)).read_slice(file.slices[place])

    def _open(self, file: MedicalFile) -> DicomVolume | NiftiVolume:
        volume = DicomVolume if file.medical_format == "DICOM" else NiftiVolume
        return volume(file.path, file.where, self.policy)


def list_medical_file(path: Path, where: str, medical_format: MedicalFormat, slices: SlicePolicy) -> MedicalFile:
    """Read the header of one file.

    Raises:
        MissingExtraError: The package that reads this format is not installed.
    """
    require_reader(medical_format)
    try:
        facts = dicom_facts(path, where) if medical_format == "DICOM" else nifti_facts(path, where)
    except UnreadableImageError:
        return MedicalFile(path, where, medical_format, None, (0,))
    return MedicalFile(path, where, medical_format, facts, tuple(slices.choose(facts.num_slices)))


def describe_reading(files: Sequence[MedicalFile], policy: WindowPolicy, slices: SlicePolicy) -> list[str]:
    """What becomes of the files, in words and without anything that a header says of a patient."""
    sentences: list[str] = []
    for medical_format in ("DICOM", "NIfTI"):
        known = [file.facts for file in files if file.medical_format == medical_format and file.facts is not None]
        if not known:
            continue
        ways = Counter(_shown(facts, policy) for facts in known)
        listed = ", ".join(f"{way} in {_files(count)}" for way, count in ways.most_common())
        volumes = sum(facts.num_slices > 1 for facts in known)
        taken = f"; of {_files(volumes)} with several slices, {slices.describe()}" if volumes else ""
        sentences.append(f"{medical_format}: {listed}{taken}.")
        oblong = [facts.aspect for facts in known if abs(facts.aspect - 1) > _SQUARE]
        if oblong:
            most = max(oblong, key=lambda aspect: max(aspect, 1 / aspect))
            sentences.append(
                f"Pixels of {_files(len(oblong))} are not square (height over width up to {most:.2f}), and shown as if they were."
            )
    return sentences


def warn_of_reading(files: Sequence[MedicalFile], policy: WindowPolicy) -> list[str]:
    """What may not be as the user thinks."""
    notices: list[str] = []
    dicom = [file.facts for file in files if isinstance(file.facts, DicomFacts)]
    unwindowed = sum(facts.is_ct and facts.shown == "full range" for facts in dicom)
    if policy.kind == "file" and unwindowed:
        name = "names" if unwindowed == 1 else "name"
        notices.append(
            f"{_files(unwindowed)} of CT {name} no window, so the full range is shown, in which tissue is almost one grey. "
            "Choose one for all, such as --window lung."
        )
    several = sum(isinstance(file.facts, NiftiFacts) and file.facts.num_volumes > 1 for file in files)
    if several:
        notices.append(f"Only the first volume of {_files(several)} with several (4D NIfTI) is used.")
    no_ct = sum(not facts.is_ct for facts in dicom)
    if policy.is_hounsfield and no_ct:
        notices.append(f"The window {policy.name} is meant for Hounsfield units, and {_files(no_ct)} of {len(dicom)} are not CT.")
    scales = {facts.scale for facts in dicom if facts.scale}
    if policy.kind == "full" and len(scales) > 1:
        notices.append(
            f"The DICOM files differ in bits, slope or intercept ({len(scales)} kinds). With --window full the same "
            "physical value then has another brightness in each kind; a window CENTER,WIDTH treats them alike."
        )
    return notices


def _shown(facts: Facts, policy: WindowPolicy) -> str:
    if facts.shown == "colours":
        return "colours as stored"
    if policy.kind == "given":
        window = policy.window
        numbers = "" if window is None else f" (centre {window.center:g}, width {window.width:g})"
        return f"window {policy.name if policy.is_hounsfield else 'as given'}{numbers}"
    return "full range" if policy.kind == "full" else facts.shown


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


PATIENT_GROUPS = "patient (DICOM PatientID)"
FILE_GROUPS = "file (its slices stay together)"


class FileGroups(NamedTuple):
    """The group of each file, or None; does it name its patient; what the groups are; what the user should know."""

    groups: np.ndarray | None
    known: np.ndarray | None
    group_column: str | None
    notices: tuple[str, ...]


def group_files(files: Sequence[MedicalFile | None]) -> FileGroups:
    """Patients where at least two are named, else files where one holds several images, else nothing.

    Numbers follow the order of first appearance. They are not made from the identity itself: a hash of a hospital number
    can be undone by trying all numbers.

    Args:
        files: Files; None for a file of another kind, which names no patient.
    """
    patients = ["" if file is None else file.patient for file in files]
    known = np.asarray([patient != "" for patient in patients])
    named = sorted({patient for patient in patients if patient})
    several = any(file is not None and len(file.slices) > 1 for file in files)
    notices: list[str] = []
    if len(named) == 1 and len(files) > 1 and patients.count(named[0]) > 1:
        notices.append(
            f"{patients.count(named[0])} DICOM files name one and the same patient, which says nothing, so images are not "
            "grouped by patient. If there are several, write a table with the columns path, label and patient."
        )
    if len(named) > 1:
        unnamed = patients.count("")
        if unnamed:
            notices.append(f"{unnamed} of {len(files)} files name no patient; each counts as a patient of its own.")
        return FileGroups(_numbered(patients), known, PATIENT_GROUPS, tuple(notices))
    if several:
        groups = np.asarray([f"file {row + 1}" for row in range(len(files))])
        return FileGroups(groups, np.zeros(len(files), dtype=bool), FILE_GROUPS, tuple(notices))
    return FileGroups(None, None, None, tuple(notices))


def _numbered(patients: Sequence[str]) -> np.ndarray:
    """``patient 1``, ``patient 2`` …; an unnamed file is a patient of its own."""
    numbers: dict[object, int] = {}
    keys = [patient or row for row, patient in enumerate(patients)]
    return np.asarray([f"patient {numbers.setdefault(key, len(numbers) + 1)}" for key in keys])
