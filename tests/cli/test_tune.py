import json

import numpy as np
import pytest

from crossgraft.metrics.words import metric_in_words
from crossgraft.records.base import RunRecord
from crossgraft.tune.record import PlanRecord, TuningRecord

FAST = ("--model", "tiny_models:tiny", "--epochs", "2", "--workers", "1")


def test_the_answer_comes_last_and_fits_the_terminal(workspace, crossgraft):
    outcome = crossgraft("tune", "images", *FAST, "--out", "run")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0] == "tiny on images"
    assert lines[1].startswith("24 images (")
    assert "patient leakage not checked" in outcome.out
    assert lines[-2:] == ["Model: run/model", "Report: run/report.html"]
    assert "images that had no part in training or in picking the model. Caveat: " in " ".join(lines[-12:])
    assert lines[-5].startswith("  crossgraft tune images --model ")  # so few images to tell: test on every one
    assert lines[-5].endswith(" --folds 5")
    assert max(len(line) for line in lines if line != lines[-5]) <= 100  # a command that is to be copied is not broken
    record = TuningRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    said = metric_in_words(record.metric("balanced_accuracy"), guess=0.5)
    assert " ".join(said.split()) in " ".join(outcome.out.split())


def test_json_is_the_record_and_quiet_is_quiet(workspace, crossgraft):
    outcome = crossgraft("tune", "images", *FAST, "--json", "--quiet", "--out", "run")
    assert outcome.code == 0
    assert outcome.err == ""
    record = TuningRecord.model_validate_json(outcome.out)
    assert record == TuningRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())


def test_flags_are_the_arguments_and_the_command_line_gives_them_again(workspace, crossgraft):
    flags = ("--regularizer", "l2_sp:alpha=0.1,beta=0.2", "--batch-transform", "mixup:0.4", "--no-flip")
    outcome = crossgraft("tune", "images", *FAST, *flags, "--no-store", "--quiet", "--out", "run")
    assert outcome.code == 0, outcome.err
    run = RunRecord.model_validate_json((workspace / "run" / "run.json").read_bytes())
    assert run.config["regularizer"] == ["l2_sp:alpha=0.1,beta=0.2"]
    assert run.config["flip"] is False
    record = TuningRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert [plugin.spelling for plugin in record.plugins][:3] == ["full", "l2_sp:alpha=0.1,beta=0.2", "mixup:alpha=0.4"]
    words = run.command_line.split()
    assert "--no-flip" in words
    again = crossgraft(*words[1:], "--workers", "1", "--quiet", "--json")
    assert again.code == 0, again.err
    assert TuningRecord.model_validate_json(again.out) == record


def test_a_file_of_flags_gives_the_same(workspace, crossgraft):
    content = "model: tiny_models:tiny\nepochs: 2\nworkers: 1\ngrid: {learning_rate: [0.01, 0.001]}\nregularizer: l2_sp\n"
    (workspace / "c.yaml").write_text(content)
    from_file = crossgraft(
        "tune", "images", "--config", "c.yaml", "--code", "tiny_models:tiny", "--json", "--quiet", "--out", "one"
    )
    assert from_file.code == 0, from_file.err
    typed = crossgraft(
        "tune", "images", *FAST, "--grid", "learning_rate=0.01,0.001", "--regularizer", "l2_sp", "--json", "--out", "two"
    )
    one, two = (TuningRecord.model_validate_json(outcome.out) for outcome in (from_file, typed))
    assert one.metrics == two.metrics
    assert len(one.grid) == 2


def test_a_plan_is_printed_and_nothing_is_written(workspace, crossgraft):
    outcome = crossgraft("tune", "images", *FAST, "--plan", "--method", "linear", "--out", "run")
    assert outcome.code == 0, outcome.err
    assert "only the head is trained" in outcome.out
    assert "The features of each image are computed once" in outcome.out
    assert not (workspace / "run").exists()
    grid = ("--grid", "learning_rate=0.02,0.07", "--grid", "weight_decay=0.3")
    printed, as_json = (crossgraft("tune", "images", *FAST, *grid, "--plan", *more) for more in ([], ["--json"]))
    assert "Grid: learning_rate 0.02, 0.07; weight_decay 0.3. Val picks the best of 2 points." in printed.out
    assert "0.02 or 0.07" in printed.out and "0.001" not in printed.out
    plan = PlanRecord.model_validate_json(as_json.out)
    assert plan.num_steps > 0
    assert plan.grid == [{"learning_rate": 0.02, "weight_decay": 0.3}, {"learning_rate": 0.07, "weight_decay": 0.3}]
    assert not (workspace / "runs").exists()


