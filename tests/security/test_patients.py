"""Patients: found whatever the source calls them, told apart only where they are known, and named nowhere."""

import numpy as np
import pytest

from crossgraft.data import dataset_from_arrays, make_split, open_dataset
from crossgraft.data.checks import check_data
from crossgraft.errors import DataError
from support.medical import ct_slice, write_ct
from support.tiny import make_images

IMAGES = np.random.default_rng(0).integers(0, 255, (24, 8, 8), dtype=np.uint8)
LABELS = np.arange(24) % 2
PATIENTS = np.asarray([f"P{i // 4}" for i in range(24)])
NAMES = (
    *("lesion_id", "lesion", "Patient ID", "PatientID", "patient-number", "patients", "patient_name", "patient_code"),
    *(
        "subject",
        "subject_id",
        "SubjectID",
        "subjects",
        "case",
        "case_id",
        "CaseNumber",
        "participant_id",
        "person",
        "group",
    ),
)
NO_NAMES = (
    "patient_age",
    "patient_sex",
    "lesion_size",
    "case_report",
    "staircase",
    "subjective",
    "age_group",
    "group_size",
)


def opened_table(folder, columns):
    if not (folder / "x").exists():
        make_images(folder / "x", {"a": 24}, size=8)
    names = [f"x/a/{i:02d}.png" for i in range(24)]
    rows = zip(names, map(str, LABELS), *columns.values(), strict=True)
    (folder / "t.csv").write_text("\n".join([",".join(["path", "label", *columns]), *map(",".join, rows)]))
    return folder / "t.csv"


def opened_npz(folder, columns):
    np.savez(folder / "t.npz", images=IMAGES, labels=LABELS, **columns)
    return folder / "t.npz"


def opened_medmnist(folder, columns):
    columns = {f"train_{name}": values for name, values in columns.items()}
    np.savez(folder / "m.npz", train_images=IMAGES, train_labels=LABELS[:, None], **columns)
    return folder / "m.npz"


def opened_hugging_face(folder, columns):
    datasets = pytest.importorskip("datasets")
    features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])}
    features |= {name: datasets.Value("string") for name in columns}
    columns = {"image": list(IMAGES), "label": LABELS.tolist(), **{name: list(columns[name]) for name in columns}}
    made = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    made.save_to_disk(folder / "hf")
    return folder / "hf"


SOURCES = (opened_table, opened_npz, opened_medmnist, opened_hugging_face)


@pytest.mark.parametrize("source", [opened_table, opened_npz])
def test_a_column_that_names_patients_is_found(tmp_path, source):
    for name in NAMES:
        dataset = open_dataset(source(tmp_path, {name: PATIENTS}))
        assert dataset.group_column == name and dataset.groups.tolist() == PATIENTS.tolist()
        assert name not in dataset.attributes


@pytest.mark.parametrize("source", SOURCES)
def test_all_sources_know_the_same_names(tmp_path, source):
    path = source(tmp_path, {"lesion_id": PATIENTS, "case_report": PATIENTS})
    assert open_dataset(path).group_column == "lesion_id"
    assert open_dataset(path, group_column="case_report").group_column == "case_report"
    assert open_dataset(path, group_column="none").groups is None


@pytest.mark.parametrize("source", SOURCES)
def test_two_columns_of_patients_are_asked_about(tmp_path, source):
    path = source(tmp_path, {"lesion_id": PATIENTS, "patient": PATIENTS})
    with pytest.raises(DataError, match="could hold the groups: lesion_id, patient"):
        open_dataset(path)


@pytest.mark.parametrize("source", SOURCES)
def test_a_usual_name_comes_before_the_others(tmp_path, source):
    """Tables with a patient and a case were grouped by patient, and still are."""
    path = source(tmp_path, {"case_id": np.asarray([f"C{i}" for i in range(24)]), "patient_id": PATIENTS})
    assert open_dataset(path).group_column == "patient_id"


