import os
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from crossgraft.demo.toy_zoo import FAMILIES, build_zoo, default_cache_dir, factory_of
from crossgraft.demo.training import TrainingRecipe
from crossgraft.models import load_backbone, read_zoo
from crossgraft.progress import Reporter
from crossgraft.rank.zoo import with_controls

TOYS = [factory_of(family) for family in FAMILIES]
RECIPE = TrainingRecipe(steps=2, batch_size=16, learning_rate=1e-3)


@pytest.fixture
def build(source_tasks, pool, tmp_path):
    def call(**options):
        arguments = {"cache_dir": tmp_path, "recipe": RECIPE, "reporter": Reporter(quiet=True)} | options
        return build_zoo(arguments.pop("tasks", source_tasks), pool=pool, **arguments)

    return call


def test_twelve_models_of_two_families_are_ranked_with_their_own_controls(build):
    members = with_controls(read_zoo(build(), allow_code=TOYS))
    names = [member.spec.name for member in members]
    assert len(names) == len(set(names)) == 12
    assert [member.spec.name for member in members if member.role == "random weights"] == [
        "toy CNN · random weights",
        "toy ViT · random weights",
    ]
    assert {member.spec.family for member in members} == {"toy CNN", "toy ViT"}


def test_every_model_loads_with_the_weights_that_were_saved(build):
    zoo = build()
    for spec in read_zoo(zoo, allow_code=TOYS):
        backbone = load_backbone(spec)
        assert backbone.num_source_classes == spec.kwargs["num_classes"]
        if spec.has_checkpoint:
            saved = load_file(spec.weights)
            assert all(torch.equal(saved[name], value) for name, value in backbone.module.state_dict().items())


def test_models_differ_though_they_start_from_one_seed(build):
    fingerprints = [load_backbone(spec).weights_fingerprint for spec in read_zoo(build(), allow_code=TOYS)]
    assert len(set(fingerprints)) == 12


def test_a_second_call_makes_nothing(build, pool):
    first = build()
    assert len(pool.jobs) == 10
    assert build() == first
    assert len(pool.jobs) == 10


def test_only_what_is_missing_is_made_again_and_is_the_same(build, pool):
    zoo = build()
    lost = zoo.parent / "toy-vit-photo-patches.safetensors"
    before = lost.read_bytes()
    lost.unlink()
    build()
    assert [job.path for job in pool.jobs[10:]] == [lost]
    assert lost.read_bytes() == before


def test_families_can_be_left_out_without_losing_the_others(build, pool):
    small = build(families=FAMILIES[:1])
    assert len(read_zoo(small, allow_code=TOYS)) == 6
    full = build()
    assert full.parent == small.parent
    assert len(pool.jobs) == 10
    assert small.is_file()


def test_another_recipe_seed_or_source_is_another_zoo(build, source_tasks):
    shifted = [replace(source_tasks[0], images=source_tasks[0].images + 1), *source_tasks[1:]]
    folders = {
        build(families=FAMILIES[:1], **options).parent
        for options in ({}, {"seed": 1}, {"recipe": replace(RECIPE, steps=1)}, {"tasks": shifted})
    }
    assert len(folders) == 4


def test_nothing_but_whole_files_is_left(build):
    names = sorted(path.name for path in build().parent.iterdir())
    assert len(names) == 11
    assert all(name.endswith((".safetensors", ".yaml")) and name.isascii() for name in names)


def test_the_cache_is_where_the_environment_says(monkeypatch):
    monkeypatch.setenv("CROSSGRAFT_CACHE", "somewhere")
    assert os.fspath(default_cache_dir()) == "somewhere"
    monkeypatch.delenv("CROSSGRAFT_CACHE")
    assert "crossgraft" in os.fspath(default_cache_dir())
