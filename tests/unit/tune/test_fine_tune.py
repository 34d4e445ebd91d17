"""The whole way on a tiny network of the user's own: rows, plan, trainings, numbers, files."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import crossgraft
from crossgraft import fine_tune, split_data
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import DivergedError, OtherRunError, RunDirectoryError, UnknownNameError, UsageError
from crossgraft.progress import Reporter
from crossgraft.rank.results_store import read_known_results
from crossgraft.tune import jobs
from crossgraft.tune.planning.choices import GRID_SETTINGS
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.saving.saved_model import load_saved_model
from support.rows import rows_of

FAST = {"model": "tiny_models:tiny", "epochs": 2, "workers": 1, "device": "cpu"}


pytestmark = pytest.mark.usefixtures("tiny_models")


def squares(n=60, *, classes=2, groups=None, labels=None):
    """Noise that is brighter from class to class."""
    rng = np.random.default_rng(0)
    of_row = np.arange(n) % classes
    pixels = rng.integers(0, 90, (n, 16, 16, 3)) + 80 * of_row[:, None, None, None]
    made = dataset_from_arrays(pixels.astype(np.uint8), of_row if labels is None else labels, groups=groups)
    return made


def test_a_run_leaves_everything_that_is_needed_and_says_the_same_everywhere(tmp_path):
    tuned = fine_tune(squares(), **FAST, out=tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {
        "run.json", "report.json", "report.html", "history.csv", "metrics.csv", "predictions.csv", "split.json", "model",
    }  # fmt: skip
    record = TuningRecord.model_validate_json((tmp_path / "run" / "report.json").read_bytes())
    assert record == tuned.record
    metrics = pd.read_csv(tmp_path / "run" / "metrics.csv")
    headline = tuned.headline
    found = metrics[(metrics.metric == headline.metric) & (metrics.split == "test")].iloc[0]
    assert found.value == pytest.approx(headline.value)
    assert found.low <= found.value <= found.high
    assert len(pd.read_csv(tmp_path / "run" / "history.csv")) == 2
    assert [row.name for row in record.splits] == ["train", "val", "test"]
    assert not record.leakage_checked
    assert record.leakage.startswith("Patient leakage not checked")
    assert record.selection_rule.startswith("Of all epochs the one with the highest AUC on 10 validation rows")


def test_predictions_are_those_of_the_model_that_was_saved(tmp_path):
    data = squares()
    fine_tune(data, **FAST, out=tmp_path / "run")
    table = pd.read_csv(tmp_path / "run" / "predictions.csv")
    split = json.loads((tmp_path / "run" / "split.json").read_text())
    assert (table.row - 1).tolist() == split["test"]
    assert "name" not in table
    saved = load_saved_model(tmp_path / "run", allow_code="tiny_models:tiny")
    images = crossgraft.data.prepare_batch([data.read(row) for row in split["test"]], saved.classifier.preprocessing)
    logits = saved.logits(images).numpy()
    assert np.abs(logits - table[["logit 0", "logit 1"]].to_numpy()).max() < 1e-6
    likely = torch.softmax(torch.tensor(logits).double() / (saved.facts.temperature or 1.0), 1).numpy()
    assert np.abs(likely - table[["probability 0", "probability 1"]].to_numpy()).max() < 1e-6
    limit = saved.facts.thresholds[0].threshold or 0.5
    assert table.decision.astype(str).tolist() == ["1" if p >= limit else "0" for p in likely[:, 1]]


def test_mistakes_are_rows_of_the_predictions_and_have_pictures_unless_nobody_wants_them(tmp_path):
    labels = np.random.default_rng(1).integers(0, 2, 60)  # nothing to learn, so that there are mistakes
    fast = {**FAST, "epochs": 1, "store": False}
    tuned = fine_tune(squares(labels=labels), **fast, out=tmp_path / "run")
    found = tuned.record.mistakes
    predicted = pd.read_csv(tmp_path / "run" / "predictions.csv", dtype={"target": str, "decision": str})
    wrong = predicted[predicted["target"] != predicted["decision"]].set_index("row")
    assert 0 < found.num_wrong == len(wrong)
    stated = [wrong.loc[row, f"probability {wrong.loc[row, 'decision']}"] for row in wrong.index]
    assert [each.probability for each in found.most_certain] == pytest.approx(sorted(stated, reverse=True)[:12])
    assert all(wrong.loc[each.row, "target"] == each.target for each in found.most_certain)
    pictures = json.loads((tmp_path / "run" / "thumbnails.json").read_text())
    answered = {each["row"]: each["answers"][0]["decision"] for each in pictures if "row" in each}
    of_test = {row: answered[row] for row in predicted["row"]}
    assert of_test == dict(zip(predicted["row"], predicted["decision"], strict=True))
    assert [each["row"] for each in pictures if each.get("split") == "val"]
    assert f"Row {found.most_certain[0].row}: " in (tmp_path / "run" / "report.html").read_text()
    private = fine_tune(squares(labels=labels), **fast, no_images=True, out=tmp_path / "private")
    assert private.record.mistakes == found
    assert not (tmp_path / "private" / "thumbnails.json").exists()


def test_the_same_call_goes_on_and_another_one_is_refused(tmp_path):
    first = fine_tune(squares(), **FAST, out=tmp_path / "run")
    weights = tmp_path / "run" / "jobs" / "only" / "weights.safetensors"
    before = weights.stat().st_mtime_ns
    again = fine_tune(squares(), **FAST, out=tmp_path / "run")
    assert weights.stat().st_mtime_ns == before
    assert again.to_frame().equals(first.to_frame())
    with pytest.raises(OtherRunError, match="different: learning_rate"):
        fine_tune(squares(), **FAST, learning_rate=0.1, out=tmp_path / "run")
    other = fine_tune(squares(), **FAST, learning_rate=0.1, out=tmp_path / "run", overwrite=True)
    assert not other.to_frame().equals(first.to_frame())


def test_a_killed_run_ends_like_a_whole_one(tmp_path, monkeypatch):
    from crossgraft.tune.engine import trainer

    whole = fine_tune(squares(), **FAST, out=tmp_path / "whole")
    write = trainer.write_checkpoint
    written = []

    def killed(*arguments):
        write(*arguments)
        written.append(1)
        if len(written) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(trainer, "write_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        fine_tune(squares(), **FAST, out=tmp_path / "killed")
    assert (tmp_path / "killed" / "jobs" / "only" / "checkpoint").is_dir()
    resumed = fine_tune(squares(), **FAST, out=tmp_path / "killed")
    assert resumed.to_frame().equals(whole.to_frame())
    assert not (tmp_path / "killed" / "jobs" / "only" / "checkpoint").exists()
    same = [(tmp_path / name / "model" / "weights.safetensors").read_bytes() for name in ("whole", "killed")]
    assert same[0] == same[1]


def test_test_rows_change_nothing_but_their_own_numbers():
    data = squares()
    first = fine_tune(data, **FAST)
    test = np.flatnonzero(np.isin(np.arange(60), first_test_rows(data)))
    images = [data.read(row) for row in range(60)]
    for row in test:
        images[row] = np.zeros_like(images[row])
    poisoned = fine_tune(dataset_from_arrays(images, data.labels), **FAST)
    assert poisoned.record.calibration.temperature == first.record.calibration.temperature
    assert [row.train_loss for row in poisoned.record.history] == [row.train_loss for row in first.record.history]
    assert poisoned.record.thresholds == first.record.thresholds
    assert not poisoned.to_frame().equals(first.to_frame())


def first_test_rows(data):
    return rows_of(data).parts[0].test


def test_only_a_plan_takes_no_step_and_writes_nothing(tmp_path):
    tuned = fine_tune(squares(), **FAST, out=tmp_path / "run", plan=True)
    assert not (tmp_path / "run").exists()
    assert "Trained: " in tuned.plan.summary()
    assert "2 epochs" in tuned.plan.summary()
    with pytest.raises(UsageError, match="Only the plan was made"):
        _ = tuned.record
    assert json.loads(tuned.to_json())["num_steps"] == tuned.plan.record.num_steps


VARIED = {
    "learning_rate": (0.02, 0.07), "head_learning_rate": (0.02, 0.07), "weight_decay": (0.02, 0.07), "layer_decay": (1.0, 0.5),
    "batch_size": (6, 12), "epochs": (3, 13), "momentum": (0.0, 0.8), "dropout": (0.0, 0.5), "warmup_epochs": (0.5, 2.0),
    "clip_norm": (1.0, 5.0), "patience": (2, 4), "head_epochs": (2, 4), "head_patience": (2, 4),
}  # fmt: skip
NEEDED = {"momentum": {"optimizer": "sgd"}, "head_epochs": {"head_first": True}, "head_patience": {"head_first": True}}


@pytest.mark.parametrize("name", GRID_SETTINGS)
def test_a_plan_shows_the_grid_and_no_setting_that_no_training_uses(name):
    """Whatever a grid varies: all that is said of it is what the plans of its points say, one by one."""
    common = {"model": "tiny_models:tiny", "workers": 1, "device": "cpu", "plan": True, **NEEDED.get(name, {})}
    plan = fine_tune(squares(), **common, grid={name: VARIED[name]}).plan
    record = plan.record
    alone = [fine_tune(squares(), **common, **{name: value}).plan.record for value in VARIED[name]]
    assert record.grid == [{name: value} for value in VARIED[name]] and {each.grid for each in alone} == {None}
    values = ", ".join(f"{value:g}" for value in VARIED[name])
    assert f"Grid: {name} {values}. Val picks the best of 2 points." in plan.summary()
    for setting, text in record.settings.items():
        assert text == " or ".join(dict.fromkeys(each.settings.get(setting, "none") for each in alone))
    longest = max(alone, key=lambda each: each.num_steps)
    lengths = ("epochs", "steps_per_epoch", "batch_size")
    assert [getattr(record, length) for length in lengths] == [getattr(longest, length) for length in lengths]
    assert (record.num_steps, record.num_jobs) == (sum(each.num_steps for each in alone), 2)
    for each in alone:
        assert f"{each.epochs} epochs × {each.steps_per_epoch} steps of {each.batch_size} images" in plan.summary()
    assert record.peak_bytes == max(each.peak_bytes for each in alone)


def test_folds_pool_rows_that_their_models_had_not_seen(tmp_path):
    data = squares(groups=np.arange(60) // 2)
    tuned = fine_tune(data, **FAST, folds=3, out=tmp_path / "run")
    record = tuned.record
    table = pd.read_csv(tmp_path / "run" / "predictions.csv")
    assert table.row.tolist() == list(range(1, 61))
    assert [fold.num_test for fold in record.folds] == [20, 20, 20]
    assert record.metrics[0].split == "out of fold"
    assert record.metrics[0].num_images == 60
    assert record.metrics[0].num_groups == 30
    assert record.leakage == "No group is in two parts (30 groups of column groups)."
    assert tuned.classifier is None
    assert record.saved_model is None
    assert "folds/fold-0/model" in record.saved_model_reason
    of_fold = load_saved_model(tmp_path / "run" / "folds" / "fold-1", allow_code="tiny_models:tiny")
    assert of_fold.facts.metrics[0].num_images == 20
    own = [digest.hex() for digest in data.image_digests]
    tested = table.row[table.split == "fold 1"] - 1
    assert of_fold.known_images == {own[row] for row in set(range(60)) - set(tested)}
    with pytest.raises(RunDirectoryError, match=r"Give that of one training: .*folds/fold-0"):
        load_saved_model(tmp_path / "run", allow_code="tiny_models:tiny")
    (row,) = read_known_results()
    assert "; 32 training images a fold, test each of 3 folds of 60 images, picked by" in row.protocol


def test_one_fold_says_which_and_a_set_with_a_failed_fold_is_not_kept(monkeypatch):
    fine_tune(squares(), **FAST, folds=3, fold=2)
    (row,) = read_known_results()
    assert "test fold 2 of 3 of 60 images" in row.protocol
    train, said = jobs.train, io.StringIO()
    calls = iter(range(3))

    def fails_once(*arguments, **options):
        if next(calls) == 1:
            raise DivergedError("No number.")
        return train(*arguments, **options)

    monkeypatch.setattr(jobs, "train", fails_once)
    record = fine_tune(squares(), **{**FAST, "epochs": 1}, folds=3, reporter=Reporter(said)).record
    assert [fold.reason is None for fold in record.folds] == [True, False, True]
    assert "1 of 3 folds left no model" in said.getvalue() and "nothing was added to the known results" in said.getvalue()
    assert read_known_results() == [row]


def test_the_grid_is_decided_on_val_and_a_failed_point_loses_no_other(tmp_path):
    tuned = fine_tune(squares(), **FAST, grid="learning_rate=0.01,1e6", optimizer="sgd", out=tmp_path / "run")
    states = {row.job: (row.state, row.picked) for row in tuned.record.grid}
    assert states == {"learning_rate=0.01": ("done", True), "learning_rate=1e+06": ("failed", False)}
    assert any("learning_rate=1e+06 failed" in warning for warning in tuned.record.warnings)
    with pytest.raises(DivergedError):
        fine_tune(squares(), **FAST, learning_rate=1e6, optimizer="sgd")


def test_warm_up_follows_the_epochs_of_a_grid_unless_it_was_given():
    common = {"model": "tiny_models:tiny", "batch_size": 8, "grid": "epochs=20,10", "plan": True}
    plan = fine_tune(squares(), **common).plan.record
    assert plan.epochs == 20 and plan.settings["schedule"].startswith("cosine after 2 epochs of warm-up or cosine after 1")
    plan = fine_tune(squares(), **common, warmup_epochs=1.0).plan.record
    assert plan.settings["schedule"] == "cosine after 1 epochs of warm-up"


def test_a_setting_at_its_default_may_be_varied_and_a_given_one_not():
    plan = fine_tune(squares(), **FAST, grid="layer_decay=1,0.5", plan=True).plan
    assert plan.record.num_jobs == 2
    with pytest.raises(UsageError, match="layer_decay is given and also varied"):
        fine_tune(squares(), **FAST, layer_decay=0.9, grid="layer_decay=1,0.5", plan=True)


def test_several_labels_have_metrics_and_a_threshold_each():
    labels = np.stack([np.arange(60) % 2, np.arange(60) // 2 % 2], axis=1)
    record = fine_tune(squares(labels=labels), **FAST).record
    assert record.dataset.task == "multi-label"
    assert record.primary_metric == "auc"
    assert [row.class_name for row in record.thresholds] == ["label 0", "label 1"]
    assert record.confusion is None
    assert {plugin.spelling for plugin in record.plugins} >= {"multi_label"}


def test_linear_head_first_and_scratch_train_what_they_say():
    linear = fine_tune(squares(), **FAST, method="linear").record
    assert linear.plan.num_trained == 18
    assert linear.similarity["cka"] == pytest.approx(1)
    first = fine_tune(squares(), **FAST, head_first=True, head_epochs=2).record
    assert [row.stage for row in first.history] == ["head", "head", "all", "all"]
    assert sum(row.is_best for row in first.history) == 1
    scratch = fine_tune(squares(), **FAST, method="scratch").record
    assert scratch.model.from_scratch
    assert scratch.similarity["cka"] < 0.999
    assert scratch.model.weights_fingerprint != linear.model.weights_fingerprint


def test_without_val_the_last_epoch_is_kept_and_nothing_is_fitted():
    record = fine_tune(squares(), **FAST, val_fraction=0.0).record
    assert record.calibration is None
    assert record.calibration_reason == "There are no validation rows to fit a temperature to."
    assert record.thresholds == []
    assert record.history[-1].is_best
    assert record.selection_rule.startswith("The last epoch was kept")


def test_results_are_kept_for_later_rankings_unless_asked_not_to():
    fine_tune(squares(), **FAST, store=False)
    fine_tune(squares(), **FAST, method="scratch")
    assert read_known_results() == []
    record = fine_tune(squares(), **FAST).record
    (row,) = read_known_results()
    assert (row.target, row.metric, row.weights) == ("arrays", "balanced_accuracy", record.model.weights_fingerprint)
    assert row.value == record.metric("balanced_accuracy").value
    train = squares().take(split_data(squares()).split.rows("train"))
    assert row.target_fingerprint == train.fingerprint  # the images that rank would look at
    assert row.protocol.startswith("full, light, cross_entropy, epochs 2; 38 training images, test 20% of all rows")


def test_results_of_other_settings_are_of_another_protocol():
    fine_tune(squares(), **FAST)
    fine_tune(squares(), **{**FAST, "epochs": 1})
    fine_tune(squares(), **FAST, grid="learning_rate=0.01,0.02")
    fine_tune(squares(), **FAST, grid="learning_rate=0.01,0.03")
    assert len(read_known_results()) == 4
    assert "epochs 1;" in read_known_results()[1].protocol
    assert "best of learning_rate=0.01 or learning_rate=0.02;" in read_known_results()[2].protocol


def test_what_keep_finds_is_no_setting_and_what_a_name_stands_for_is(tmp_path):
    """Strengths differ from model to model of one study; ``repsim`` has meant something else before."""
    found = {"regularizer": "repsim", "keep": 0.5, "learning_rate": 1e-9}
    record = fine_tune(squares(), **FAST, **found).record
    assert len(record.grid) > 1
    (row,) = read_known_results()
    assert row.protocol.startswith("full, repsim:mode=cka,weight=0.3·√(d/64), light, cross_entropy, ")
    assert "keep 0.5" in row.protocol and "factor" not in row.protocol and "best of" not in row.protocol


def test_each_fold_decides_with_its_own_threshold(tmp_path):
    """Another fold's threshold may be fitted to the very row; and the tables must agree."""
    rng = np.random.default_rng(4)
    pixels = rng.integers(0, 90, (90, 16, 16, 3)) + 12 * (np.arange(90) % 2)[:, None, None, None]
    data = dataset_from_arrays(pixels.astype(np.uint8), np.arange(90) % 2)
    tuned = fine_tune(data, **FAST, folds=3, out=tmp_path / "run")
    table = pd.read_csv(tmp_path / "run" / "predictions.csv")
    limits = {}
    for fold in range(3):
        facts = load_saved_model(tmp_path / "run" / "folds" / f"fold-{fold}", allow_code="tiny_models:tiny").facts
        limits[f"fold {fold}"] = facts.thresholds[0].threshold or 0.5
    assert len(set(limits.values())) == 3
    decided = (table["probability 1"] >= table.split.map(limits)).astype(int)
    assert (decided == table.decision).all()
    right = decided == table.target
    assert tuned.record.metric("accuracy").value == pytest.approx(right.mean(), abs=1e-12)
    recalls = [right[table.target == side].mean() for side in (0, 1)]
    assert tuned.record.metric("balanced_accuracy").value == pytest.approx(np.mean(recalls), abs=1e-12)
    median = (table["probability 1"] >= np.median(list(limits.values()))).astype(int)
    assert (median != decided).any()  # else this test could not fail
    assert np.trace(tuned.record.confusion.counts) == right.sum()