def test_a_failed_point_of_a_grid_ends_with_code_6_and_the_others_are_kept(workspace, crossgraft):
    grid = ("--optimizer", "sgd", "--grid", "learning_rate=0.01,1e6")
    outcome = crossgraft("tune", "images", *FAST, *grid, "--out", "run")
    assert outcome.code == 6
    assert "Warning: The training learning_rate=1e+06 failed" in outcome.err
    assert "failed" in outcome.out
    assert "picked" in outcome.out
    assert (workspace / "run" / "model" / "model.json").is_file()


def test_names_of_files_and_patients_stay_out_of_the_run_directory(workspace, crossgraft):
    (workspace / "images").rename(workspace / "scans")
    rows = [f"scans/{name}/{i:02d}.png,{name},Muster{i // 2}{name}" for name in ("benign", "malignant") for i in range(12)]
    (workspace / "table.csv").write_text("\n".join(["path,label,patient", *rows]) + "\n")
    flags = ("tune", "table.csv", *FAST, "--group-column", "patient", "--quiet", "--no-store")
    assert crossgraft(*flags, "--out", "run").code == 0
    text = [path.read_text(errors="ignore") for path in (workspace / "run").rglob("*") if path.is_file()]
    assert not any("Muster" in each or "00.png" in each or str(workspace) in each for each in text)
    assert crossgraft(*flags, "--show-names", "--out", "named").code == 0
    named = (workspace / "named" / "predictions.csv").read_text()
    assert ".png" in named
    assert "Muster" not in named


def test_folds_are_shown_one_a_line(workspace, crossgraft):
    outcome = crossgraft("tune", "images", *FAST, "--folds", "2", "--out", "run")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    table = [line.split() for line in lines if line.startswith("fold ")]
    assert [[line[1], line[4]] for line in table] == [["0", "12"], ["1", "12"]]
    assert "There is no single model: with folds there is one model a fold" in " ".join(outcome.out.split())


def test_images_of_a_given_test_part_are_those_that_are_measured(workspace, crossgraft):
    pixels = np.random.default_rng(0).integers(0, 255, (40, 16, 16), dtype=np.uint8)
    parts = {"train": slice(0, 20), "val": slice(20, 28), "test": slice(28, 40)}
    arrays = {f"{part}_images": pixels[rows] for part, rows in parts.items()}
    arrays |= {f"{part}_labels": np.arange(40)[rows] % 2 for part, rows in parts.items()}
    np.savez(workspace / "mnist.npz", **arrays)
    outcome = crossgraft("tune", "mnist.npz", *FAST, "--json", "--quiet", "--out", "run")
    record = TuningRecord.model_validate_json(outcome.out)
    assert [(row.name, row.num_images) for row in record.splits] == [("train", 20), ("val", 8), ("test", 12)]
    assert record.metrics[0].num_images == 12


@pytest.mark.parametrize(
    "kind", ["methods", "regularizers", "batch-transforms", "augmentations", "losses", "schedules", "presets"]
)
def test_what_can_be_typed_is_listed(kind, crossgraft):
    outcome = crossgraft("list", kind, "--json")
    names = [row["name"] for row in json.loads(outcome.out)[kind.replace("-", "_")]]
    assert len(names) == len(set(names)) >= 1
    assert names[0] in crossgraft("list", kind).out


def test_results_are_listed_after_a_run_with_their_method(workspace, crossgraft):
    crossgraft("tune", "images", *FAST, "--method", "linear", "--quiet", "--out", "run")
    crossgraft("tune", "images", *FAST, "--quiet", "--out", "other")
    rows = json.loads(crossgraft("list", "results", "--json").out)["results"]
    assert [(row["model"], row["method"], row["from"]) for row in rows[:2]] == [
        ("tiny", "full", "crossgraft tune"),
        ("tiny", "linear", "crossgraft tune"),
    ]
    assert rows[2]["method"].endswith("fine-tuning")
    assert "  full" in crossgraft("list", "results").out
