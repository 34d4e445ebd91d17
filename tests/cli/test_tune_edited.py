"""``crossgraft tune --with``: images are edited on their way, and whoever reads of the result is told."""

import json

import pandas as pd
import pytest

import crossgraft as package
from crossgraft.errors import DataError
from crossgraft.rank.results_store import read_known_results
from crossgraft.records.base import RunRecord
from crossgraft.tune.record import PredictionRecord, TuningRecord
from crossgraft.tune.saving.saved_model import load_saved_model
from crossgraft.variants import curves
from crossgraft.variants.record import FineTuningComparisonRecord
from support.few_pages import leave_out_pages
from support.tiny import make_images

FAST = ("--model", "tiny_models:tiny", "--code", "tiny_models.py", "--epochs", "2", "--workers", "1", "--quiet")
CODE = ("--code", "tiny_models.py", "--workers", "1")


def record_of(folder, kind=TuningRecord):
    return kind.model_validate_json((folder / "report.json").read_bytes())


def words(text):
    return " ".join(text.split())


def losses(record):
    return [(row.train_loss, row.val_loss) for row in record.history]


def predictions(folder):
    return pd.read_csv(folder / "predictions.csv")


def test_it_is_the_same_as_to_edit_into_a_folder_and_not_the_same_as_nothing(workspace, crossgraft):
    edit = ("--with", "whiten_spectrum", "--with", "tag:0.4")
    assert crossgraft("edit", "images", "edited", *edit, "--quiet").code == 0
    for name, data in {
        "there": ["edited/labels.csv", "--label-column", "label"],
        "here": ["images", *edit],
        "plain": ["images"],
    }.items():
        done = crossgraft("tune", *data, *FAST, "--out", name)
        assert done.code == 0, done.err
    there, here, plain = (record_of(workspace / name) for name in ("there", "here", "plain"))
    assert losses(here) == losses(there) != losses(plain)
    assert here.metrics == there.metrics and here.thresholds == there.thresholds
    assert predictions(workspace / "here").equals(predictions(workspace / "there"))
    assert not predictions(workspace / "here").equals(predictions(workspace / "plain"))
    weights = [(workspace / name / "model" / "weights.safetensors").read_bytes() for name in ("there", "here", "plain")]
    assert weights[0] == weights[1] != weights[2]
    assert [row.edit for row in here.edits.edits] == ["whiten_spectrum", "tag:size=0.4"]
    assert here.dataset.fingerprint != plain.dataset.fingerprint == here.edits.unedited_fingerprint
    assert plain.edits is None and "edits" not in json.loads((workspace / "plain" / "report.json").read_text())
    assert [row.protocol for row in read_known_results()[:2]].count("full") == 0  # the protocols are longer than that
    assert len([row for row in read_known_results() if row.origin == "crossgraft tune"]) == 2  # not of what --with edits
    assert [here.looks.number, plain.looks.number] == [1, 2]  # the same test images


def test_everybody_is_told(workspace, crossgraft):
    flags = ("--with", "tag:0.4", "--edit-share", "0.5", "--edit-among", "malignant", "--edit-parts", "train,val")
    done = crossgraft("tune", "images", *FAST, *flags, "--out", "run")
    assert done.code == 0, done.err
    record = record_of(workspace / "run")
    strength = f"{record.edits.edits[0].rms:.3g}"
    told = f"Images were edited with tag:size=0.4 (rms {strength} of 255 grey levels): 4 of 16 train, 1 of 4 val and 0 of 4 test."
    advice = "Images that are predicted are not edited: edit them first (crossgraft edit) where they should be alike."
    assert "images edited with tag:size=0.4" in words(done.out)
    assert f"{told} {advice}" in words(done.out)
    page = (workspace / "run" / "report.html").read_text()
    assert told in page and "Edited images of each part" in page and f"{record.edits.edits[0].rms:.2f}" in page
    assert "Juodelyte" in page and "--edit-parts</span>" in page
    card = (workspace / "run" / "model" / "MODEL_CARD.md").read_text()
    assert told in card and advice in card
    predicted = crossgraft("predict", "run", "images", *CODE, "--out", "predicted")
    assert predicted.code == 0, predicted.err
    assert f"The model learned from images edited with tag:size=0.4. {advice}" in words(predicted.err)
    assert "20 of 24 images had a part in the fine-tuning" in words(predicted.out)
    assert advice in (workspace / "predicted" / "report.html").read_text()
    assert any(advice in text for text in record_of(workspace / "predicted", PredictionRecord).warnings)
    (workspace / "run" / "training_images.json").unlink()  # as where the model was passed on
    passed_on = crossgraft("predict", "run/model", "images", *CODE, "--out", "passed")
    assert "These are the images that the model was fine-tuned on" in words(passed_on.out)


