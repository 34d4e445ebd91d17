"""The ablations of recipes/repsim.py: one thing is changed at a time, and pairs share network and seed."""

import sys
from types import SimpleNamespace

import pytest


@pytest.fixture
def recipe(load_recipe):
    return load_recipe("repsim")


def row(model, variant, seed, **fields):
    known = {"settings": "s", "versions": "v", **fields}
    return sys.modules["study_rows"].TrainingRow(model=model, variant=variant, seed=seed, **known)


def asked_for(recipe, *more):
    asked = recipe.parse_arguments(["--smoke", "--rows", "elsewhere", *more])
    asked.smoke = False
    specs = [SimpleNamespace(name=f"{name} · x") for name in ("vit_d96", "resnet20", "mobilenetv2_035", "mobilenetv2_100")]
    return list(recipe.ablation_jobs(specs, asked))


def test_one_thing_is_changed_at_a_time(recipe):
    jobs = asked_for(recipe)
    assert len({(job.spec.name, job.variant, job.seed) for job in jobs}) == len(jobs) == (4 + 4 + 3) * 2 * 3
    options = {(job.spec.name, job.variant): job.options for job in jobs}
    assert options["vit_d96 · x", "paper, fixed Q"] == {"regularizer": "repsim:preset=paper,learn_q=false", "image_size": 32}
    assert options["resnet20 · x", "batch, frozen, batches of 4"] == {
        "regularizer": "repsim:reference=batch", "batch_size": 4, "batch_norm": "frozen", "image_size": 32,
    }  # fmt: skip
    assert "mobilenetv2_100 · x" not in {name for name, _ in options}
    assert [job.seed for job in jobs] == sorted(job.seed for job in jobs)


def test_pieces_can_be_asked_for(recipe):
    assert asked_for(recipe, "--only", "breastmnist") == []
    (job,) = asked_for(recipe, "--only", "ablations", "--variants", "paper, with μ", "--seeds", "2")
    assert (job.target.file, job.target.name, job.seed) == ("breastmnist.npz", "ablations", 2)


def test_the_study_itself_is_what_ablations_are_compared_with(recipe):
    """Differences of made-up trainings: network and seed are paired, the ViT apart from networks with BatchNorm."""
    rows, module = sys.modules["study_rows"], sys.modules["repsim_ablations"]
    base = [
        row(model, variant, seed, accuracy=0.8 + seed / 100, cka_debiased=0.6)
        for model, variant in (("vit_d96", "paper"), ("resnet20", "paper, frozen"), ("mobilenetv2_100", "paper, frozen"))
        for seed in range(2)
    ]
    changed = [
        row("vit_d96", "paper, fixed Q", 0, accuracy=0.78, cka_debiased=0.5),
        row("vit_d96", "paper, fixed Q", 1, accuracy=0.79, cka_debiased=0.5),
        row("vit_d96", "paper, batches of 4", 0, accuracy=0.9, cka_debiased=0.7),
        row("resnet20", "paper, frozen, with μ", 0, accuracy=0.79, cka_debiased=0.8),
        row("resnet20", "paper, frozen, with μ", 1, accuracy=0.79, cka_debiased=0.8),
        row("resnet20", "paper, frozen, fixed Q", 0, state="diverged: step 3"),
        row("resnet20", "paper, frozen, fixed Q", 1, accuracy=0.79, cka_debiased=0.8),
    ]
    lines = module.ablations_table(rows.Table(tuple(changed)), rows.Table(tuple(base))).splitlines()[2:]
    assert len(lines) == 2
    assert lines[0].startswith(
        "| LayerNorm (ViT) | paper | learned Q − fixed Q | +2.00 [+2.00, +2.00] | +0.100 [+0.100, +0.100] |"
    )
    assert lines[0].endswith("| 2 of 2 | +0.40, +0.04 | holds |")
    assert lines[1].startswith("| BatchNorm, frozen | paper | without μ − with μ | +1.50 [") and "the opposite shows" in lines[1]
    assert module.ablations_table(rows.Table(), rows.Table(tuple(base))) == "Not trained yet."
