import json
import shutil
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from crossgraft.data import listing
from crossgraft.data.inspection import inspect_images
from crossgraft.data.sources import _image_files
from crossgraft.errors import DataError, UsageError
from crossgraft.rank.record import RankingRecord
from crossgraft.records.base import RunRecord

FLAGS = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "leep,logme,knn_probe", "--workers", "1")


@pytest.fixture
def ranked(run_once):
    return run_once("rank", "images", *FLAGS, out="run")


def numbers(record):
    """A record without what differs from run to run: seconds, memory, cache."""
    text = json.loads(record)
    for cell in text["cells"]:
        cell["seconds"] = cell["peak_bytes"] = 0
    for model in text["models"]:
        model["feature_seconds"], model["features_from_cache"] = 0, True
    return text


def test_the_terminal_shows_table_advice_and_report(ranked):
    lines = ranked.out.splitlines()
    heading = " ".join(lines[:3])
    assert heading.startswith("images 16 images, train rows of the split · split ")
    assert "patient leakage not checked (no group column)" in heading
    assert any(line.split()[:3] == ["Rank", "Model", "LogME"] for line in lines)
    assert any("Above shuffled" in line for line in lines)
    assert sum(" control " in line for line in lines) == 2
    assert lines[-1] == "Report: run/report.html"
    assert max(len(line) for line in lines if not line.startswith("  crossgraft ")) <= 100  # a command is not broken


def test_progress_goes_to_stderr_in_the_users_words(ranked):
    assert "Looking at 16 images with narrow (1 of 4)" in ranked.err
    assert "Scoring wide (2 of 4)" in ranked.err


def test_the_run_directory_holds_the_whole_run(ranked, workspace):
    run = RunRecord.model_validate_json((workspace / "run" / "run.json").read_bytes())
    assert run.state == "done"
    assert run.command_line.startswith("crossgraft rank images --models zoo.yaml")
    assert run.config["seed" if "seed" in run.config else "by"] is not None
    assert set(run.weights_fingerprints) >= {"narrow", "wide"}
    record = RankingRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
    assert {model.role for model in record.models} == {"candidate", "random weights"}
    cell = record.cell("wide", "logme")
    assert cell.low < cell.value < cell.high
    assert len(cell.jackknife_values) == 16
    assert len(cell.shuffled_values) == 5
    html = (workspace / "run" / "report.html").read_text()
    assert str(workspace) not in html
    assert str(workspace) not in (workspace / "run" / "run.json").read_text()


def test_json_is_one_document_with_a_schema_version(workspace, crossgraft):
    outcome = crossgraft("rank", "images", *FLAGS, "--json", "--quiet")
    assert json.loads(outcome.out)["schema_version"] == 1
    assert outcome.err == ""


def test_the_same_command_again_reads_back_and_gives_the_same_numbers(ranked, workspace, crossgraft):
    before = (workspace / "run" / "report.json").read_text()
    again = crossgraft("rank", "images", *FLAGS, "--out", "run")
    assert "4 of 4 models were read back from the run directory." in again.err
    assert (workspace / "run" / "report.json").read_text() == before


def test_another_directory_gives_the_same_numbers(ranked, workspace, crossgraft):
    crossgraft("rank", "images", *FLAGS, "--out", "other", "--cache-dir", "fresh")
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "other"))
    assert numbers(first) == numbers(second)


def test_a_run_killed_between_models_goes_on_with_the_next(workspace, crossgraft, monkeypatch, ranked):
    from crossgraft.rank import sweep

    original = sweep.Evaluating.do

    def killed(self, job):
        if job.spec.position.startswith("3 "):
            raise KeyboardInterrupt
        return original(self, job)

    monkeypatch.setattr(sweep.Evaluating, "do", killed)
    interrupted = crossgraft("rank", "images", *FLAGS, "--out", "killed")
    assert interrupted.code == 130
    assert "the same command goes on from there" in interrupted.err
    monkeypatch.setattr(sweep.Evaluating, "do", original)
    resumed = crossgraft("rank", "images", *FLAGS, "--out", "killed")
    assert "2 of 4 models were read back from the run directory." in resumed.err
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "killed"))
    assert numbers(first) == numbers(second)


