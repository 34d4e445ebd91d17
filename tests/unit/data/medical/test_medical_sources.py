"""DICOM and NIfTI files in folders and tables: slices become rows, patients become groups, nobody is named."""

import sys

import numpy as np
import pytest

from crossgraft.data import open_dataset
from crossgraft.data.medical import nifti
from crossgraft.errors import DataError, MissingExtraError, UnreadableImageError, UsageError
from support.medical import ct_slice, write_ct, write_dicom, write_nifti


@pytest.fixture
def ct_folder(tmp_path):
    """Two classes of six files, two of each patient; some are called as scanners call them."""
    names = ("a.dcm", "B.DICOM", "IM000003", "1.2.840.4711", "e.IMA", "f.dcm")
    for seed, label in enumerate(("benign", "malignant")):
        for i, name in enumerate(names):
            patient = f"MRN-{seed}{i // 2}"
            write_ct(tmp_path / "ct" / label / name, ct_slice(10 * seed + i), patient=patient, PatientName="Doe^Jane")
    return tmp_path / "ct"


@pytest.fixture
def volumes(tmp_path):
    """Two classes of three volumes with nine different slices."""
    for seed, label in enumerate(("a", "b")):
        for i in range(3):
            values = np.random.default_rng(10 * seed + i).integers(0, 1000, (6, 5, 9)).astype(np.int16)
            write_nifti(tmp_path / "mr" / label / f"{i}.nii.gz", values)
    return tmp_path / "mr"


def test_a_folder_of_dicom_files(ct_folder, reporter):
    (ct_folder / "benign" / "notes").write_text("no image")
    (ct_folder / "benign" / "DICOMDIR").write_bytes(bytes(128) + b"DICM")
    dataset = open_dataset(ct_folder, reporter=reporter)
    assert dataset.class_counts == (6, 6)
    assert len(np.unique(dataset.groups)) == 6
    assert dataset.group_column == "patient (DICOM PatientID)"
    assert dataset.image_kinds == {"32×32 grey 16-bit": 12}
    assert dataset.reading == (
        "13 files: 4 without extension, 4 .dcm, 2 .dicom and 2 .ima are read; passed over: 1 without extension (not read).",
        "DICOM: own window in 12 files.",
    )
    assert "DICOM: own window in 12 files." in reporter.stream.getvalue()
    assert "Warning" not in reporter.stream.getvalue()


def test_groups_are_numbers_of_patients(ct_folder):
    dataset = open_dataset(ct_folder)
    assert set(dataset.groups) == {f"patient {number}" for number in range(1, 7)}
    by_file = {dataset.image_name(row): dataset.groups[row] for row in range(12)}
    assert by_file["benign/a.dcm"] != by_file["malignant/a.dcm"]
    assert sorted(list(dataset.groups).count(group) for group in set(dataset.groups)) == [2] * 6
    assert "MRN" not in repr(dataset) + str(dataset.groups)


def test_patients_stay_together_in_a_new_split(ct_folder):
    dataset = open_dataset(ct_folder, holdout=0.34)
    everything = open_dataset(ct_folder)
    left_out = set(everything.groups) - set(dataset.groups)
    assert left_out
    for group in set(dataset.groups):
        assert (dataset.groups == group).sum() == 2


def test_a_file_that_names_no_patient_is_one_of_its_own(ct_folder, reporter):
    for i in range(2):
        write_ct(ct_folder / "benign" / f"unnamed {i}.dcm", ct_slice(99 + i), patient=None)
    dataset = open_dataset(ct_folder, reporter=reporter)
    assert len(np.unique(dataset.groups)) == 8
    assert "2 of 14 files name no patient; each counts as a patient of its own" in reporter.stream.getvalue()


def test_one_patient_in_all_files_is_no_grouping(tmp_path, reporter):
    for i in range(6):
        write_ct(tmp_path / "ct" / "ab"[i % 2] / f"{i}.dcm", ct_slice(i), patient="ANONYMOUS")
    assert open_dataset(tmp_path / "ct", reporter=reporter).groups is None
    said = reporter.stream.getvalue()
    assert "6 DICOM files name one and the same patient" in said and "ANONYMOUS" not in said


def test_slices_of_a_volume_become_rows_of_one_group(volumes, reporter):
    assert len(open_dataset(volumes)) == 6
    dataset = open_dataset(volumes, slices="3", reporter=reporter)
    assert len(dataset) == 18
    assert dataset.class_counts == (9, 9)
    assert [dataset.image_name(row) for row in range(3)] == [f"a/0.nii.gz slice {number}" for number in (2, 5, 8)]
    assert sorted(list(dataset.groups).count(group) for group in set(dataset.groups)) == [3] * 6
    assert dataset.group_column == "file (its slices stay together)"
    assert dataset.reading == (
        "NIfTI: lowest to highest value in 6 files; of 6 files with several slices, 3 evenly spaced slices.",
    )


