"""Patients: found whatever the source calls them, told apart only where they are known, and named nowhere."""

import copy
import gc
import io
import pickle
import traceback
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from crossgraft import check_data
from crossgraft.data import dataset_from_arrays, make_split, open_dataset, opening
from crossgraft.data.checks import survey
from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError, UsageError
from crossgraft.metrics.evaluation import _Evidence
from crossgraft.progress import Reporter
from crossgraft.tasks import BinaryTask
from crossgraft.tune.planning.rows import columns_of
from support.medical import ct_slice, write_ct
from support.rows import rows_of
from support.tiny import make_images

IMAGES = np.random.default_rng(0).integers(0, 255, (24, 8, 8), dtype=np.uint8)
LABELS = np.arange(24) % 2
PATIENTS = np.asarray([f"P{i // 4}" for i in range(24)])
NAMES = (
    *("lesion_id", "lesion", "Patient ID", "PatientID", "patient-number", "patients", "patient_name", "patient_code"),
    *("subject", "subject_id", "SubjectID", "subjects", "case", "case_id", "CaseNumber", "participant_id", "person", "group"),
)
NO_NAMES = ("patient_age", "patient_sex", "lesion_size", "case_report", "staircase", "subjective", "age_group", "group_size")


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
    assert title not in [finding.title for finding in check_data(open_dataset(unknown)).record.findings if finding.images]


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


PLANTED = ("PLANTED-PATIENT-7", "97.125", "PLANTED-SITE")
"""A patient, an age and a site that stand in the data and may stand nowhere else."""


def planted(text):
    """Which of them a text or the bytes of a pickle hold."""
    if isinstance(text, bytes):
        ages = [np.float64(97.125).tobytes(), np.float64(97.125).astype(">f8").tobytes()]
        wide = [word.encode(code) for word in PLANTED for code in ("utf-8", "utf-32-le", "utf-16-le")]
        return [word for word in (*ages, *wide) if word in text]
    return [word for word in PLANTED if word in text]


def planted_columns():
    names, age, site = PLANTED
    columns = {
        "patient": PATIENTS.astype("<U20"),
        "age": np.arange(24) + 30.0,
        "site": np.asarray(["north", "south"] * 12, "<U20"),
    }
    columns["patient"][:4], columns["age"][3], columns["site"][5] = names, float(age), site
    return columns


def planted_data(folder, source):
    """A data set with all three, opened."""
    columns = planted_columns()
    if source in (opened_table, opened_hugging_face):
        columns = {name: values.astype(str) for name, values in columns.items()}
    if source is None:
        dataset = dataset_from_arrays(list(IMAGES), LABELS, groups=columns.pop("patient"))
        return replace(dataset, attributes=columns)
    return open_dataset(source(folder, columns))


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_a_pickle_of_data_names_no_patient_age_or_site_and_is_the_same_data(tmp_path, source):
    dataset = planted_data(tmp_path, source)
    content = pickle.dumps(dataset)
    assert not planted(content) and b"x/a" not in content
    other = pickle.loads(content)
    assert not set(PLANTED) & {*map(str, other.groups), *other.attributes}
    assert other.fingerprint == dataset.fingerprint and other.listing_fingerprint == dataset.listing_fingerprint
    assert (other.targets == dataset.targets).all() and (other.read(7) == dataset.read(7)).all()
    assert not other.read(7).flags.writeable
    drawn = [make_split(d.targets, d.groups, fractions={"train": 0.5, "test": 0.5}, seed=3) for d in (dataset, other)]
    assert drawn[0] == drawn[1]
    part = other.take([1, 2, 5])
    assert part.fingerprint != dataset.fingerprint and not planted(pickle.dumps(part))
    assert not planted(pickle.dumps(drawn[0].apply(other)))
    images = dataset.seen_as(ImageRows, class_names=(), targets=None)
    assert not planted(pickle.dumps(images))
    assert pickle.loads(pickle.dumps(images)).fingerprint == images.fingerprint == dataset.fingerprint


def test_a_pickle_says_what_it_left_out(tmp_path):
    """Metrics of subgroups need the values of a column; a copy without them says so instead of naming numbers."""
    other = pickle.loads(pickle.dumps(planted_data(tmp_path, opened_npz)))
    with pytest.raises(UsageError, match="--subgroups site: t has no such further column"):
        columns_of(other, "site")


def test_copies_in_the_same_process_keep_everything(tmp_path):
    dataset = planted_data(tmp_path, opened_npz)
    for other in (copy.copy(dataset), copy.deepcopy(dataset)):
        assert other.groups.tolist() == dataset.groups.tolist() and set(other.attributes) == {"age", "site"}
        assert other.image_name(3) == dataset.image_name(3) and other.fingerprint == dataset.fingerprint


def test_only_the_rows_of_a_part_are_pickled(tmp_path):
    dataset = planted_data(tmp_path, None)
    assert len(pickle.dumps(dataset.take([0]))) < len(pickle.dumps(dataset)) - 20 * IMAGES[0].nbytes


def ours():
    """Every object of crossgraft that is alive."""
    gc.collect()
    return [each for each in gc.get_objects() if str(type(each).__module__).partition(".")[0] == "crossgraft"]


