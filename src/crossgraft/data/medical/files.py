"""Lists of medical files: which slices are images, whose they are, and in words how they are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from crossgraft.data.medical.dicom import DicomFacts, DicomVolume, dicom_facts
from crossgraft.data.medical.formats import MedicalFormat, require_reader
from crossgraft.data.medical.nifti import NiftiFacts, NiftiVolume, nifti_facts
from crossgraft.data.medical.slices import SlicePolicy
from crossgraft.data.medical.volume_cache import VolumeCache
from crossgraft.data.medical.windows import WindowPolicy
from crossgraft.errors import UnreadableImageError

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
    other = sum(not facts.is_ct for facts in dicom)
    if policy.is_hounsfield and other:
        notices.append(
            f"The window {policy.name} is meant for Hounsfield units, and {_files(other)} of {len(dicom)} are not CT."
        )
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