def test_slices_are_what_they_are_alone(volumes):
    dataset = open_dataset(volumes, slices="all")
    assert len(dataset) == 54
    alone = open_dataset(volumes, slices="slice:4")
    np.testing.assert_array_equal(alone.read(0), dataset.read(3))
    np.testing.assert_array_equal(open_dataset(volumes).read(0), dataset.read(4))


def test_a_volume_is_read_once_for_all_of_its_slices(volumes, monkeypatch):
    loads = []
    read = nifti.read_first_volume
    monkeypatch.setattr(nifti, "read_first_volume", lambda *arguments: loads.append(1) or read(*arguments))
    open_dataset(volumes, slices="all", num_threads=4)
    assert len(loads) == 6


def test_a_slice_that_is_not_there_names_the_file(volumes):
    with pytest.raises(UnreadableImageError, match=r"a/0\.nii\.gz slice 10: it has 9 slices; slice 10 was asked for"):
        open_dataset(volumes, slices="slice:10")


def test_frames_of_a_patient_stay_together(tmp_path):
    for i in range(8):
        frames = np.stack([ct_slice(10 * i + frame) for frame in range(4)])
        write_dicom(tmp_path / "us" / "ab"[i % 2] / f"{i}.dcm", frames, patient=f"P{i // 4}{i % 2}")
    dataset = open_dataset(tmp_path / "us", slices="all")
    assert len(dataset) == 32
    assert sorted(list(dataset.groups).count(group) for group in set(dataset.groups)) == [8] * 4
    assert dataset.image_name(1) == "a/0.dcm slice 2"


@pytest.fixture
def table(ct_folder):
    """A table beside the files, with half of the extensions left out; `patient` is filled by the test."""

    def write(with_patients):
        rows = ["path,label" + (",patient" if with_patients else "")]
        for label in ("benign", "malignant"):
            for i, name in enumerate(("a", "B.DICOM", "IM000003", "1.2.840.4711", "e.IMA", "f")):
                rows.append(f"{label}/{name},{label}" + (f",Z{i % 3}" if with_patients else ""))
        path = ct_folder / "table.csv"
        path.write_text("\n".join(rows) + "\n")
        return path

    return write


def test_a_table_of_dicom_files(table):
    dataset = open_dataset(table(False))
    assert len(dataset) == 12 and len(np.unique(dataset.groups)) == 6
    assert dataset.group_column == "patient (DICOM PatientID)"


def test_the_group_column_of_a_table_wins(table):
    dataset = open_dataset(table(True))
    assert set(dataset.groups) == {"Z0", "Z1", "Z2"} and dataset.group_column == "patient"
    dataset = open_dataset(table(True), group_column="patient")
    assert set(dataset.groups) == {"Z0", "Z1", "Z2"}


def test_slices_repeat_the_row_of_a_table(volumes):
    rows = [f"{label}/{i},{label},{i},{label}{i}" for label in "ab" for i in range(3)]
    (volumes / "t.csv").write_text("path,label,age,patient\n" + "\n".join(rows) + "\n")
    dataset = open_dataset(volumes / "t.csv", slices="2")
    assert dataset.attributes["age"].tolist() == [0, 0, 1, 1, 2, 2] * 2
    assert list(dataset.groups[:4]) == ["a0", "a0", "a1", "a1"]
    assert list(dataset.labels) == ["a"] * 6 + ["b"] * 6


def test_formats_may_be_mixed(ct_folder, write_image):
    write_image(ct_folder / "benign" / "photo.png", seed=1)
    write_nifti(ct_folder / "malignant" / "v.nii", np.random.default_rng(0).integers(0, 99, (4, 4, 4)).astype(np.int16))
    dataset = open_dataset(ct_folder)
    assert dataset.class_counts == (7, 7)
    assert len(np.unique(dataset.groups)) == 8


def test_damaged_files_are_named_counted_and_may_be_skipped(ct_folder):
    (ct_folder / "benign" / "a.dcm").write_bytes((ct_folder / "benign" / "a.dcm").read_bytes()[:-99])
    (ct_folder / "benign" / "z.dcm").write_bytes(b"")
    with pytest.raises(UnreadableImageError, match=r"benign/a\.dcm: the file is truncated.*1 more cannot be read: benign/z\.dcm"):
        open_dataset(ct_folder)
    dataset = open_dataset(ct_folder, skip_unreadable=True)
    assert len(dataset) == 11 and len(dataset.skipped_unreadable) == 2


