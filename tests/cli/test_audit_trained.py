"""``crossgraft audit`` of runs and functions: what is trained already is asked, where it has seen no image."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import crossgraft as package
from crossgraft.audit.record import AuditRecord
from crossgraft.errors import DataError, UsageError
from support.audit_study import CODE, DATA, FAST, OPTIONS, QUICK, TAG, TUNE, brightness, record_of, told_by, with_sex


def test_a_trained_model_is_asked_on_its_test_images(tuned, audit):
    done = audit("tuned", *DATA, *CODE, *FAST, *TAG, "--out", "asked")
    assert done.code == 0, done.err
    record = record_of(tuned.parent / "asked")
    (entry,) = record.entries
    assert (record.mode, entry.mode, record.shares, record.num_folds) == ("trained", "trained", [], 1)
    assert entry.outcome in ("sensitive", "relies") and entry.metric("auc_drop").value > 0.05
    assert "heads that are fitted to 96 training images" in entry.start
    drop = entry.metric("clean_auc").value - entry.metric("ood_auc").value
    assert entry.metric("auc_drop").value == pytest.approx(drop)
    assert record.num_test == len(pd.read_csv(tuned / "predictions.csv")) == 24
    assert "Measured on the test part of the run." in record.notes
    assert "AUC drop" in done.out and "SRI" not in done.out


def test_no_image_that_the_model_was_made_with_counts_as_a_test_image(tuned, audit):
    """A part of the data of the run has another fingerprint, and says nothing of the parts of the run."""
    study = tuned.parent
    done = audit("tuned", *DATA, "--limit", "60", *CODE, *FAST, *TAG, "--out", "limited")
    assert done.code == 0, done.err
    record = record_of(study / "limited")
    (note,) = [note for note in record.notes if note.startswith("Measured")]
    left_out = int(re.fullmatch(r"Measured on images without (\d+) images that the model was fine-tuned with\.", note)[1])
    assert 30 < left_out < 60 and record.num_test == 60 - left_out

    table = pd.read_csv(study / "study.csv")
    is_test = table.index.isin(pd.read_csv(tuned / "predictions.csv")["row"] - 1)
    table[is_test].to_csv(study / "unseen.csv", index=False)
    table[~is_test].to_csv(study / "seen.csv", index=False)
    assert audit("tuned", "--data", "unseen.csv", *CODE, *FAST, *TAG, "--out", "unseen").code == 0
    record = record_of(study / "unseen")
    assert record.num_test == 24 and "none is, pixel by pixel, one that the model was fine-tuned with" in record.notes[0]
    refused = audit("tuned", "--data", "seen.csv", *CODE, *FAST, *TAG, "--out", "seen")
    assert refused.code != 0 and "fine-tuned with all 96 images" in " ".join(refused.err.split())


def test_a_run_of_pairs_is_audited_on_patients_that_it_has_not_seen(study, run_once, audit):
    """20 of 60 patients have no ill image, so that their other one is in no pair."""
    table = pd.read_csv(study / "study.csv").drop(index=range(1, 40, 2))
    extra = (
        table[table["label"] == "healthy"].tail(20).assign(path=[f"scans/Jones{number:03d}.png" for number in range(1, 40, 2)])
    )
    pd.concat([table, extra]).to_csv(study / "study.csv", index=False)
    run_once(*TUNE, "--epochs", "3", "--learning-rate", "0.05", "--no-images", "--pair-by", "patient", out="pairs")
    used = json.loads((study / "pairs" / "split.json").read_text())
    of_patient = pd.read_csv(study / "study.csv")["patient"]
    paired = {f"Smith{number}" for number in range(20, 60)}
    known, unseen = (
        {of_patient[row] for part in parts for row in used[part]} & paired for parts in (("train", "val"), ("test",))
    )
    for flags in ((), ("--pair-by", "patient")):
        done = audit("pairs", *DATA, *flags, *CODE, *FAST, *TAG, "--out", f"audit{len(flags)}")
        assert done.code == 0, done.err
        record = record_of(study / f"audit{len(flags)}")
        assert record.entries[0].points and (" of the same groups (patient)." in record.notes[0]) == (not flags)
        assert record.num_test == (2 * len(unseen) if flags else sum(~of_patient.isin(known)))


@pytest.mark.parametrize("of_trained", [False, True])
def test_a_plan_says_how_many_images_a_verdict_needs_and_asks_nothing(tuned, audit, of_trained, monkeypatch):
    study = tuned.parent
    with_sex(study, in_pixels=False)
    model = ("tuned", *DATA, *CODE, *FAST) if of_trained else QUICK
    done = audit(*model, *TAG, "--attribute", "sex:F", "--plan", "--json", "--fail-on", "relies", "--out", "planned")
    assert done.code == 0, done.err
    record = AuditRecord.model_validate(json.loads(done.out))
    assert (record.entries, record.gates) == ([], []) and not (study / "planned").exists()
    of_tag, of_sex = ([each for each in record.needs if each.confounder.startswith(name)] for name in ("tag", "sex"))
    assert [each.what for each in of_tag] == ["groups of ill", "groups of other classes"]
    assert [each.needed for each in of_tag] == [72, 72] and [each.needed for each in of_sex] == [207] * 4
    assert sum(each.available for each in of_sex) == record.num_test == 24
    said = audit(*model, *TAG, "--plan")
    assert "There may be too few images for a verdict on tag" in " ".join(said.out.split()) and "72" in said.out


@pytest.mark.parametrize("of_trained", [False, True])
def test_nobody_is_named_in_the_run_directory(tuned, audit, of_trained):
    model = ("tuned", *DATA, *CODE, *FAST) if of_trained else QUICK
    outside = ("--confounder", "tag:0.9,xy=[0.9,0.9]")
    done = audit(*model, *TAG, *outside, "--out", "out")
    assert done.code == 0 and "Jones" in done.err  # whose image it does not fit into is for the terminal
    (refused,) = [each for each in record_of(tuned.parent / "out").entries if each.outcome == "impossible"]
    assert refused.reason.startswith("An image cannot be edited. tag: ")
    told = told_by(tuned.parent / "out")
    assert b"Smith" not in told and b"Jones" not in told
    assert str(tuned.parent).encode() not in told


@pytest.mark.parametrize(
    "flags",
    [
        ("--folds", "3"),
        ("--mode", "full"),
        ("--shares", "0,0.5,1"),
        ("--negatives", "0.3"),
        ("--unit", "patient"),
        ("--test-mode", "sampled"),
        ("--absent", "jpeg"),
        ("--mitigate", "dfr"),
        ("--epochs", "3"),
        ("--learning-rate", "0.1"),
        ("--image-size", "32"),
    ],
    ids=lambda flags: flags[0],
)
def test_a_trained_model_takes_no_option_of_training(tuned, audit, flags):
    done = audit("tuned", *DATA, *CODE, *FAST, *flags)
    assert done.code == 2 and f"{flags[0]} is for models that are trained for the audit" in " ".join(done.err.split())


def test_a_run_is_asked_about_an_attribute(study, audit, tuned):
    with_sex(study, in_pixels=False)
    done = audit("tuned", *DATA, *CODE, *FAST, "--attribute", "sex:F", "--out", "asked")
    assert done.code == 0, done.err
    (entry,) = record_of(study / "asked").entries
    assert entry.metric("overall_auc").value > 0.5 and len(entry.points[0].cells) == 4
    assert "--with sex" not in " ".join(done.out.split())  # an attribute cannot be painted


def test_a_run_is_read_before_fine_tuning_and_after_it(study, audit, tuned, monkeypatch):
    with_sex(study, in_pixels=False)
    monkeypatch.setattr("crossgraft.audit.readable.LEAST_IMAGES", 4)
    flags = ("--readable", "sex:F", "--readable", "patient_age", *DATA, *CODE, *FAST)
    assert audit("tuned", *flags, "--out", "typo").code == 2
    for model in ("tuned", QUICK[0]):  # before anything is trained, so that a plan tells as well
        early = audit(model, *(QUICK[1:] if model != "tuned" else (*DATA, *CODE, *FAST)), "--readable", "sexx:F", "--plan")
        assert early.code == 2 and "Did you mean sex" in early.err
    done = audit("tuned", "--readable", "sex:F", *DATA, *CODE, *FAST, "--out", "read")
    assert done.code == 0, done.err
    first = record_of(study / "read").readable[0]
    assert first.features == "features after fine-tuning"
    with pytest.raises(UsageError, match="needs the features of a network"):
        package.audit_model(brightness, data="study.csv", class_names=["healthy", "ill"], readable="sex:F")


def test_a_function_can_be_asked_and_nobody_knows_what_it_has_seen(study):
    found = package.audit_model(
        brightness,
        data="study.csv",
        class_names=["healthy", "ill"],
        confounders=["tag:0.5,xy=[0.1,0.1]"],
        workers=1,
        device="cpu",
    )
    (entry,) = found.record.entries
    assert (found.record.mode, entry.outcome) == ("trained", "sensitive")
    assert "name it with --start" in entry.reason and entry.metric("pull_over_start") is None
    assert any("not known here" in note for note in found.record.notes)


def test_a_condition_on_verdicts_spares_what_is_only_sensitive(study):
    def exit_code(condition):
        asked = {"data": "study.csv", "class_names": ["healthy", "ill"], "confounders": ["tag:0.5,xy=[0.1,0.1]"]}
        return package.audit_model(brightness, **asked, fail_on=condition, workers=1, device="cpu").exit_code

    assert [exit_code(each) for each in ("relies", "auc_drop>0.05")] == [0, 0]
    assert [exit_code(each) for each in ("sensitive", "sensitive:auc_drop>0.05")] == [5, 5]


def test_a_trained_model_has_no_images_with_another_level(study):
    asked = {name: value for name, value in OPTIONS.items() if name not in ("allow_code", "audit_folds", "confounders")}
    with pytest.raises(UsageError, match="Write --confounder tag"):
        package.audit_model(brightness, **asked, class_names=["healthy", "ill"], confounders=["tag against gamma"])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda images: np.ones((len(images), 3)) / 3, "shape"),
        (lambda images: np.full(len(images), 1.5), r"must lie in \[0, 1\]"),
        (lambda images: np.array([np.nan] * len(images)), r"must lie in \[0, 1\]"),
    ],
)
def test_a_function_that_gives_no_probabilities_is_refused(study, answer, said):
    """Not an entry that says that the artefact could not be measured: nothing can be, with this function."""
    options = {**OPTIONS, "class_names": ["healthy", "ill"]}
    options = {name: value for name, value in options.items() if name not in ("allow_code", "audit_folds")}
    with pytest.raises(DataError, match=said):
        package.audit_model(answer, **options)