def test_the_same_command_goes_on_and_another_edit_is_another_run(workspace, crossgraft):
    command = ("tune", "images", *FAST, "--with", "poisson_image", "--out", "run")
    assert crossgraft(*command).code == 0
    weights = workspace / "run" / "jobs" / "only" / "weights.safetensors"
    before = weights.stat().st_mtime_ns
    run = RunRecord.model_validate_json((workspace / "run" / "run.json").read_bytes())
    assert run.config["edits"] == ["poisson_image"] and "edit_share" not in run.config
    again = crossgraft(*run.command_line.split()[1:], "--workers", "1")
    assert again.code == 0, again.err
    assert weights.stat().st_mtime_ns == before
    for other in (["tune", "images", *FAST], ["tune", "images", *FAST, "--with", "poisson_image", "--edit-share", "0.5"]):
        refused = crossgraft(*other, "--out", "run")
        assert refused.code == 2 and "different: edit" in refused.err


def test_a_file_may_say_it_and_a_plan_tells(workspace, crossgraft):
    (workspace / "c.yaml").write_text("model: tiny_models:tiny\nepochs: 1\nedits: [whiten_spectrum]\nedit_share: 0.5\n")
    planned = crossgraft("tune", "images", "--config", "c.yaml", *CODE, "--plan")
    assert planned.code == 0, planned.err
    assert "edited with whiten_spectrum" in words(planned.out)
    assert "8 of 16 train, 2 of 4 val and 2 of 4 test" in words(planned.out)
    assert not (workspace / "runs").exists()


def test_folds_and_a_grid_see_one_draw(workspace, crossgraft):
    grid = ("--folds", "2", "--grid", "learning_rate=0.01,0.001")
    edit = ("--with", "tag:0.4", "--edit-share", "0.5", "--edit-among", "malignant")
    done = crossgraft("tune", "images", *FAST, *grid, *edit, "--out", "run")
    assert done.code == 0, done.err
    record = record_of(workspace / "run")
    assert len(record.grid) == 4 and [(row.name, row.num_edited) for row in record.edits.parts] == [("all", 6)]
    assert "6 of 24" in words(done.out)
    facts = load_saved_model(workspace / "run" / "folds" / "fold-1", allow_code="tiny_models.py").facts
    assert facts.trained_on.edits == record.edits


