import csv

import pytest

from crossgraft.demo import run_demo, steps
from crossgraft.demo.toy_zoo import FAMILIES
from crossgraft.running.jobs import worker_pool

from .conftest import skip_best_model

STEPS = [
    "compare splits",
    "pretrain the toy zoo",
    "fine-tune",
    "rank",
    "select within a budget",
    "fine-tune the best model",
    "audit",
]


def numbers(record):
    """What must be the same in two runs: everything but seconds, memory, what was in the cache, and what seconds decided."""
    return without_time(record.model_dump(exclude={"selected"}))


def without_time(value):
    if isinstance(value, dict):
        left_out = ("time_ratio", "peak_bytes", "features_from_cache")
        kept = {key: each for key, each in value.items() if "seconds" not in key and key not in left_out}
        return {key: without_time(each) for key, each in kept.items()}
    return [without_time(each) for each in value] if isinstance(value, list) else value


def test_a_demo_is_a_record_and_files_in_its_folder_alone(whole, few_data):
    assert len(whole.jobs) == 5 + 6
    check_record(whole.record, few_data)
    check_files(whole.folder / "demo", whole.record)
    assert not list((whole.folder / "elsewhere").iterdir())
    kept = {path.name for path in (whole.folder / "cache").iterdir() if not path.name.startswith(".")}
    assert kept == {"demo-zoo", "features", "test_looks.jsonl"}


def test_a_second_run_gives_the_same_numbers_and_pretrains_nothing(whole, short, pool, tmp_path, monkeypatch):
    """Of the best model, the commands that are printed for it show this, in its own tests."""
    skip_best_model(monkeypatch, whole.record.best_model)
    monkeypatch.chdir(tmp_path)
    second = run_demo(fast=True, cache_dir=whole.folder / "cache")
    assert numbers(whole.record) == numbers(second)
    assert len(pool.jobs) == 6
    assert all(model.features_from_cache for model in second.ranking.models)
    assert not list(tmp_path.iterdir())  # results are written as a table only where asked


def check_record(record, few_data):
    """It holds the ranking of what was fine-tuned."""
    assert len(record.fine_tuned) == len(record.ranking.models) == 6
    assert record.ranking.dataset.fingerprint == few_data.train.fingerprint
    truth = record.ranking.ground_truth
    candidates = [model.name for model in record.ranking.models if model.role == "candidate"]
    assert len(candidates) == 5
    assert {row.model: row.full_accuracy for row in record.fine_tuned}.items() >= {
        name: truth.values[name] for name in candidates
    }.items()
    assert {row.num_models for row in record.ranking.agreement if row.family is None} == {5}
    (first,) = [row.model for row in record.ranking.ranking(record.ranking.primary_score).rows if row.rank == 1]
    assert record.best_model.model == first
    assert {row.num_images for row in record.best_model.metrics} == {len(few_data.test)}
    assert len(record.limits) >= 6
    check_selection(record, set(candidates))


def check_selection(record, candidates):
    """It was made among the pretrained models, and its regret is the one of the check."""
    selected, full = record.selected, {row.model: row.full_accuracy for row in record.fine_tuned}
    assert {row.name for row in selected.selection.candidates} == candidates
    assert selected.accuracy == full[selected.selection.selected]
    assert selected.best_accuracy == full[selected.best] == max(full[name] for name in candidates)
    assert selected.regret_low <= selected.best_accuracy - selected.accuracy <= selected.regret_high
    assert selected.selection.share_of_all <= 0.25


def check_files(folder, record):
    with (folder / "fine_tuned.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["model"], float(row["full_accuracy"])) for row in rows] == [
        (row.model, row.full_accuracy) for row in record.fine_tuned
    ]
    assert (folder / record.best_model.tune_folder / "model" / "MODEL_CARD.md").is_file()
    assert (folder / record.selected.select_folder / "model" / "model.json").is_file()


def test_another_seed_is_another_demo(whole, short, tmp_path, monkeypatch):
    skip_best_model(monkeypatch)
    other = run_demo(fast=True, cache_dir=tmp_path, seed=1)
    assert whole.record.ranking.dataset.fingerprint != other.ranking.dataset.fingerprint
    assert whole.record.fine_tuned != other.fine_tuned


@pytest.mark.slow
def test_fast_leaves_out_an_architecture_and_full_does_not(short, tmp_path, monkeypatch):
    skip_best_model(monkeypatch)
    assert {model.family for model in run_demo(cache_dir=tmp_path).ranking.models} == {family.name for family in FAMILIES}
    assert steps.FAST.families == FAMILIES[:1]


def test_its_jobs_go_to_worker_processes_which_need_no_guard():
    assert steps.worker_pool is worker_pool  # whose tests start it in scripts, and from standard input
