import csv
import json
import shlex
from dataclasses import replace

import numpy as np
import pytest
from safetensors.torch import save_file

from crossgraft.audit import explained
from crossgraft.cli.main import main
from crossgraft.data import open_dataset
from crossgraft.demo.best_model import (
    CONFOUNDERS,
    BestModelOptions,
    audit_best_model,
    best_candidate,
    best_of_others,
    tune_best_model,
)
from crossgraft.demo.files import DATA_FILE, write_data
from crossgraft.demo.toy_models import toy_cnn
from crossgraft.demo.training import seeded_initialisation
from crossgraft.models import ModelSpec
from crossgraft.progress import Reporter
from crossgraft.rank.record import RankingByScore, RankRow
from crossgraft.rank.results_store import known_results_file
from crossgraft.variants import curves
from crossgraft.variants.record import FineTuningComparisonRecord
from unit.demo.test_limits import make_ranking

FEW_ALPHAS = (0.0, 0.5, 1.0)
OPTIONS = BestModelOptions(epochs=2, seed=3, no_images=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory, few_data):
    """A demo folder with a toy network that was fine-tuned for two epochs, and its record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CROSSGRAFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(curves, "ALPHAS", FEW_ALPHAS)
        patch.setattr(explained, "NUM_SHAMS", 2)  # each is a look at all unseen digits
        weights = tmp_path_factory.mktemp("elsewhere") / "toy.safetensors"
        with seeded_initialisation(0, "test"):
            save_file(toy_cnn(num_classes=2).state_dict(), weights)
        spec = ModelSpec("toy · test", "crossgraft.demo.toy_models:toy_cnn", str(weights), {"num_classes": 2}, "toy")
        folder = tmp_path_factory.mktemp("demo")
        write_data(few_data, folder / DATA_FILE)
        record = tune_best_model(spec, few_data, OPTIONS, folder=folder, reporter=Reporter(quiet=True))
        record = audit_best_model(record, folder, no_images=True, reporter=Reporter(quiet=True))
        assert not known_results_file().exists(), "a toy is no known result"
        weights.unlink()  # the folder holds all that the commands need
    return folder, record


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_first_candidate_by_the_primary_score_is_taken():
    specs = [ModelSpec(name, "a") for name in ("second", "random", "first", "best by leep")]

    def ranked(score, **ranks):
        rows = [RankRow(model=name, role="candidate", rank=r, not_separable_from=[]) for name, r in ranks.items()]
        return RankingByScore(score=score, rows=rows, pairs=[], best_shuffled=None, num_shuffled=0)

    rankings = [ranked("leep", **{"best by leep": 1}), ranked("logme", second=2, random=None, first=1)]
    ranking = make_ranking().model_copy(update={"rankings": rankings})
    assert best_candidate(ranking, specs).name == "first"


def test_the_first_of_another_architecture_is_compared_too():
    families = {"first": "cnn", "second": "cnn", "third": "vit", "fourth": "vit", "random": "other"}
    specs = [ModelSpec(name, "a", family=family) for name, family in families.items()]
    ranks = {"fourth": 4, "third": 3, "second": 2, "first": 1, "random": None}
    rows = [RankRow(model=name, role="candidate", rank=rank, not_separable_from=[]) for name, rank in ranks.items()]
    by_score = RankingByScore(score="logme", rows=rows, pairs=[], best_shuffled=None, num_shuffled=0)
    ranking = make_ranking().model_copy(update={"rankings": [by_score]})
    assert best_of_others(ranking, specs, specs[0]).name == "third"
    assert best_of_others(ranking, specs[:2], specs[0]) is None


def test_another_model_gets_its_own_comparison_page(made, few_data, tmp_path):
    folder, _ = made
    weights = folder / "best_model.safetensors"
    spec = ModelSpec("toy · test", "crossgraft.demo.toy_models:toy_cnn", str(weights), {"num_classes": 2}, "toy")
    brief = replace(OPTIONS, epochs=1)
    write_data(few_data, tmp_path / DATA_FILE)
    record = tune_best_model(
        spec, few_data, brief, other=replace(spec, name="other"), folder=tmp_path, reporter=Reporter(quiet=True)
    )
    assert record.other.model == record.other.comparison.model.name == "other"
    for file in ("other_model.yaml", "other_model.safetensors", f"{record.other.compare_folder}/report.html"):
        assert (tmp_path / file).is_file()
    assert {row.variant for row in record.other.comparison.variants} == {"full", "linear", "repsim"}


def test_training_writers_train_and_pick_and_unseen_writers_measure(made, few_data):
    folder, record = made
    parts = {row.name: row for row in record.splits}
    assert parts["train"].num_images + parts["val"].num_images == len(few_data.train)
    assert parts["train"].num_groups + parts["val"].num_groups == len(np.unique(few_data.train.groups))
    assert parts["test"].num_images == len(few_data.test)
    assert {row.num_images for row in record.metrics} == {len(few_data.test)}
    assert {row.num_groups for row in record.metrics} == {len(np.unique(few_data.test.groups))}
    main_metric = next(row for row in record.metrics if row.metric == record.primary_metric)
    assert main_metric.low < main_metric.value < main_metric.high
    assert (record.model, record.num_epochs) == ("toy · test", 2)
    written = open_dataset(folder / record.data_file, use_split="test", group_column="writer")
    for row in range(0, len(written), 50):
        np.testing.assert_array_equal(written.read(row), few_data.test.read(row))
    np.testing.assert_array_equal(written.targets, few_data.test.targets)
    np.testing.assert_array_equal(written.groups, few_data.test.groups)


def test_digits_are_not_mirrored(made):
    folder, record = made
    plan = json.loads((folder / record.tune_folder / "plan.json").read_text(encoding="utf-8"))
    assert plan["settings"]["mirroring"] == "no"


def test_one_digit_of_each_unseen_writer_is_predicted(made, few_data):
    folder, record = made
    assert len(record.predictions) == len(np.unique(few_data.test.groups))
    rows = rows_of(folder / "predict" / "predictions.csv")
    assert [(row["target"], row["decision"]) for row in rows] == [(row.target, row.decision) for row in record.predictions]
    assert [row["image"].split("/")[0] for row in rows] == [row.target for row in record.predictions]
    assert all(row.png_base64 and 0 < row.probability <= 1 for row in record.predictions)


def test_the_printed_commands_run_and_give_the_same_numbers(made, tmp_path, monkeypatch):
    folder, record = made
    monkeypatch.setattr(explained, "NUM_SHAMS", 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(curves, "ALPHAS", FEW_ALPHAS)
    moved = tmp_path / "my demo"
    folder.rename(moved)
    try:
        for command in record.commands("my demo"):
            program, *arguments = shlex.split(command)
            assert program == "crossgraft"
            assert main([*arguments, "--quiet", "--workers", "1"]) == 0
    finally:
        moved.rename(folder)
    again = rows_of(tmp_path / "runs" / "tune-digits_5_to_9" / "metrics.csv")
    assert again == rows_of(folder / record.tune_folder / "metrics.csv")
    again = rows_of(tmp_path / "runs" / "predict-unseen_digits" / "predictions.csv")
    assert again == rows_of(folder / "predict" / "predictions.csv")
    (again,) = (tmp_path / "runs").glob("audit-*")
    assert rows_of(again / "audit.csv") == rows_of(folder / "audit" / "full" / "audit.csv")
    again = FineTuningComparisonRecord.model_validate_json(
        (tmp_path / "runs" / "tune-compare-digits_5_to_9" / "report.json").read_bytes()
    )
    assert [row.metrics for row in again.trainings] == [row.metrics for row in record.comparison.trainings]
    assert not known_results_file().exists()


def test_three_ways_to_fine_tune_are_compared_on_the_unseen_writers(made):
    _, record = made
    comparison = record.comparison
    assert {row.variant for row in comparison.variants} == {"full", "linear", "repsim"}
    assert comparison.full.metric.value == next(r.value for r in record.metrics if r.metric == record.primary_metric)
    assert comparison.variant("linear").cka.value == pytest.approx(1)
    assert [point.alpha for point in comparison.interpolation[0].points] == [0, 0.5, 1]


def test_what_is_typed_says_only_what_is_not_the_default():
    assert BestModelOptions(None, 0, no_images=False).typed() == ["--group-column", "writer", "--no-flip", "--no-store"]
    assert replace(OPTIONS, no_images=True).typed()[3:] == ["--epochs", "2", "--seed", "3", "--no-store"]


def test_every_way_to_fine_tune_is_audited(made):
    folder, record = made[:2]
    assert [each.variant for each in record.audits] == ["full", "linear", "repsim"]
    for each in record.audits:
        assert [entry.confounder.partition(":")[0] for entry in each.audit.entries] == [
            name.partition(":")[0] for name in CONFOUNDERS
        ]
        assert each.audit.mode == "trained" and each.audit.looks is None
        assert (folder / each.audit_folder / "report.html").is_file()