@pytest.mark.parametrize("source", SOURCES)
def test_what_only_sounds_like_a_patient_is_none(tmp_path, source):
    assert open_dataset(source(tmp_path, dict.fromkeys(NO_NAMES, PATIENTS))).groups is None


def test_a_column_that_is_used_for_something_else_is_no_group(tmp_path):
    path = opened_table(tmp_path, {"writer": np.asarray(["A", "B"] * 12)})
    assert open_dataset(path, label_column="writer").groups is None
    path = opened_npz(tmp_path, {"case": np.asarray(["A", "B"] * 12)})
    assert open_dataset(path, label_column="case").groups is None


def test_an_array_of_another_length_is_no_group(tmp_path):
    """A list of the subjects, one entry each, is not the subject of each image."""
    assert open_dataset(opened_npz(tmp_path, {"subjects": PATIENTS[:6]})).groups is None


def test_no_lesion_of_an_npz_file_is_in_two_parts(tmp_path):
    dataset = open_dataset(opened_npz(tmp_path, {"lesion_id": PATIENTS}))
    split = make_split(dataset.targets, dataset.groups, fractions={"train": 0.5, "test": 0.5}, seed=0)
    assert not set(PATIENTS[split.rows("train")]) & set(PATIENTS[split.rows("test")])


@pytest.mark.parametrize(
    "groups",
    [np.where(LABELS == 0, "", PATIENTS), np.where(LABELS == 0, "  ", PATIENTS), np.where(LABELS == 0, np.nan, 1.0)],
    ids=["empty", "blank", "NaN"],
)
@pytest.mark.parametrize("source", [opened_npz, opened_medmnist])
def test_unknown_patients_are_not_one_patient(tmp_path, source, groups):
    path = source(tmp_path, {"patient": groups})
    with pytest.raises(DataError, match=r"The group is missing in row 0 of .*, and in 12 rows in all\. Fill it in"):
        open_dataset(path)
    with pytest.raises(DataError, match=r"The group is missing in row 0 .*, and in 12 rows in all\. Fill it in"):
        dataset_from_arrays(IMAGES, LABELS, groups=groups)


def test_missing_patients_of_arrays_may_be_none():
    with pytest.raises(DataError, match="The group is missing in row 1"):
        dataset_from_arrays(IMAGES, LABELS, groups=["P1", None] * 12)


def scans(folder, patients):
    """One picture in every file, of these patients."""
    for i, patient in enumerate(patients):
        write_ct(folder / "ab"[i % 2] / f"{i}.dcm", ct_slice(0), patient=patient)
    return folder


def titles(path, severity="unsound"):
    return [finding.title for finding in check_data(path).record.findings if finding.severity == severity]


def test_a_picture_of_an_unknown_patient_is_not_said_to_be_of_two(tmp_path):
    pytest.importorskip("pydicom")
    title = "Same picture, two patients"
    assert title in titles(scans(tmp_path / "known", ["P1", "P2", "P1", "P2"]))
    unknown = scans(tmp_path / "unknown", ["P1", None, "P1", ""])
    write_ct(unknown / "a" / "other.dcm", ct_slice(1), patient="P2")
    assert title not in titles(unknown)
    assert title not in [
        finding.title for finding in check_data(open_dataset(unknown)).record.findings if finding.images
    ]


def test_slices_of_files_without_a_patient_are_not_said_to_be_of_two(tmp_path):
    pytest.importorskip("nibabel")
    from support.medical import write_nifti

    volume = np.random.default_rng(0).random((8, 8, 4), dtype=np.float32)
    for name in ("a/0", "b/0", "a/1", "b/1"):
        (tmp_path / "volumes" / name).parent.mkdir(parents=True, exist_ok=True)
        write_nifti(tmp_path / "volumes" / f"{name}.nii.gz", volume)
    dataset = open_dataset(tmp_path / "volumes", slices="2")
    assert dataset.group_column == "file (its slices stay together)"
    found = {finding.title: finding for finding in check_data(dataset).record.findings}
    assert "Same picture, two patients" not in found
    assert found["Identical images"].severity == "warning"
