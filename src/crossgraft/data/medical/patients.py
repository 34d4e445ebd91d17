"""Whose image is it: groups from the patients that files name, as numbers that name nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data.medical.files import MedicalFile

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
