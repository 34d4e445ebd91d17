"""Structured reports, read back by pydicom: what they say is what was predicted, of the images that they refer to."""

import sys

import numpy as np
import pydicom
import pytest
import torch

import crossgraft
from crossgraft.errors import DataError, MissingExtraError, RunDirectoryError
from crossgraft.models.classifier import make_classifier
from crossgraft.models.load import load_backbone
from crossgraft.models.spec import ModelSpec
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from support.medical import ct_slice, write_ct
from support.tiny import make_images
from support.tuning_records import tuning_record

highdicom = pytest.importorskip("highdicom", reason="the extra dicom-sr is not installed")
CLASSES = ("benign", "malignant")
USE = "Research use, not a medical device"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "model"
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    classifier = make_classifier(backbone, 2, seed=0)
    with torch.no_grad():
        classifier.head.weight.mul_(100)  # so that images differ
    save_model(folder, classifier, describe_saved_model(tuning_record(class_names=CLASSES), classifier, seed=0))
    return folder


def uids(study, image):
    return {"StudyInstanceUID": f"1.2.{study}", "SeriesInstanceUID": f"1.2.{study}.1", "SOPInstanceUID": f"1.2.{study}.1.{image}"}


@pytest.fixture(scope="module")
def ct(tmp_path_factory):
    """Two studies of two patients, the second one with two images."""
    folder = tmp_path_factory.mktemp("data") / "ct"
    for name, study, image in (("a", 7, 1), ("b", 8, 1), ("c", 8, 2)):
        elements = {"PatientName": f"Doe^{study}", "StudyDate": "20260801", **uids(study, image)}
        write_ct(folder / f"{name}.dcm", ct_slice(10 * study + image), patient=f"P{study}", **elements)
    return folder


def predict(model, images, **options):
    return crossgraft.predict(model, images, workers=1, ledger=False, **options)


def groups(document):
    """The measurement groups of a report (TID 1501), found by what the templates call them."""

    def inside(item):
        yield item
        for child in getattr(item, "ContentSequence", ()):
            yield from inside(child)

    named = [item for item in inside(document) if "ConceptNameCodeSequence" in item]
    return [item for item in named if item.ConceptNameCodeSequence[0].CodeValue == "125007"]


def said(group):
    """Meaning of a name → number, meaning of a code, or UID of an image."""
    found = {}
    for item in group.ContentSequence:
        name = item.ConceptNameCodeSequence[0].CodeMeaning if "ConceptNameCodeSequence" in item else item.ValueType
        if item.ValueType == "NUM":
            found[name] = float(item.MeasuredValueSequence[0].NumericValue)
        elif item.ValueType == "CODE":
            found[name] = item.ConceptCodeSequence[0].CodeMeaning
        elif item.ValueType == "IMAGE":
            found["image"] = item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID
        elif item.ValueType == "TEXT":
            found[name] = item.TextValue
    return found


def test_every_study_has_a_report_that_says_what_was_predicted(model, ct, tmp_path):
    predictions = predict(model, ct, dicom_sr=tmp_path / "sr")
    assert predictions.places()["DICOM SR"] == tmp_path / "sr"
    assert sorted(path.name for path in (tmp_path / "sr").iterdir()) == ["study-1.dcm", "study-2.dcm"]
    rows, number = predictions.record.rows, 0
    for file, study, images in (("study-1.dcm", 7, 1), ("study-2.dcm", 8, 2)):
        document = pydicom.dcmread(tmp_path / "sr" / file)
        assert document.SOPClassUID == pydicom.uid.ComprehensiveSRStorage and document.Modality == "SR"
        assert document.ContentTemplateSequence[0].TemplateIdentifier == "1500"
        assert (document.StudyInstanceUID, document.PatientID, str(document.PatientName)) == (
            f"1.2.{study}",
            f"P{study}",
            f"Doe^{study}",
        )
        assert document.VerificationFlag == "UNVERIFIED" and document.SeriesDescription.startswith(USE)
        found = groups(document)
        assert len(found) == images
        for place, group in enumerate(found, start=1):
            told, row = said(group), rows[number]
            number += 1
            assert told["image"] == f"1.2.{study}.1.{place}"
            for name, probability in zip(CLASSES, row.probabilities, strict=True):
                assert told[f"Probability of {name}"] == pytest.approx(probability, abs=1e-6)
            assert told["Decision of the model"] == row.decision and told["Intended use"] == USE
    assert len({tuple(row.probabilities) for row in rows}) == 3  # the test could not tell equal rows apart


def test_the_same_predictions_have_the_same_uids_and_reports_are_replaced_only_when_asked(model, ct, tmp_path):
    folders = [predict(model, ct, dicom_sr=tmp_path / name).dicom_sr for name in ("one", "two")]
    first, second = ({path.name: pydicom.dcmread(path).SOPInstanceUID for path in folder.iterdir()} for folder in folders)
    assert first == second and len({*first.values()}) == 2
    with pytest.raises(RunDirectoryError, match="structured reports already"):
        predict(model, ct, dicom_sr=tmp_path / "one")
    predict(model, ct, dicom_sr=tmp_path / "one", overwrite=True)
    (tmp_path / "two" / "notes.txt").write_text("mine")
    with pytest.raises(RunDirectoryError, match=r"notes\.txt"):
        predict(model, ct, dicom_sr=tmp_path / "two", overwrite=True)


