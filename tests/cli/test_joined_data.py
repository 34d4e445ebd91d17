"""Several data sets as one, from check to audit: the same images for every command, and a column that names the set."""

import json

from crossgraft.edit import edit_data
from crossgraft.tune.record import PredictionRecord, TuningRecord
from support.tiny import make_images

FAST = ("--model", "tiny_models:tiny", "--epochs", "1", "--workers", "1", "--device", "cpu", "--domains", "source")
JOINED = ("images", "--join", "elsewhere")


def other_images(workspace):
    make_images(workspace / "drawn", {"benign": 12, "malignant": 12}, size=15)
    (workspace / "drawn").rename(workspace / "elsewhere")


def test_a_run_goes_on_and_is_asked_about_the_same_images(workspace, crossgraft):
    other_images(workspace)
    outcome = crossgraft("tune", *JOINED, *FAST, "--out", "run")
    assert outcome.code == 0, outcome.err
    record = TuningRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert (record.dataset.name, record.dataset.num_images) == ("images + elsewhere", 48)
    assert json.loads((workspace / "run" / "run.json").read_text())["config"]["join"] == ["elsewhere"]
    again = crossgraft("tune", *JOINED, *FAST, "--out", "run")
    assert "1 of 1 trainings were done before" in again.err
    alone = crossgraft("tune", "images", *FAST[:-2], "--out", "run")
    assert alone.code == 2
    assert "another run" in alone.err or "join" in alone.err

    outcome = crossgraft("predict", "run", *JOINED, "--use-split", "test", "--code", "tiny_models.py", "--out", "predicted")
    assert outcome.code == 0, outcome.err
    predicted = PredictionRecord.model_validate_json((workspace / "predicted" / "report.json").read_bytes())
    assert predicted.is_of_run
    found = [next(each for each in of.metrics if each.metric == "balanced_accuracy").value for of in (record, predicted)]
    assert found[0] == found[1]
    outcome = crossgraft(
        "audit", "run", "--data", *JOINED, "--attribute", "source", "--code", "tiny_models.py", "--out", "audited"
    )
    assert outcome.code in (0, 5), outcome.err
    assert "source" in outcome.out


def test_copies_in_two_sets_are_found(workspace, crossgraft):
    make_images(workspace / "elsewhere", {"benign": 12, "malignant": 12})
    outcome = crossgraft("check", *JOINED)
    assert outcome.code == 3
    assert "Identical images across splits: images/" in outcome.err
    assert " = elsewhere/" in outcome.err


def test_an_edited_set_keeps_the_name_of_the_set(workspace):
    other_images(workspace)
    edit_data("images", out="edited", join="elsewhere", edits="low_pass:0.2")
    header, first, *_ = (workspace / "edited" / "labels.csv").read_text().splitlines()
    assert dict(zip(header.split(","), first.split(","), strict=True))["source"] == "images"
