"""recipes/ground_truth.py trains nothing twice; its page and tables say what its rows say, and the benchmark replays them."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.rank.published.user_table import read_benchmark_table
from crossgraft.scores import adaptive_etas, etran, itm, itm_dispersion, logme

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "docs" / "results"
NETWORKS = [f"net{number} · ImageNet" for number in range(17)]


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("ground_truth")


def modules(*names):
    return [sys.modules[f"ground_truth_{name}"] for name in names]


@pytest.mark.slow
def test_without_data_it_trains_every_kind_of_cell_once(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(recipe, "LEARNING_RATES", (1e-3,))
    monkeypatch.setattr(recipe, "SEEDS", (0, 1))
    (rows,) = modules("rows")
    monkeypatch.setattr(rows, "LEARNING_RATES", (1e-3,))
    asked = ["--smoke", "--rows", str(tmp_path / "rows")]
    recipe.main([*asked, "--minutes", "0"])
    assert not (tmp_path / "rows").exists()
    recipe.main(asked)
    cells = rows.read_cells(tmp_path / "rows", "noise")
    assert [key[1:] for key in cells] == [
        ("full", 1e-3, 0), ("low:epochs=0.2", 1e-3, 0), ("low:size=0.5", 1e-3, 0), ("full", 1e-3, 1),
    ]  # fmt: skip
    for row in cells.values():
        assert 0 <= row.auc <= 1
        assert row.val_curve == f"{row.val_auc:.5f}"
        assert (row.num_val, row.num_test) == (8, 18)
        assert row.val_error > 0
    monkeypatch.setattr(recipe, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main([*asked, "--out", str(tmp_path / "page.md")])
    assert "4 of 10 trainings are there" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_no_network_is_trained_where_its_pretraining_had_the_images(recipe):
    sets = {target.name: target for target in recipe.SETS}
    table = modules("table")[0]
    entries = [entry for zoo in recipe.ZOOS for entry in yaml.safe_load((recipe.EXAMPLES / zoo).read_text(encoding="utf-8"))]
    specs = [SimpleNamespace(name=entry["name"]) for entry in entries]
    assert len(specs) == table.NETWORKS
    assert all(len(recipe.fitting(target, specs)) == table.networks_of(target) for target in recipe.SETS)
    left_out = {name: {s.name for s in specs} - {s.name for s in recipe.fitting(t, specs)} for name, t in sets.items()}
    assert left_out["cifar10"] == {f"resnet{depth} · CIFAR-10" for depth in (20, 32, 44, 56)}
    assert left_out["pneumoniamnist"] == {"pneumonia_cnn · PneumoniaMNIST"}
    assert left_out["breastmnist"] == set()
    assert sets["breastmnist"].group == sets["busi"].group != ""


def test_an_image_of_test_is_not_trained_on_and_classes_are_cut(recipe):
    sets = modules("sets")[0]
    images = np.random.default_rng(0).integers(0, 256, (60, 8, 8), dtype=np.uint8)
    images[0] = images[59]
    whole = dataset_from_arrays(images, np.arange(60) % 2, name="some")
    parted = replace(whole, splits=np.repeat(["train", "val", "test"], [40, 10, 10]), split_method="given")
    found = sets.parts_of(sets.TargetSet("some", "Some", lambda _: parted, per_class=15), None)
    train = found.take(found.splits == "train")
    assert train.class_counts == (15, 15)
    kept = {train.read(row).tobytes() for row in range(len(train))}
    assert images[59].tobytes() not in kept
    assert (found.splits == "test").sum() == 10


def rows_of(rows, values, **changes):
    """A complete set: one AUC per network, the first three with more seeds."""
    known = {"family": "f", "side": 64, "epochs": 15, "settings": "s", "versions": "v", "num_val": 100, "val_error": 0.02}
    found = {}
    for place, (name, value) in enumerate(zip(NETWORKS, values, strict=False)):
        for fidelity in rows.FIDELITIES:
            for seed in rows.SEEDS if place < 3 and fidelity == "full" else (0,):
                for rate in rows.LEARNING_RATES:
                    row = rows.CellRow(
                        model=name, fidelity=fidelity, learning_rate=rate, seed=seed, auc=value + 0.01 * seed, accuracy=value,
                        balanced_accuracy=value, val_auc=value - (0.2 if rate < 1e-3 else 0.0), val_loss=0.5, val_accuracy=value,
                        cpu_seconds=10.0 if fidelity == "full" else 2.0, num_train=50, num_test=30, **known,
                    )  # fmt: skip
                    found[row.key] = replace(row, **changes)
    return found


def test_the_page_and_the_tables_hold_complete_sets(recipe, tmp_path):
    rows, table, page = modules("rows", "table", "page")
    values = np.linspace(0.9, 0.5, 17)
    for name, order in (("breastmnist", values), ("busi", values), ("brain_mri", values[::-1]), ("retinamnist", values[:9])):
        rows.write_cells(tmp_path, name, rows_of(rows, order))
    rows.write_scores(tmp_path, "breastmnist", [rows.ScoreRow(model=NETWORKS[1], score="logme", value=1.5)])
    trained = table.trained_table("auc", rows=tmp_path)
    assert trained.targets == ("breastmnist", "brain_mri", "busi")
    assert trained.groups == ("breast ultrasound", "brain_mri", "breast ultrasound")
    assert trained.results[0, 0] == pytest.approx(0.91)  # the mean of 0.90, 0.91 and 0.92
    assert trained.standard_deviations[0] == pytest.approx(0.01 * 1.2**0.5)  # of three networks of 0.01 each
    assert trained.seconds[0] == pytest.approx(20.0)  # of two learning rates
    page.write_page(tmp_path / "page.md", tmp_path, recipe.SETS)
    text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Begun: RetinaMNIST (66 of 114)" in text
    assert "| BreastMNIST | 17 | 1.00 (0.0) | 1.00 (0.0) | 20 % | 1.00 (0.0) | 20 % |" in text
    assert "| net0 · ImageNet | 0.910 ± 0.010 | 0.900 ± 0.000 |" in text
    read = read_benchmark_table(tmp_path / "table_auc.csv")
    assert read.results == pytest.approx(trained.results)
    assert read.validation == pytest.approx(trained.validation)
    assert read.seconds == pytest.approx(trained.seconds)
    assert list(read.columns) == ["low:epochs=0.2", "low:size=0.5", "logme"]
    assert read.columns["logme"].values[:, 1] == pytest.approx([1.5, np.nan, np.nan], nan_ok=True)
    assert trained.kinds["score:logme"] == pytest.approx(read.columns["logme"].values, nan_ok=True)


def test_scores_of_a_set_are_those_of_their_functions(load_recipe, tmp_path):
    recipe = load_recipe("ground_truth_scores")
    (rows,) = modules("rows")
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    features = {name: rng.normal(size=(40, 6)) + 0.3 * place * labels[:, None] for place, name in enumerate("abc")}
    inputs = {name: recipe.ScoreInputs(features=x, labels=labels) for name, x in features.items()}
    assert [row.value for row in recipe.scored("logme", inputs)] == pytest.approx(
        [logme(features=x, labels=labels) for x in features.values()], abs=1e-6
    )
    zoo = etran.combine([etran.parts(features=x, labels=labels) for x in features.values()])
    assert [row.value for row in recipe.scored("etran", inputs)] == pytest.approx(zoo, abs=1e-6)
    chosen = adaptive_etas([itm_dispersion(x, labels) for x in features.values()])
    expected = [itm(features=x, labels=labels, eta=eta) for x, eta in zip(features.values(), chosen, strict=True)]
    assert [row.value for row in recipe.scored("itm", inputs)] == pytest.approx(expected, abs=1e-6)
    missing = list(recipe.scored("leep", inputs))
    assert [row.value for row in missing] == [None] * 3
    assert all(row.reason for row in missing)
    rows.write_scores(tmp_path, "some", missing)
    assert rows.read_scores(tmp_path, "some") == missing


def test_one_failed_seed_does_not_decide_how_much_seeds_differ(recipe):
    rows, rng = modules("rows")[0], np.random.default_rng(0)

    def network(values):
        return rows.Trained("m", "f", tuple(values), None, {}, {})

    drawn = rng.normal(0.8, 0.02, (4000, 3, 3))
    variances = [rows.seed_deviation([network(each) for each in some]) ** 2 for some in drawn]
    assert np.mean(variances) == pytest.approx(0.02**2, rel=0.05)
    calm = [network((0.80, 0.81, 0.82)), network((0.70, 0.71, 0.72))]
    assert rows.seed_deviation([*calm, network((0.9, 0.1, 0.9))]) == pytest.approx(0.01 * 1.2**0.5)


def test_the_benchmark_replays_what_is_complete(recipe, tmp_path, monkeypatch):
    select, benchmark = map(importlib.import_module, ("benchmark_select", "benchmark"))
    rows, table = modules("rows", "table")
    rng = np.random.default_rng(1)
    for target in ("breastmnist", "brain_mri", "retinamnist"):
        rows.write_cells(tmp_path, target, rows_of(rows, rng.uniform(0.6, 0.9, 17)))
    table.trained_tables.cache_clear()
    found = {"trained_auc": table.trained_table("auc", rows=tmp_path)}
    monkeypatch.setattr(benchmark, "trained_tables", lambda: found)
    known, cold = select.measure("trained_auc")
    regrets = known.set_index(["method", "budget"])["mean_regret"].dropna()
    assert {method for method, _ in regrets.index} == {*select.METHOD_TITLES} - {"imagenet"}  # nobody publishes these networks
    assert {budget for _, budget in regrets.index} == {"10%", "25%", "50%"}  # 3 % is below one training
    assert regrets["halving", "25%"] != regrets["random", "25%"]  # the cheap columns are used
    assert cold["mean_regret"].notna().sum() == len(regrets)
    methods = {line.method for line in benchmark.measure(benchmark.replay_of("trained_auc"))}
    assert {"Order of select", "Fine-tuning for a fifth of the epochs", "Validation alone", "Noise ceiling"} <= methods
    assert "Cold start" not in methods  # nothing is known of any


def test_the_published_page_is_of_the_published_rows(recipe):
    page, table = modules("page", "table")
    rows = RESULTS / "ground_truth"
    assert page.page_of(rows, recipe.SETS) == (RESULTS / "ground_truth.md").read_text(encoding="utf-8")
    for metric in ("auc", "accuracy"):
        kept = (rows / f"table_{metric}.csv").read_text(encoding="utf-8")
        assert kept == table.table_csv(rows, recipe.SETS, metric)
