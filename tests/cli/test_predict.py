"""From a fine-tuning on the command line to predictions on the command line."""

import csv
import json
import shutil

import numpy as np
import pytest

from crossgraft.tune.record import PredictionRecord
from support.tiny import make_images

TUNE = ("tune", "images", "--model", "tiny_models:tiny", "--epochs", "3", "--workers", "1", "--quiet", "--device", "cpu")

CODE = ("--code", "tiny_models.py")


def table(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def tuned(workspace, run_once):
    run_once(*TUNE, out="tuned")
    return workspace / "tuned"


def test_predictions_are_those_of_the_evaluation(tuned, crossgraft):
    outcome = crossgraft("predict", "tuned", "images", *CODE, "--workers", "1", "--device", "cpu", "--out", "new")
    assert outcome.code == 0, outcome.err
    rows = {int(row["row"]): row for row in table(tuned / "predictions.csv")}
    record = PredictionRecord.model_validate_json((tuned.parent / "new" / "report.json").read_bytes())
    assert 0 < len(rows) < len(record.rows) == 24
    for number, row in rows.items():
        here = record.rows[number - 1]
        for place, name in enumerate(("benign", "malignant")):
            assert here.logits[place] == pytest.approx(float(row[f"logit {name}"]), abs=1e-6)
            assert here.probabilities[place] == pytest.approx(float(row[f"probability {name}"]), abs=1e-6)
        assert (here.decision, here.target) == (row["decision"], row["target"])
    assert len({row["logit benign"] for row in rows.values()}) == len(rows)
    assert "They are not measured: the metrics are of 4 other images." in outcome.err
    assert {row.row for row in record.rows if not row.seen} == set(rows)
    unseen = [n for n, row in enumerate(table(tuned.parent / "new" / "predictions.csv"), 1) if row["seen"] == "False"]
    assert set(unseen) == set(rows)
    tested = {row.metric: row.value for row in record.training_metrics if row.split == "test" and row.class_name is None}
    assert {row.metric: row.value for row in record.metrics if row.class_name is None} == pytest.approx(tested, abs=1e-6)
    run = json.loads((tuned.parent / "new" / "run.json").read_bytes())
    assert run["command_line"].startswith("crossgraft predict tuned images --")


def test_a_plain_folder_is_predicted_with_the_answer_last_and_names_in_the_table(tuned, crossgraft):
    make_images(tuned.parent / "new images", {"visit 2": 30})
    outcome = crossgraft("predict", "tuned/model", "new images", *CODE)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("Predictions for new images\n30 images · ")
    assert "Predicted for 30 images – benign: " in outcome.out
    assert outcome.out.splitlines()[-5] == "  crossgraft predict tuned/model LABELLED_IMAGES --code tiny_models.py"
    assert "visit 2/00.png" in outcome.out
    assert "… and 10 more" in outcome.out
    assert max(map(len, outcome.out.splitlines())) <= 100
    assert outcome.out.splitlines()[-2:] == [
        "Table: runs/predict-new images/predictions.csv",
        "Report: runs/predict-new images/report.html",
    ]
    rows = table(tuned.parent / "runs" / "predict-new images" / "predictions.csv")
    assert [row["image"] for row in rows[:2]] == ["visit 2/00.png", "visit 2/01.png"]
    assert "target" not in rows[0]
    for row in rows:
        both = [float(row["probability benign"]), float(row["probability malignant"])]
        assert sum(both) == pytest.approx(1)
        assert float(row["probability"]) == max(both)
    page = (tuned.parent / "runs" / "predict-new images" / "report.html").read_text(encoding="utf-8")
    assert "visit 2/00.png" not in page
    assert "This page contains images" in page
    assert "Image by image" in page and "Most and least certain images" not in page


def test_json_is_one_document_with_names(tuned, crossgraft):
    outcome = crossgraft("predict", "tuned", "images/benign/03.png", *CODE, "--json", "--quiet", "--no-images", "--out", "one")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    document = json.loads(outcome.out)
    assert (document["schema_version"], document["rows"][0]["name"]) == (1, "03.png")
    assert PredictionRecord.model_validate(document).num_images == 1
    assert document["files"] == [{"kind": ".png", "class_name": "", "files": 1, "read": True, "reason": ""}]


def test_files_without_an_answer_are_counted_in_json_and_said(tuned, crossgraft):
    make_images(tuned.parent / "some", {"": 3})
    for name in ("3.gif", "4.gif"):
        (tuned.parent / "some" / name).write_bytes(b"GIF89a")
    outcome = crossgraft("predict", "tuned", "some", *CODE, "--json", "--quiet", "--no-images", "--out", "three")
    assert outcome.code == 0, outcome.err
    files = json.loads(outcome.out)["files"]
    assert [(each["kind"], each["files"], each["read"]) for each in files] == [(".png", 3, True), (".gif", 2, False)]
    assert "5 files: 3 .png are read; passed over: 2 .gif (not read)." in json.loads(outcome.out)["notes"]


def test_the_same_command_again_takes_the_same_directory_and_new_images_too(tuned, crossgraft):
    for _ in range(2):
        assert crossgraft("predict", "tuned", "images", *CODE, "--quiet", "--no-images").code == 0
    make_images(tuned.parent / "images", {"benign": 14})
    assert crossgraft("predict", "tuned", "images", *CODE, "--quiet", "--no-images").code == 0
    assert [path.name for path in (tuned.parent / "runs").iterdir()] == ["predict-images"]
    assert len(table(tuned.parent / "runs" / "predict-images" / "predictions.csv")) == 26


def test_folders_that_are_almost_called_like_classes_say_why_nothing_is_measured(tuned, crossgraft):
    make_images(tuned.parent / "new", {"Benign": 2, "malignant": 2}, size=20)
    command = (*CODE, "--quiet", "--no-images")
    said = " ".join(crossgraft("predict", "tuned", "new", *command).err.split())
    assert (
        "Folders are taken for labels only where each of them is a class of the model (benign, malignant), and Benign is none, "
        "so nothing is measured. To measure, rename Benign to benign." in said
    )
    (tuned.parent / "new" / "Benign").rename(tuned.parent / "new" / "cyst")
    said = " ".join(crossgraft("predict", "tuned", "new", *command).err.split())
    assert "cyst is none, so nothing is measured. To measure, take out what is in no folder of a class." in said
    (tuned.parent / "new" / "cyst").rename(tuned.parent / "new" / "benign")
    (tuned.parent / "new" / "benign" / "00.png").rename(tuned.parent / "new" / "stray.png")
    said = " ".join(crossgraft("predict", "tuned", "new", *command, "--out", "stray").err.split())
    assert "(benign, malignant), and there are images beside them, so nothing is measured." in said
    page = (tuned.parent / "stray" / "report.html").read_text(encoding="utf-8")
    assert "Folders were not taken for labels" in page
    (tuned.parent / "new" / "benign").rename(tuned.parent / "new" / "cyst")
    (tuned.parent / "new" / "malignant").rename(tuned.parent / "new" / "visit")
    assert "Folders are" not in crossgraft("predict", "tuned", "new", *command).err


def test_predictions_of_other_images_are_not_lost(tuned, crossgraft):
    make_images(tuned.parent / "monday" / "new", {"visit": 3}, size=20)
    make_images(tuned.parent / "tuesday" / "new", {"visit": 4}, size=24)
    command = (*CODE, "--quiet", "--no-images", "--out", "answers")
    assert crossgraft("predict", "tuned", "monday/new", *command).code == 0
    before = (tuned.parent / "answers" / "predictions.csv").read_text()
    (tuned.parent / "monday").rename(tuned.parent / "last week")
    (tuned.parent / "tuesday").rename(tuned.parent / "monday")
    refused = crossgraft("predict", "tuned", "monday/new", *command)
    assert refused.code == 2, refused.err
    assert "holds predictions of 3 images, of which 3 are not among these. Use --overwrite" in " ".join(refused.err.split())
    assert (tuned.parent / "answers" / "predictions.csv").read_text() == before
    assert crossgraft("predict", "tuned", "monday/new", *command, "--overwrite").code == 0
    assert len(table(tuned.parent / "answers" / "predictions.csv")) == 4


def test_mistakes_have_their_exit_codes(tuned, crossgraft):
    folder = tuned.parent
    (folder / "images" / "benign" / "00.png").write_bytes(b"nothing")
    unreadable = crossgraft("predict", "tuned", "images", *CODE)
    assert (unreadable.code, "benign/00.png" in unreadable.err) == (3, True)
    assert crossgraft("predict", "tuned", "images", *CODE, "--skip-unreadable", "--out", "skipped").code == 0
    assert "unreadable" in (folder / "skipped" / "predictions.csv").read_text()
    assert crossgraft("predict", "images", "images").code == 2
    assert crossgraft("predict", "nowhere", "images").code == 2
    assert crossgraft("predict", "tuned", "no such folder", *CODE).code == 3
    weights = folder / "tuned" / "model" / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    edited = crossgraft("predict", "tuned", "images", *CODE, "--skip-unreadable")
    assert (edited.code, "damaged or changed" in edited.err) == (3, True)
    shutil.rmtree(folder / "tuned" / "model")
    assert "left no model" in crossgraft("predict", "tuned", "images", *CODE).err


def test_a_network_of_ones_own_is_found_from_elsewhere(tuned, crossgraft, monkeypatch, tmp_path_factory):
    import sys

    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(tuned.parent)])
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)
    arguments = ("predict", tuned, tuned.parent / "images", "--quiet", "--no-images")
    refused = crossgraft(*arguments)
    assert (refused.code, "tiny_models:tiny" in refused.err, "--code" in refused.err) == (2, True, True)
    outcome = crossgraft(*arguments, "--code", tuned.parent, "--json")
    assert outcome.code == 0, outcome.err
    assert np.isfinite(json.loads(outcome.out)["rows"][0]["certainty"])