def split_squares(val_classes):
    """Three classes; ``val_classes`` are those of the ten validation rows."""
    from dataclasses import replace

    classes = np.arange(60) % 3
    classes[40:50] = val_classes
    splits = np.array(["train"] * 40 + ["val"] * 10 + ["test"] * 10)
    return replace(squares(classes=3, labels=classes), splits=splits)


@pytest.mark.parametrize("metric", ["auc", "balanced_accuracy", "average_precision"])
def test_a_metric_without_a_meaning_on_val_does_not_pick_the_first_epoch(metric):
    with pytest.raises(UsageError, match="no meaning on the 10 validation rows"):
        fine_tune(split_squares(1), **FAST, select_by=metric, plan=True)
    assert fine_tune(split_squares([0, 1] * 5), **FAST, select_by=metric, plan=True).plan.record.num_jobs == 1
    assert fine_tune(split_squares(1), **FAST, select_by="loss", plan=True).plan.record.num_jobs == 1


def test_contradictions_of_a_grid_point_are_refused_too():
    with pytest.raises(UsageError, match="--layer-decay"):
        fine_tune(squares(), **FAST, method="linear", grid="layer_decay=1,0.5", plan=True)
    with pytest.raises(UsageError, match="--warmup-epochs 3 is all of --epochs 1"):
        fine_tune(squares(), model="tiny_models:tiny", warmup_epochs=3.0, grid="epochs=5,1", plan=True)


