"""From a fine-tuning on the command line to predictions on the command line."""

import csv
import json
import shutil

import numpy as np
import pytest

from crossgraft.records import PredictionRecord
from support.tiny import make_images

TUNE = (
    "tune",
    "images",
    "--model",
    "tiny_models:tiny",
    "--epochs",
    "3",
    "--workers",
    "1",
    "--quiet",
    "--device",
    "cpu",
)

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
    assert "too high" in outcome.err
    run = json.loads((tuned.parent / "new" / "run.json").read_bytes())
    assert run["command_line"].startswith("crossgraft predict tuned images --")


def test_a_plain_folder_is_predicted_with_the_answer_last_and_names_in_the_table(tuned, crossgraft):
    make_images(tuned.parent / "new images", {"visit 2": 30})
    outcome = crossgraft("predict", "tuned/model", "new images", *CODE)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith("Predictions for new images\n30 images · ")
    assert "30 images. benign: " in outcome.out.splitlines()[-9]
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
    assert "Most and least certain images" in page


def test_json_is_one_document_with_names(tuned, crossgraft):
    outcome = crossgraft(
        "predict", "tuned", "images/benign/03.png", *CODE, "--json", "--quiet", "--no-images", "--out", "one"
    )
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    document = json.loads(outcome.out)
    assert (document["schema_version"], document["rows"][0]["name"]) == (1, "03.png")
    assert PredictionRecord.model_validate(document).num_images == 1


def test_the_same_command_again_takes_the_same_directory_and_new_images_too(tuned, crossgraft):
    for _ in range(2):
        assert crossgraft("predict", "tuned", "images", *CODE, "--quiet", "--no-images").code == 0
    make_images(tuned.parent / "images", {"benign": 14})
    assert crossgraft("predict", "tuned", "images", *CODE, "--quiet", "--no-images").code == 0
    assert [path.name for path in (tuned.parent / "runs").iterdir()] == ["predict-images"]
    assert len(table(tuned.parent / "runs" / "predict-images" / "predictions.csv")) == 26


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