@pytest.mark.parametrize("are_kept", [True, False])
def test_images_are_decoded_once_for_all_models_after_they_were_opened(workspace, crossgraft, monkeypatch, are_kept):
    counted = Counter()
    original = _image_files.decode_file

    def decode(path, **options):
        counted[path] += 1
        return original(path, **options)

    monkeypatch.setattr(_image_files, "decode_file", decode)
    if not are_kept:  # as where images are too many for the memory
        monkeypatch.setattr(listing, "inspect_images", partial(inspect_images, kept_bytes=0))
    assert crossgraft("rank", "images", *FLAGS, "--quiet", "--no-images", "--out", "run", "--cache-dir", "fresh").code == 0
    assert len(counted) == 16 and set(counted.values()) == {1 if are_kept else 2}
    assert not [path for path in (workspace / "fresh").iterdir() if path.is_file()]


def test_other_weights_under_the_same_name_are_scored_anew(ranked, workspace, crossgraft):
    from safetensors.torch import load_file, save_file

    state = load_file(workspace / "narrow.safetensors")
    save_file({name: 2 * values for name, values in state.items()}, workspace / "narrow.safetensors")
    again = crossgraft("rank", "images", *FLAGS, "--out", "run")
    assert "3 of 4 models were read back from the run directory." in again.err
    fresh = crossgraft("rank", "images", *FLAGS, "--out", "fresh")
    assert fresh.code == 0
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "fresh"))
    assert numbers(first) == numbers(second)


def split_folder(workspace, *, poisoned):
    """images/ cut into train and test; a poisoned test folder holds garbage, another class and other counts."""
    folder = workspace / ("poisoned" if poisoned else "clean") / "data"
    for name in ("benign", "malignant"):
        files = sorted((workspace / "images" / name).iterdir())
        for part, members in (("train", files[:9]), ("test", files[9:])):
            (folder / part / name).mkdir(parents=True)
            for file in members:
                shutil.copy(file, folder / part / name)
    if poisoned:
        for file in (folder / "test").rglob("*.png"):
            file.write_bytes(b"poison")
        (folder / "test" / "alien").mkdir()
        (folder / "test" / "alien" / "x.png").write_bytes(b"poison")
        (folder / "test" / "benign" / "09.png").unlink()
    return folder


def split_npz(workspace, *, poisoned):
    rng = np.random.default_rng(0)
    arrays = {
        "train_images": rng.integers(0, 255, (20, 12, 12), dtype=np.uint8),
        "train_labels": np.arange(20) % 2,
        "test_images": rng.integers(0, 255, (6, 12, 12), dtype=np.uint8),
        "test_labels": np.arange(6) % 2,
    }
    if poisoned:
        arrays |= {"test_images": np.full((3, 7), np.nan), "test_labels": np.arange(9) + 5}
    path = workspace / ("poisoned" if poisoned else "clean") / "data.npz"
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)
    return path


def split_table(workspace, *, poisoned):
    folder = workspace / ("poisoned" if poisoned else "clean") / "study"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copytree(workspace / "images", folder / "images")
    rows = ["path,label,split,patient"]
    for name in ("benign", "malignant"):
        for i in range(12):
            part = "train" if i < 9 else "test"
            row = f"images/{name}/{i:02d}.png,{name},{part},{name}{i // 2}"
            rows.append(f"images/gone.png,alien,{part}," if poisoned and part == "test" else row)
    (folder / "data.csv").write_text("\n".join(rows) + "\n")
    return folder / "data.csv"


@pytest.mark.parametrize("make", [split_folder, split_npz, split_table])
def test_rank_never_opens_test(workspace, crossgraft, make):
    records = {}
    for poisoned in (False, True):
        data = make(workspace, poisoned=poisoned)
        outcome = crossgraft("rank", data, *FLAGS, "--json", "--out", f"run-{poisoned}", "--cache-dir", f"c{poisoned}")
        assert outcome.code == 0, outcome.err
        records[poisoned] = numbers(outcome.out)
    assert "split train" in records[True]["dataset"]["rows_used"]
    assert records[False] == records[True]


def test_groups_stay_together_in_the_intervals(workspace, crossgraft):
    data = split_table(workspace, poisoned=False)
    outcome = crossgraft("rank", data, *FLAGS, "--group-column", "patient", "--json")
    record = RankingRecord.model_validate_json(outcome.out)
    assert record.dataset.num_groups == 8
    assert len(record.cell("wide", "logme").jackknife_values) == 8  # one block a patient
    assert next(check for check in record.checks if check.title == "Patient leakage").severity == "passed"