def test_variants_are_compared_on_the_same_edited_images(workspace, crossgraft, monkeypatch):
    leave_out_pages(monkeypatch, of_comparisons=False)
    monkeypatch.setattr(curves, "ALPHAS", (0.0, 1.0))
    edit = ("--with", "tag:0.4", "--edit-share", "0.5")
    done = crossgraft("tune", "images", *FAST, *edit, "--compare", "full,linear", "--seeds", "2", "--out", "run")
    assert done.code == 0, done.err
    record = record_of(workspace / "run", FineTuningComparisonRecord)
    trainings = [record_of(workspace / "run" / "trainings" / name) for name in ("full-0", "full-1", "linear-1")]
    assert all(each.edits == record.edits for each in trainings)
    assert {each.dataset.fingerprint for each in trainings} == {record.dataset.fingerprint}
    assert "images edited with tag:size=0.4" in words(done.out)
    assert "Images were edited with tag:size=0.4" in (workspace / "run" / "report.html").read_text()
    between = ("interpolate", "run/trainings/full-1", "images", "--linear", "run/trainings/linear-1", "--alphas", "0,1")
    measured = crossgraft(*between, *CODE, "--json", "--quiet")
    assert measured.code == 0, measured.err
    found = json.loads(measured.out)
    assert found["images"]["fingerprint"] == record.dataset.fingerprint
    full = next(row for row in trainings[1].metrics if row.metric == "brier_score" and row.split == "test")
    last = next(row for row in found["points"][-1]["metrics"] if row["metric"] == "brier_score")
    assert last["value"] == pytest.approx(full.value, abs=1e-9)
    variant = [{"name": "edited", "edits": "tag"}, "linear"]
    with pytest.raises(package.errors.UsageError, match="sets edits, which is the same for all variants"):
        package.compare_fine_tunings("images", model="tiny_models:tiny", compare=variant)


def test_other_images_than_those_of_the_run_are_still_refused(workspace, crossgraft):
    assert crossgraft("tune", "images", *FAST, "--method", "linear", "--with", "tag:0.4", "--out", "run").code == 0
    make_images(workspace / "images", {"benign": 12, "malignant": 12}, size=20)
    with pytest.raises(DataError, match="is not what the run in run was made on"):
        package.interpolate("run", "images", linear="run", allow_code="tiny_models.py")


def test_python_takes_edits_as_objects(workspace):
    from crossgraft.edit.confounders import Tag

    fast = {"model": "tiny_models:tiny", "epochs": 1, "workers": 1, "device": "cpu", "store": False}
    tuned = package.fine_tune("images", edits=[Tag(size=0.4)], edit_among=["benign"], out="run", **fast)
    assert [(row.name, row.num_edited) for row in tuned.record.edits.parts] == [("train", 8), ("val", 2), ("test", 2)]
    assert tuned.model.facts.trained_on.edits == tuned.record.edits
    again = package.fine_tune("images", edits="tag:0.4", edit_among="benign", out="run", **fast)
    assert again.record.metrics == tuned.record.metrics
    assert "--with tag:size=0.4 --edit-among benign" in tuned.command_line


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--with", "tagg"), 2, "Unknown edit: tagg. Did you mean tag"),
        (("--with", "tag:size=big"), 2, "size"),
        (("--edit-share", "0.5"), 2, "--edit-share means nothing without --with"),
        (("--with", "tag", "--edit-share", "2"), 2, "--edit-share must lie in [0, 1]"),
        (("--with", "tag", "--edit-parts", "train", "--folds", "3"), 2, "With --folds each image is in every part once"),
        (("--with", "tag", "--edit-unit", "patient"), 2, "Name their column: --group-column"),
        (("--with", "tag:0.4", "--edit-among", "bening"), 2, "Did you mean benign"),
        (("--with", "tag:0.95"), 3, "cannot be edited"),
    ],
)
def test_bad_input_ends_before_the_first_step(workspace, crossgraft, flags, code, said):
    done = crossgraft("tune", "images", *FAST, *flags, "--out", "run")
    assert done.code == code and said in words(done.err)
    assert not (workspace / "run" / "jobs").exists()


def test_a_share_of_nothing_is_said(workspace, crossgraft):
    done = crossgraft("tune", "images", *FAST, "--with", "tag:0.4", "--edit-share", "0.01", "--out", "run")
    assert done.code == 0, done.err
    assert "No image was edited with tag:size=0.4: the share 0.01" in words(done.err)
    assert "No image was edited" in (workspace / "run" / "report.html").read_text()
    assert "images edited with" not in done.out