def test_subgroups_are_measured(monkeypatch):
    from dataclasses import replace

    data = replace(squares(90), attributes={"site": np.array(["a", "b", "a"] * 30)})
    record = fine_tune(data, **FAST, subgroups="site", holdout=0.4).record
    values = {row.attribute_value for row in record.metrics if row.attribute == "site"}
    assert {"a", "b"} <= values


def test_misspelled_names_come_to_light_before_any_image_is_read():
    with pytest.raises(UnknownNameError, match="Did you mean linear"):
        fine_tune("no such data", model="tiny_models:tiny", method="lineer")
    with pytest.raises(UnknownNameError, match="setting of a grid"):
        fine_tune("no such data", model="tiny_models:tiny", grid="learning_rat=1,2")
    with pytest.raises(UsageError, match="one at a time"):
        fine_tune(squares(), model="tiny_models:tiny,tiny_models:broken")


def test_a_tracker_sees_epochs_and_the_end(monkeypatch):
    said = []

    class Fake:
        def start_run(self, run_name):
            said.append(run_name)

        def log_params(self, values):
            said.append(values["method"])

        def log_metrics(self, values, step):
            said.append((step, sorted(values)))

        def end_run(self, status):
            said.append(status)

    monkeypatch.setitem(sys.modules, "mlflow", Fake())
    fine_tune(squares(), **FAST, track="mlflow")
    assert said[:2] == ["tiny on arrays", "full"]
    assert said[-1] == "FINISHED"
    assert [step for step, _ in said[2:-1]] == [1, 2, 0]
    assert "val/auc" in said[2][1]
    assert "train/loss" in said[2][1]
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(crossgraft.errors.MissingExtraError, match=r"crossgraft\[track\]"):
        fine_tune(squares(), **FAST, track="mlflow")


def test_the_public_verb_is_this_function():
    assert crossgraft.fine_tune is fine_tune