def test_ground_truth_is_compared(workspace, crossgraft):
    (workspace / "results.csv").write_text("model,accuracy\nnarrow,0.7\nwide,0.9\n")
    outcome = crossgraft("rank", "images", *FLAGS, "--ground-truth", "results.csv")
    assert "LogME, all models: needs at least 3 models" in outcome.out.partition("Agreement with fine-tuned results")[2]


def test_a_config_file_gives_flags_and_typed_flags_win(workspace, crossgraft):
    (workspace / "c.yaml").write_text("models: zoo.yaml\nscores: logme\nper_class: 5\nseed: 7\n")
    outcome = crossgraft("rank", "images", "--config", "c.yaml", "--code", "tiny_models.py", "--per-class", "6", "--json")
    record = RankingRecord.model_validate_json(outcome.out)
    assert record.dataset.class_counts == [6, 6]
    assert [score.name for score in record.scores] == ["logme"]


def test_labels_of_other_names_are_scored_anew(workspace, crossgraft):
    """A file of class names is no argument: the same command may mean other names after it was edited."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (60, 2))
    np.savez("data.npz", images=rng.integers(0, 255, (60, 16, 16, 3), dtype=np.uint8), labels=labels)
    names = {}
    for file in ("mass\nscar\n", "scar\nmass\n"):
        (workspace / "names.txt").write_text(file)
        command = (
            "rank",
            "data.npz",
            "--class-names",
            "names.txt",
            "--models",
            "zoo.yaml",
            "--code",
            "tiny_models.py",
            "--scores",
            "logme",
        )
        outcome = crossgraft(*command, "--out", "run")
        assert outcome.code == 0, outcome.err
        record = RankingRecord.model_validate_json((workspace / "run" / "report.json").read_bytes())
        names[file] = record.cell("wide", "logme").per_label
    first, second = names.values()
    assert first["mass"] == second["scar"] != second["mass"] == first["scar"]


def test_without_out_each_configuration_finds_its_own_directory(workspace, crossgraft):
    first, other, again = (
        crossgraft("rank", "images", "--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme", "--limit", limit)
        for limit in ("12", "10", "12")
    )
    assert first.out.splitlines()[-1] == again.out.splitlines()[-1] == "Report: runs/rank-images/report.html"
    assert other.out.splitlines()[-1] == "Report: runs/rank-images-2/report.html"
    assert "read back" in again.err


def test_no_images_writes_no_thumbnail(workspace, crossgraft, ranked):
    assert json.loads((workspace / "run" / "thumbnails.json").read_text())
    crossgraft("rank", "images", *FLAGS, "--no-images", "--out", "private")
    assert not (workspace / "private" / "thumbnails.json").exists()
    assert "data:image/png" not in (workspace / "private" / "report.html").read_text()


def test_python_and_the_command_line_give_the_same_numbers(ranked, workspace):
    import crossgraft

    ranking = crossgraft.rank_models(
        "images", models="zoo.yaml", allow_code="tiny_models.py", scores=["leep", "logme", "knn_probe"], workers=1
    )
    assert numbers(ranking.to_json()) == numbers((workspace / "run" / "report.json").read_text())
    assert ranking.report is None
    frame = ranking.to_frame()
    assert list(frame.columns[:5]) == ["model", "role", "score", "rank", "value"]
    assert len(frame) == 12
    assert frame[frame["score"] == "logme"]["rank"].tolist()[:2] == [1, 2]
    assert "<table" in ranking._repr_html_()


def test_an_open_dataset_with_a_test_split_is_ranked_as_if_it_had_none(workspace):
    """Not even the class list may know about the rows of the test split."""
    import crossgraft
    from crossgraft.data import open_dataset

    whole = open_dataset(split_folder(workspace, poisoned=False), use_split=None)
    is_alien = (whole.splits == "test") & (np.cumsum(whole.splits == "test") > 3)
    names = (*whole.class_names, "alien")
    labels, targets = np.where(is_alien, "alien", whole.labels), np.where(is_alien, 2, whole.targets)
    poisoned = replace(whole, class_names=names, labels=labels, targets=targets)
    settings = {"models": "zoo.yaml", "allow_code": "tiny_models.py", "scores": "logme", "workers": 1}
    rankings = [crossgraft.rank_models(data, **settings) for data in (whole, poisoned)]
    assert numbers(rankings[0].to_json()) == numbers(rankings[1].to_json())
    assert rankings[0].record.dataset.num_images == 14  # val is drawn from them
    only_test = replace(whole, splits=np.full(len(whole), "test"))
    with pytest.raises(DataError, match="has the splits test but no split train"):
        crossgraft.rank_models(only_test, **settings)


def test_python_refuses_what_the_command_line_refuses():
    import crossgraft

    with pytest.raises(UsageError, match="workers must be at least 1, not 0"):
        crossgraft.rank_models("images", models="zoo.yaml", allow_code="tiny_models.py", workers=0)


def test_a_default_score_that_is_quadratic_is_left_out_of_many_images_and_says_so(workspace, crossgraft, monkeypatch):
    monkeypatch.setattr("crossgraft.rank.default_score.MOST_IMAGES", 15)
    flags = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--workers", "1")
    found = crossgraft("rank", "images", *flags, "--out", "many")
    reason = (
        "Its cost grows with the square of the images, and there are 16 images; above 15 it is computed only when it is named:"
    )
    assert f"Left out: k-NN probe. {reason}" in found.err
    record = RankingRecord.model_validate_json((workspace / "many" / "report.json").read_bytes())
    assert record.cell("wide", "knn_probe").value is None
    assert record.cell("wide", "knn_probe").reason == f"{reason} --scores default,knn_probe."
    assert record.cell("wide", "logme").value is not None
    assert "k-NN probe" in (workspace / "many" / "report.html").read_text(encoding="utf-8")
    named = crossgraft("rank", "images", *flags, "--scores", "default,knn_probe", "--out", "named")
    assert "Left out" not in named.err
    record = RankingRecord.model_validate_json((workspace / "named" / "report.json").read_bytes())
    assert record.cell("wide", "knn_probe").value is not None


def test_a_precision_that_changes_numbers_is_in_the_configuration_and_others_are_refused(ranked, workspace, crossgraft):
    coarse = crossgraft("rank", "images", *FLAGS, "--precision", "bf16", "--out", "coarse")
    assert coarse.code == 0, coarse.err
    exact, other = (json.loads((workspace / run / "run.json").read_text()) for run in ("run", "coarse"))
    assert "precision" not in exact["config"] and other["config"]["precision"] == "bf16"
    assert exact["config_hash"] != other["config_hash"]
    first, second = ((workspace / run / "report.json").read_text() for run in ("run", "coarse"))
    assert numbers(first) != numbers(second)
    again = crossgraft("rank", "images", *FLAGS, "--precision", "bf16", "--out", "run")
    assert again.code == 2 and "precision" in again.err
    unknown = crossgraft("rank", "images", *FLAGS, "--precision", "64", "--out", "unknown")
    assert unknown.code == 2 and "precision" in unknown.err and "bf16" in unknown.err
    same = crossgraft("rank", "images", *FLAGS, "--precision", "auto", "--out", "run")
    assert "4 of 4 models were read back" in same.err


def test_features_are_drawn_where_somebody_asks(workspace, run_once):
    flags = ("--models", "zoo.yaml", "--code", "tiny_models.py", "--scores", "logme,itm", "--workers", "1", "--feature-maps", "1")
    run_once("rank", "images", *flags, out="drawn")
    text = (workspace / "drawn" / "report.json").read_text()
    features = RankingRecord.model_validate_json(text).features
    record = RankingRecord.model_validate_json(text)
    best = record.ranking("logme").rows[0].model
    assert [mapped.model for mapped in features.maps] == [best]
    assert {row.model for row in features.spreads} == {model.name for model in record.models if model.role == "candidate"}
    for row in features.itm_by_weight:
        assert row.values[0] == record.cell(row.model, "itm").value
    page = (workspace / "drawn" / "report.html").read_text()
    assert f"Features of {best}: as they are" in page and "ITM with several weights" in page
    assert '"points"' not in page


def test_nobody_asked_for_features(ranked, workspace):
    assert "features" not in json.loads((workspace / "run" / "report.json").read_text())