@pytest.mark.parametrize(("option", "value"), [("window", "lung"), ("slices", "all")])
def test_options_for_files_that_are_not_there(make_folder, option, value):
    with pytest.raises(UsageError, match=f"--{option} has no meaning here: none of the files is DICOM or NIfTI"):
        open_dataset(make_folder({"a": 2, "b": 2}), **{option: value})


@pytest.mark.parametrize(("option", "value"), [("window", "lungs"), ("slices", "every")])
def test_wrong_options_are_wrong_usage(ct_folder, option, value):
    with pytest.raises(UsageError, match=f"--{option} is"):
        open_dataset(ct_folder, **{option: value})


@pytest.mark.parametrize(("fixture", "module"), [("ct_folder", "pydicom"), ("volumes", "nibabel")])
def test_the_extra_is_named_where_it_is_missing(request, monkeypatch, fixture, module):
    folder = request.getfixturevalue(fixture)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs the package {module}.*pip install 'crossgraft\[medical\]'"):
        open_dataset(folder)


def test_windows_that_may_mislead_are_pointed_out(tmp_path, reporter):
    for i in range(6):
        write_ct(tmp_path / "x" / "ab"[i % 2] / f"{i}.dcm", ct_slice(i), patient=f"P{i}", window=None)
    open_dataset(tmp_path / "x", reporter=reporter)
    assert "6 files of CT name no window" in reporter.stream.getvalue()
    write_ct(tmp_path / "x" / "a" / "mr.dcm", ct_slice(7), patient="P7", Modality="MR")
    open_dataset(tmp_path / "x", window="lung", reporter=reporter)
    assert "window lung is meant for Hounsfield units, and 1 file of 7 are not CT" in reporter.stream.getvalue()
    write_dicom(tmp_path / "x" / "a" / "w.dcm", ct_slice(8), patient="P8", RescaleSlope=2, RescaleIntercept=0)
    open_dataset(tmp_path / "x", window="full", reporter=reporter)
    assert "differ in bits, slope or intercept (2 kinds)" in reporter.stream.getvalue()


def test_the_first_volume_is_announced(tmp_path, reporter):
    for i in range(4):
        values = np.random.default_rng(i).integers(0, 99, (4, 4, 3, 2)).astype(np.int16)
        write_nifti(tmp_path / "x" / "ab"[i % 2] / f"{i}.nii", values)
    open_dataset(tmp_path / "x", reporter=reporter)
    assert "Only the first volume of 4 files with several (4D NIfTI) is used" in reporter.stream.getvalue()


def test_one_file_is_not_a_data_set(ct_folder):
    with pytest.raises(DataError, match="is one image"):
        open_dataset(ct_folder / "benign" / "a.dcm")


def test_files_without_class_folders(ct_folder):
    with pytest.raises(DataError, match="holds 6 images but no class folders"):
        open_dataset(ct_folder / "benign")


@pytest.mark.parametrize(
    ("elements", "said"),
    [
        ({"PixelSpacing": [0.7, 0.7]}, ""),
        ({"PixelSpacing": [0.8, 0.4]}, "not square (height over width up to 2.00)"),
        ({"ImagerPixelSpacing": [0.1, 0.2]}, "not square (height over width up to 0.50)"),
        ({"PixelAspectRatio": [4, 3]}, "not square (height over width up to 1.33)"),
        ({"PixelSpacing": [0.7, 0.7], "PixelAspectRatio": [4, 3]}, ""),  # the spacing says it
    ],
)
def test_pixels_that_are_not_square_are_named(tmp_path, elements, said):
    for label in ("a", "b"):
        for i in range(2):
            write_dicom(tmp_path / "d" / label / f"{i}.dcm", ct_slice(i + 5 * (label == "b")), **elements)
    reading = " ".join(open_dataset(tmp_path / "d").reading)
    assert (said in reading) if said else ("square" not in reading)


def test_voxels_that_are_not_square_in_the_slice_are_named(tmp_path):
    affine = np.zeros((4, 4))
    affine[0, 2], affine[1, 0], affine[2, 1], affine[3, 3] = (5.0, 1.0, 2.0, 1.0)  # sagittal planes, 1 mm by 2 mm, 5 mm apart
    for label in ("a", "b"):
        for i in range(2):
            values = np.random.default_rng(i + 9 * (label == "b")).integers(0, 99, (6, 5, 1)).astype(np.int16)
            write_nifti(tmp_path / "mr" / label / f"{i}.nii", values, affine=affine)
    assert "4 files are not square (height over width up to 2.00)" in " ".join(open_dataset(tmp_path / "mr").reading)
