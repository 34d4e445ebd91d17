"""recipes/adapters.py runs without data and trains nothing twice; its page says what its rows say."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("adapters")


@pytest.fixture
def page(recipe):
    return sys.modules["adapters_page"]


@pytest.mark.slow
def test_without_data_it_trains_its_vit_runs_and_trains_nothing_twice(recipe, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recipe, "METHODS", {"lora": "lora:4", "adaptformer": "adaptformer:64"})
    monkeypatch.setattr(recipe, "BESIDE", {"linear": "linear"})
    out = tmp_path / "page.md"
    folders = ["--rows", str(tmp_path / "rows"), "--results", str(tmp_path / "runs"), "--beside", str(tmp_path)]
    recipe.main(["--smoke", *folders, "--out", str(out)])
    assert "7 trainings are there" in capsys.readouterr().out
    text = out.read_text(encoding="utf-8")
    assert "not finished" not in text
    assert (tmp_path / "page" / "trade-off.svg").read_text(encoding="utf-8").startswith("<?xml")
    rows = recipe.read_table(tmp_path / "rows", "noise").trainings
    assert {(row.model, row.variant) for row in rows} == {
        ("vit_d96", "lora"), ("vit_d96", "lora + repsim"), ("vit_d96", "adaptformer"), ("vit_d96", "adaptformer + repsim"),
        ("vit_d96", "linear"), ("resnet20", "lora"), ("resnet20", "lora + repsim"),
    }  # fmt: skip
    trained = {row.variant: row.num_trained for row in rows if row.model == "vit_d96"}
    head = 2 * 96 + 2
    assert trained["linear"] == head
    assert trained["lora"] == trained["lora + repsim"] == 6 * 2 * 4 * (96 + 96) + head  # q and v of six blocks
    assert trained["adaptformer"] == 6 * (64 * 96 + 64 + 96 * 64 + 96) + head
    shutil.rmtree(tmp_path / "runs")  # as where only the tables were copied
    kept = recipe.read_table(tmp_path / "rows", "noise")
    replace(kept, trainings=tuple(row for row in rows if row.variant != "linear")).write(tmp_path / "rows", "noise")
    recipe.main(["--smoke", *folders, "--variants", "linear"])
    again = recipe.read_table(tmp_path / "rows", "noise").trainings
    assert {(row.key, row.accuracy, row.cka) for row in again} == {(row.key, row.accuracy, row.cka) for row in rows}
    recipe.main(["--smoke", *folders, "--out", str(out)])
    text = out.read_text(encoding="utf-8")
    trainings = sys.modules["study_trainings"]
    monkeypatch.setattr(trainings, "tune", lambda *_, **__: pytest.fail("a finished training was made again"))
    recipe.main(["--smoke", *folders, "--out", str(out)])
    assert out.read_text(encoding="utf-8") == text


def test_adaptformer_full_and_linear_are_trained_on_the_vit_alone(recipe):
    asked = recipe.parse_arguments(["--smoke", "--rows", "elsewhere"])
    asked.smoke = False
    specs = [SimpleNamespace(name=f"{name} · x") for name in (recipe.VIT_NAME, "mobilenetv1_050", "mobilenetv2_035")]
    jobs = list(recipe.jobs(recipe.MEDICAL_TARGETS, specs, asked))
    assert len(jobs) == recipe.wanted(recipe.MEDICAL_TARGETS, asked) == 3 * 3 * (8 + 2 * 4)
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)
    others = {job.variant for job in jobs if job.spec is not specs[0]}
    assert others == {"lora", "lora + repsim", "partial-3", "partial-3 + repsim"}
    assert {job.options.get("image_size") for job in jobs if job.spec is specs[0]} == {32}
    assert {job.options.get("image_size") for job in jobs if job.spec is not specs[0]} == {None}
    settings = {recipe_settings(job, asked) for job in jobs if job.target.name == "breastmnist" and job.variant == "full"}
    assert settings == {"batch_size=64 epochs=15 method=full side=32"}


def recipe_settings(job, asked):
    return sys.modules["study_trainings"].settings_of(job, asked)


def row_of(model, variant, seed, **fields):
    rows = sys.modules["study_rows"]
    known = {"settings": "s", "versions": "v", "cpu_seconds": 10.0, "seconds": 8.0, "best_epoch": 3}
    return rows.TrainingRow(**{**known, "model": model, "variant": variant, "seed": seed, **fields})


def test_the_page_sets_the_vit_beside_the_paper_and_orders_the_variants(page):
    table = sys.modules["study_rows"].Table
    made = [
        row_of(
            model, variant, seed, accuracy=0.5 + 0.1 * place + 0.01 * seed, cka=0.9 - 0.2 * place, cka_debiased=0.8,
            balanced_accuracy=0.5, auc=0.5, num_trained=10 * (1 + place), num_parameters=400, cpu_seconds=10.0 * (1 + place),
        )
        for model in ("vit", "net")
        for place, variant in enumerate(("lora", "lora + repsim"))
        for seed in (0, 1)
    ]  # fmt: skip
    beside = {"a": table((row_of("net", "full", 0, accuracy=0.25, cka=0.125), row_of("net", "scratch", 0)))}
    whole = page.with_rows_beside({"a": table(tuple(made))}, beside, "vit")
    assert [row.variant for row in whole["a"].trainings if row.model == "net"][-1] == "full"
    natural = table((row_of("vit", "scratch", 0, accuracy=0.5, num_parameters=1234567, seconds=1200.0),))
    text = page.page_of(whole, natural, titles={"a": "Set A"}, vit="vit", figure="f.svg")
    assert "1,234,567 parameters" in text
    assert "20 minutes" in text
    of_vit, of_net = text.partition("## The MobileNets")[::2]
    line = next(line for line in of_vit.splitlines() if line.startswith("| lora + repsim | 73.74 | 0.865 |"))
    assert line.startswith("| lora + repsim | 73.74 | 0.865 | 0.605 [")
    assert line.endswith("| 5.0 % | – |")
    assert "| full | – | – | 0.250 |" in of_net
    assert "| lora + repsim | lora | CKA | – | – | 0 of 2 | Table 4: 0.865 and 0.847 |" in text
    assert "| lora + repsim | lora | Accuracy | – | – | 2 of 2 | Table 4: 73.74 and 73.34 |" in text
