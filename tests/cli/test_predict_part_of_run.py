"""``predict --use-split`` on data without a split of their own: rows of the split that the model was fine-tuned with."""

import csv
import json
import shutil

import numpy as np
import pytest

import crossgraft as package
from crossgraft.data import Split, open_dataset
from crossgraft.errors import DataError, OtherImagesError, UsageError
from support.tiny import make_images

TUNE = (
    *("tune", "images", "--model", "tiny_models:tiny", "--code", "tiny_models.py"),
    *("--epochs", "1", "--workers", "1", "--quiet", "--device", "cpu"),
)
ASKED = ("--code", "tiny_models.py", "--workers", "1", "--device", "cpu", "--quiet")


@pytest.fixture
def tuned(workspace, run_once):
    run_once(*TUNE, out="tuned")
    return workspace / "tuned"


def test_the_test_rows_of_the_run_are_predicted_and_named(tuned, crossgraft):
    split = Split.load(tuned / "split.json")
    for part in ("test", "train"):
        said = crossgraft("predict", "tuned", "images", "--use-split", part, *ASKED, "--out", part)
        assert said.code == 0, said.err
        whole = open_dataset("images")
        with (tuned.parent / part / "predictions.csv").open(newline="") as table:
            assert [row["image"] for row in csv.DictReader(table)] == [whole.image_name(row) for row in split.rows(part)]
        known = json.loads((tuned / "report.json").read_text())["dataset"]["split_fingerprint"]
        words = f"{part} rows of split {known}, that of the fine-tuning"
        assert words in " ".join(said.out.split())
        assert words in (tuned.parent / part / "report.html").read_text(encoding="utf-8")
    report = json.loads((tuned.parent / "test" / "report.json").read_text())
    before = {row["metric"]: row["value"] for row in report["training_metrics"] if row["class_name"] is None}
    here = {row["metric"]: row["value"] for row in report["metrics"] if row["class_name"] is None}
    assert here["accuracy"] == pytest.approx(before["accuracy"])
    assert report["warnings"] == []
    page = (tuned.parent / "test" / "report.html").read_text(encoding="utf-8")
    assert "say no more than the report of the fine-tuning" in page
    assert "was not checked. The model also answers" not in page


def test_a_prediction_of_training_images_ends_with_the_command_for_the_test_rows(tuned, crossgraft):
    said = crossgraft("predict", "tuned", "images", "--use-split", "train", *ASKED)
    assert "crossgraft predict tuned images --code tiny_models.py" in said.out
    assert "--use-split test\n" in said.out and "--use-split train\n" not in said.out


def test_a_split_that_does_not_fit_is_refused_by_its_name(tuned, crossgraft):
    folder = tuned.parent
    asked = ("--use-split", "test", *ASKED)
    make_images(folder / "others", {"benign": 9, "malignant": 9})
    others = crossgraft("predict", "tuned", "others", *asked)
    assert (others.code, "not what the model was fine-tuned on" in others.err) == (3, True)
    assert "Leave out --use-split to predict every image." in others.err
    shutil.copytree(tuned / "model", folder / "passed on")
    alone = crossgraft("predict", "passed on", "images", *asked)
    assert (alone.code, "no split.json beside the model" in alone.err) == (3, True)
    new = crossgraft("predict", "tuned", "images/benign/03.png", *asked)
    assert (new.code, "not what the model was fine-tuned on" in new.err) == (3, True)
    make_images(folder / "official" / "train", {"benign": 4, "malignant": 4})
    official = crossgraft("predict", "tuned", "official", *asked)
    assert (official.code, "Its splits: train." in official.err) == (3, True)
    (tuned / "split.json").write_text("{")
    damaged = crossgraft("predict", "tuned", "images", *asked)
    assert (damaged.code, "is not a split that crossgraft saved" in damaged.err) == (3, True)
    assert crossgraft("predict", "tuned", "images", *ASKED).code == 0


def test_a_split_of_other_groups_is_refused(workspace, crossgraft):
    make_images(workspace / "images", {"benign": 12, "malignant": 12})
    rows = [(f"images/{name}/{row:02}.png", name, row // 2, row % 3) for name in ("benign", "malignant") for row in range(12)]
    lines = [f"{path},{label},{label}{patient},{site}" for path, label, patient, site in rows]
    (workspace / "study.csv").write_text("\n".join(["path,label,patient,site", *lines]) + "\n")
    assert crossgraft(*(word if word != "images" else "study.csv" for word in TUNE), "--out", "by-patient").code == 0
    asked = ("predict", "by-patient", "study.csv", "--use-split", "test", *ASKED)
    assert crossgraft(*asked).code == 0
    site = crossgraft(*asked, "--group-column", "site")
    assert (site.code, "but with other groups" in site.err) == (3, True)
    train = crossgraft("predict", "by-patient", "study.csv", "--use-split", "train", *ASKED, "--json")
    assert len(json.loads(train.out)["rows"]) == len(Split.load(workspace / "by-patient" / "split.json").train) < 24


def test_python_takes_the_rows_of_folders_and_of_open_data(workspace):
    tuned = package.fine_tune("images", model="tiny_models:tiny", allow_code="tiny_models.py", epochs=1, workers=1)
    split, whole = tuned.model.find_split(), open_dataset("images", use_split=None)
    listed, opened = (tuned.predict(images, use_split="test", workers=1) for images in ("images", whole))
    assert len(listed.record.rows) == len(split.test)
    assert listed.record.rows_used == opened.record.rows_used
    np.testing.assert_array_equal(listed.to_frame()["probability"], opened.to_frame()["probability"])
    with pytest.raises(OtherImagesError, match="not what the model was fine-tuned on"):
        tuned.predict(whole.take([0, 1]), use_split="test")
    with pytest.raises(DataError, match="Its splits: none"):
        tuned.predict(whole, use_split="wave 2")
    with pytest.raises(UsageError, match="use_split belongs to opening"):
        tuned.predict([whole.read(0)], use_split="test")