def test_frames_are_referred_to_by_number(model, tmp_path):
    frames = np.stack([ct_slice(seed) for seed in (1, 2, 3)])
    write_ct(tmp_path / "ct" / "all.dcm", frames, **uids(5, 1))
    predict(model, tmp_path / "ct", slices="all", dicom_sr=tmp_path / "sr")
    document = pydicom.dcmread(tmp_path / "sr" / "study-1.dcm")
    numbers = [item.ReferencedSOPSequence[0].ReferencedFrameNumber for group in groups(document)
               for item in group.ContentSequence if item.ValueType == "IMAGE"]  # fmt: skip
    assert numbers == [1, 2, 3]


@pytest.mark.parametrize("missing", ["StudyInstanceUID", "SeriesInstanceUID"])
def test_images_without_uids_are_refused_before_the_network_runs(model, tmp_path, monkeypatch, missing):
    write_ct(tmp_path / "ct" / "a.dcm", ct_slice(1), **{name: uid for name, uid in uids(5, 1).items() if name != missing})
    verb = sys.modules["crossgraft.predict.verb"]
    monkeypatch.setattr(verb, "compute_logits", lambda *_, **__: pytest.fail("the network ran"))
    with pytest.raises(DataError, match=rf"a\.dcm has no valid {missing}"):
        predict(model, tmp_path / "ct", dicom_sr=tmp_path / "sr")
    assert not (tmp_path / "sr").exists()


def test_other_images_are_refused(model, tmp_path):
    make_images(tmp_path / "photos", {"benign": 2})
    with pytest.raises(DataError, match=r"--dicom-sr reports on files of DICOM, and .*00\.png is none"):
        predict(model, tmp_path / "photos", dicom_sr=tmp_path / "sr")
    with pytest.raises(DataError, match="reports on files of DICOM"):
        predict(model, np.zeros((2, 32, 32, 3), np.uint8), dicom_sr=tmp_path / "sr")


def test_the_package_is_asked_for_before_the_model_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "highdicom", None)
    with pytest.raises(MissingExtraError, match=r"crossgraft\[dicom-sr\]"):
        predict(tmp_path / "no such model", tmp_path, dicom_sr=tmp_path / "sr")


def written(folder):
    return [pydicom.dcmread(path) for path in sorted(folder.glob("*.dcm"))]


@pytest.mark.parametrize(
    ("names", "shown"),
    [(("größe", "日本"), ("größe", "日本")), (("a\\b", "c^d"), ("a/b", "c^d")), (("x" * 90, "y"), ("x" * 63 + "…", "y"))],
)
def test_names_of_classes_are_read_back_in_any_script(names, shown, tmp_path):
    backbone = load_backbone(ModelSpec("small", "test_resnet", weights="random"), image_size=32)
    classifier = make_classifier(backbone, 2, seed=0)
    save_model(tmp_path / "m", classifier, describe_saved_model(tuning_record(class_names=names), classifier, seed=0))
    write_ct(tmp_path / "d" / "a.dcm", ct_slice(1), patient="P1", **uids(7, 1))
    predict(tmp_path / "m", tmp_path / "d", dicom_sr=tmp_path / "sr")
    (document,) = written(tmp_path / "sr")
    (found,) = map(said, groups(document))
    assert found["Decision of the model"] in shown
    assert f"Probability of {shown[1]}" in found


@pytest.mark.parametrize("name", ["Люкceмбypг", "Иванов^Иван"])
def test_the_name_of_a_patient_is_repeated_from_another_character_set(name, model, tmp_path):
    elements = {"SpecificCharacterSet": "ISO_IR 144", "PatientName": name, **uids(7, 1)}
    write_ct(tmp_path / "d" / "a.dcm", ct_slice(1), patient="P1", **elements)
    predict(model, tmp_path / "d", dicom_sr=tmp_path / "sr")
    (document,) = written(tmp_path / "sr")
    assert str(document.PatientName) == name


def test_two_patients_with_one_study_uid_are_not_put_into_one_report(model, tmp_path):
    for number in (1, 2):
        write_ct(tmp_path / "d" / f"{number}.dcm", ct_slice(number), patient=f"P{number}", **uids(7, number))
    predict(model, tmp_path / "d", dicom_sr=tmp_path / "sr")
    told = {document.PatientID: [said(group)["image"] for group in groups(document)] for document in written(tmp_path / "sr")}
    assert told == {"P1": ["1.2.7.1.1"], "P2": ["1.2.7.1.2"]}


def test_two_images_of_one_uid_are_refused(model, tmp_path):
    for number in (1, 2):
        write_ct(tmp_path / "d" / f"{number}.dcm", ct_slice(number), patient="P1", **uids(7, 1))
    with pytest.raises(DataError, match=r"1\.dcm and .*2\.dcm have the same SOPInstanceUID"):
        predict(model, tmp_path / "d", dicom_sr=tmp_path / "sr")
    assert not (tmp_path / "sr").exists()