class Looking(Reporter):
    """Keeps what is said, and looks at all objects that are alive, as a debugger or a crash report would."""

    def __init__(self):
        super().__init__(io.StringIO())
        self.seen = set()
        self.leaks = []
        self.before = {id(each): each for each in ours()}  # what earlier tests left, perhaps half made

    def look(self):
        for each in ours():
            if id(each) in self.before:
                continue
            self.seen.add(type(each).__name__)
            shown = [repr(each), str(each), getattr(type(each), "_repr_html_", str)(each)]
            with suppress(Exception):  # most objects cannot be pickled at all
                shown.append(pickle.dumps(each))
            self.leaks += [(type(each).__name__, leak) for text in shown for leak in planted(text)]


@pytest.mark.parametrize("source", [opened_table, opened_hugging_face])
def test_no_object_of_ours_shows_a_patient(tmp_path, source, monkeypatch):
    """While data are opened, checked and divided, and afterwards."""
    reporter = Looking()
    listing = opening.list_rows

    def list_rows(*arguments):
        found = listing(*arguments)
        reporter.look()
        return found

    monkeypatch.setattr(opening, "list_rows", list_rows)
    monkeypatch.setattr(survey, "list_rows", list_rows)
    path = source(tmp_path, {name: values.astype(str) for name, values in planted_columns().items()})
    dataset = open_dataset(path, reporter=reporter)
    check_data(path, reporter=reporter)
    rows = rows_of(dataset, seed=1)
    made = check_data(dataset, out=tmp_path / "run", reporter=reporter)
    reporter.look()
    assert {"Dataset", "SourceRows", "TuningRows", "DataCheck", "InspectedImages"} <= reporter.seen
    assert not reporter.leaks and not planted(reporter.stream.getvalue())
    shown = (dataset, rows, made, dataset.seen_as(ImageRows), survey.survey_rows(dataset))
    assert not planted(repr(shown))
    with pytest.raises(TypeError, match="Survey holds what data say of people"):
        pickle.dumps(shown[-1])
    written = b"".join(file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file())
    assert written and not planted(written)


def test_no_patient_of_a_dicom_file_stays_in_memory(tmp_path):
    pytest.importorskip("pydicom")
    reporter = Looking()
    dataset = open_dataset(scans(tmp_path / "scans", [PLANTED[0], "P2", PLANTED[0], "P2"]))
    reporter.look()
    assert "MedicalFile" in reporter.seen and not reporter.leaks
    assert len(set(dataset.groups)) == 2 and not planted(pickle.dumps(dataset))


def test_what_metrics_are_measured_on_shows_no_patient():
    evidence = _Evidence(np.eye(2), np.arange(2), BinaryTask(), ("a", "b"), np.asarray(PLANTED[:2]), None)
    assert "probabilities" in repr(evidence) and not planted(repr(evidence))


@pytest.mark.parametrize(
    "wrong",
    [{"label_column": "age"}, {"path_column": "site"}, {"label_column": "nothing"}, {"group_column": "nobody"}, {"folds": 9}],
    ids=str,
)
def test_the_traceback_of_an_error_names_no_patient(tmp_path, wrong):
    path = opened_table(tmp_path, {name: values.astype(str) for name, values in planted_columns().items()})
    with pytest.raises((DataError, UsageError)) as caught:
        open_dataset(path, **wrong)
    said = "".join(traceback.format_exception(caught.value))
    assert PLANTED[0] not in said


SCAN = "benign/00.png,benign,P001,63,SITE-A"
WITHOUT_HEADER = {
    "path": (f"{SCAN}\n{SCAN.replace('00', '01')}", {}, "cell 1 .* a path"),
    "file": ("SITE-A,P001,00.PNG\nSITE-B,P002,01.png", {}, "cell 3 .* a path"),
    "scan": ("SITE-A,00.nii.gz\nSITE-B,01.nii.gz", {}, "cell 2 .* a path"),
    "backslash": ("SITE-A,P001\\00\nSITE-B,P002\\01", {}, "cell 2 .* a path"),
    "number": ("P001,SITE-A,63.5\nP002,SITE-B,70", {}, "cell 3 .* a number"),
    "wanted": (f"{SCAN}\n{SCAN.replace('00', '01')}", {"path_column": "P00"}, "cell 1 .* a path"),
    "several": ("path,class,label,P001,63\na.png,b,c,P002,64", {}, "cell 5 .* a number"),
    "twice": ("00.png,P001,P001\n01.png,P002,P002", {}, "cell 1 .* a path"),
}


@pytest.mark.parametrize("case", WITHOUT_HEADER)
def test_a_table_without_header_names_no_patient(tmp_path, case):
    text, options, words = WITHOUT_HEADER[case]
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=rf"t\.csv seems to have no header: {words}.*Add a line above") as caught:
        open_dataset(tmp_path / "t.csv", **options)
    assert not any(word in str(caught.value) for word in ("P00", "63", "SITE", "benign"))


def test_numbers_may_name_columns_where_the_others_are_found(tmp_path):
    path = opened_table(tmp_path, {"2019": PATIENTS, "mm/px": PATIENTS})
    assert set(open_dataset(path).attributes) == {"2019", "mm/px"}
