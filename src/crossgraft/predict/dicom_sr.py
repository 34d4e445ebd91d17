"""Predictions as DICOM structured reports: a measurement report (TID 1500 of PS3.16) for each study of a patient.

Every image is one measurement group (TID 1501) that refers to it: the probability of each class, the decision, and that both are
for research. Codes are of the private scheme ``99CROSSGRAFT``: no public one knows the classes of a user.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from crossgraft import optional
from crossgraft.data.medical.dicom_file import read_dicom
from crossgraft.data.medical.formats import named_problems
from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError
from crossgraft.storage.atomic import refuse_to_replace_folder, replace_folder
from crossgraft.version import __version__
from crossgraft.words.formatting import short_fingerprint
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    from pydicom.dataset import Dataset

    from crossgraft.tune.record import PredictionRecord, PredictionRow

NEEDED = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "SOPClassUID")
"""By which a report refers to an image."""
USE = "Research use, not a medical device"
_SCHEME = "99CROSSGRAFT"
_OF_THE_STUDY = (
    *("PatientID", "PatientName", "PatientBirthDate", "PatientSex", "AccessionNumber", "StudyID", "StudyDate", "StudyTime"),
    "ReferringPhysicianName",
)
"""What a document of a study repeats of it; what an image does not say stays empty."""
_UNICODE = "ISO_IR 192"
_LONGEST_MEANING = 64
_SERIES_NUMBER = 9001
"""High, so that a report does not stand among the series of the scanner."""


class SourceImage(NamedTuple):
    """One image that is reported on.

    Attributes:
        header: Its elements that a report repeats or refers to.
        frame: Its frame, from 1; None in a file of one frame.
    """

    header: Dataset
    frame: int | None


def require_writer() -> None:
    """Look whether reports can be written, before any work is done.

    Raises:
        MissingExtraError: highdicom is not installed.
    """
    _highdicom()


def _highdicom() -> Any:
    return optional.require("highdicom", extra="dicom-sr", needed_for="--dicom-sr")


def sources_of(images: ImageRows) -> dict[int, SourceImage]:
    """Number of a readable row, from 1 → what a report needs to know of it.

    Raises:
        DataError: An image is not of DICOM, or has not the UIDs by which a report refers to it, or those of another file.
        UnreadableImageError: A file cannot be read any more.

    Cost: each file is read once more.
    """
    found: dict[int, SourceImage] = {}
    headers: dict[Path, Dataset] = {}
    named: dict[str, str] = {}
    for row in map(int, images.readable_rows):
        place = images.dicom_place(row)
        if place is None:
            raise DataError(
                f"--dicom-sr reports on files of DICOM, and {images.image_name(row)} is none. Give the DICOM files, or leave "
                "--dicom-sr out."
            )
        if place.path not in headers:
            headers = {place.path: _header(place.path, place.where)}  # of the last file only: its frames follow one another
            uid = str(headers[place.path].SOPInstanceUID)
            if uid in named:
                raise DataError(
                    f"The images {named[uid]} and {place.where} have the same SOPInstanceUID, so a DICOM structured report could "
                    "not say which of them it means. Take one of them out, or leave --dicom-sr out."
                )
            named[uid] = place.where
        found[row + 1] = SourceImage(headers[place.path], place.frame + 1 if place.num_frames > 1 else None)
    return found


def _header(path: Path, where: str) -> Dataset:
    from pydicom.dataset import Dataset
    from pydicom.uid import UID

    with named_problems(where):
        whole = read_dicom(path)
        header = Dataset()
        for keyword in (*NEEDED, *_OF_THE_STUDY):
            value = whole.get(keyword) or ""
            setattr(header, keyword, value if isinstance(value, UID) else str(value))  # decoded; written in the set of the report
        missing = [keyword for keyword in NEEDED if not getattr(header, keyword) or not getattr(header, keyword).is_valid]
        for keyword in ("Rows", "Columns", "NumberOfFrames"):
            if keyword in whole:
                setattr(header, keyword, whole.get(keyword))
    if missing:
        raise DataError(
            f"The image {where} has no valid {', '.join(missing)}, by which a DICOM structured report refers to an image. Give "
            "the files as the archive has them (tools that anonymise may take UIDs out), or leave --dicom-sr out."
        )
    return header


def refuse_folder(folder: Path, *, overwrite: bool) -> None:
    """Look before the work whether the reports may be written there.

    Raises:
        RunDirectoryError: It holds other files, or reports that nobody asked to replace.
    """
    there = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    ours = [name for name in there if name.startswith("study-") and name.endswith(".dcm")]
    refuse_to_replace_folder(
        folder,
        ours,
        lambda _: all(_SCHEME.encode() in (folder / name).read_bytes() for name in ours),
        what="structured reports",
        overwrite=overwrite,
    )


def write_reports(record: PredictionRecord, sources: dict[int, SourceImage], folder: Path) -> int:
    """One file for each study of a patient, ``study-1.dcm`` …; the same report has the same UIDs.

    Args:
        record: The predictions.
        sources: As of ``sources_of``.
        folder: Replaced.

    Returns:
        How many reports were written.

    Raises:
        StorageError: The folder cannot be written.
    """
    studies: dict[tuple[str, str], list[PredictionRow]] = {}  # tools that anonymise may give two patients one study
    for row in record.rows:
        if row.row in sources and row.probabilities:
            header = sources[row.row].header
            studies.setdefault((str(header.StudyInstanceUID), str(header.PatientID)), []).append(row)
    files = {
        f"study-{number}.dcm": _report(record, rows, [sources[row.row] for row in rows])
        for number, rows in enumerate(studies.values(), start=1)
    }
    replace_folder(folder, files, what="structured reports", advice="Free some space, or choose another --dicom-sr.")
    return len(files)


def _report(record: PredictionRecord, rows: Sequence[PredictionRow], images: Sequence[SourceImage]) -> bytes:
    """The document of one study as a file of DICOM."""
    from pydicom.sr.codedict import codes

    sr: Any = _highdicom().sr
    said = [f"{row.row} {image.header.SOPInstanceUID} {image.frame} {row.probabilities} {row.decision}"
            for row, image in zip(rows, images, strict=True)]  # fmt: skip
    about = [__version__, record.model_fingerprint, str(images[0].header.StudyInstanceUID), *said]
    observer = sr.ObserverContext(
        observer_type=codes.DCM.Device,
        observer_identifying_attributes=sr.DeviceObserverIdentifyingAttributes(
            uid=_uid("observer", record.model_fingerprint),
            name="crossgraft",
            manufacturer_name="crossgraft",
            model_name=_short(record.model.name),
            serial_number=short_fingerprint(record.model_fingerprint),
        ),
    )
    content = sr.MeasurementReport(
        observation_context=sr.ObservationContext(observer_device_context=observer),
        procedure_reported=_concept("IMAGES", "Images that a model was asked about"),
        imaging_measurements=[_group(record, row, image, about) for row, image in zip(rows, images, strict=True)],
        title=codes.DCM.ImagingMeasurementReport,
    )
    evidence = list({str(image.header.SOPInstanceUID): image.header for image in images}.values())
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The string .* is unlikely to")  # names of one part are repeated as they are
        document = sr.ComprehensiveSR(
            evidence=evidence,
            content=content,
            series_instance_uid=_uid("series", *about),
            series_number=_SERIES_NUMBER,
            sop_instance_uid=_uid("document", *about),
            instance_number=1,
            manufacturer="crossgraft",
            manufacturer_model_name=_short(record.model.name),
            software_versions=__version__,
            device_serial_number=short_fingerprint(record.model_fingerprint),
            series_description=f"{USE}: crossgraft",
            is_complete=True,
            is_verified=False,
            specific_character_set=_UNICODE,
        )
    buffer = io.BytesIO()
    document.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


def _group(record: PredictionRecord, row: PredictionRow, image: SourceImage, about: Sequence[str]) -> Any:
    """What the model says about one image (TID 1501)."""
    from pydicom.sr.codedict import codes

    sr: Any = _highdicom().sr
    scaled = "no temperature" if record.temperature is None else f"temperature {record.temperature:.4g}"
    algorithm = sr.AlgorithmIdentification(
        name=_short(f"crossgraft: {record.model.name}"),
        version=__version__,
        parameters=[f"weights {short_fingerprint(record.model_fingerprint)}", scaled],
    )
    measurements = [
        sr.Measurement(
            name=_concept(f"PROBABILITY{number}", f"Probability of {name}"), value=round(value, 6), unit=codes.UCUM.NoUnits
        )
        for number, (name, value) in enumerate(zip(record.class_names, row.probabilities, strict=True), start=1)
    ]
    known = {name: f"CLASS{number}" for number, name in enumerate(record.class_names, start=1)}
    decided = [name for name in record.class_names if name in row.predicted or name == row.decision]
    if len(decided) > 1 and row.decision in known:
        decided = [row.decision]  # of classes that exclude each other the threshold decides
    decisions = [_concept(known[name], name) for name in decided] or [_concept("NONE", row.decision)]
    evaluations = [sr.QualitativeEvaluation(_concept("DECISION", "Decision of the model"), decision) for decision in decisions]
    evaluations.append(sr.QualitativeEvaluation(_concept("USE", "Intended use"), _concept("RESEARCH", USE)))
    return sr.MeasurementsAndQualitativeEvaluations(
        tracking_identifier=sr.TrackingIdentifier(
            uid=_uid("image", *about, str(row.row)), identifier=f"image {row.row}"
        ),
        algorithm_id=algorithm,
        measurements=measurements,
        qualitative_evaluations=evaluations,
        source_images=[
            sr.SourceImageForMeasurementGroup(
                referenced_sop_class_uid=image.header.SOPClassUID,
                referenced_sop_instance_uid=image.header.SOPInstanceUID,
                referenced_frame_numbers=None if image.frame is None else [image.frame],
            )
        ],
    )  # fmt: skip


def _concept(value: str, meaning: str) -> Any:
    return _highdicom().sr.CodedConcept(value, _SCHEME, _short(meaning))


def _short(text: str) -> str:
    """As long as a meaning or a name in DICOM may be; a backslash would part it in two."""
    text = visible(text).replace("\\", "/")
    return text if len(text) <= _LONGEST_MEANING else f"{text[: _LONGEST_MEANING - 1]}…"


def _uid(*about: str) -> str:
    from pydicom.uid import generate_uid

    return str(generate_uid(entropy_srcs=["crossgraft", *about]))
