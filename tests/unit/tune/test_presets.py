"""A published training by its name: the numbers of its text, and nothing that contradicts them."""

from pathlib import Path

import numpy as np
import pytest

from crossgraft import compare_fine_tunings, fine_tune
from crossgraft.choice import choose
from crossgraft.data import dataset_from_arrays
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._values import checked
from crossgraft.tune.options import CompareOptions, TuneOptions
from crossgraft.tune.presets import PRESETS, settings_of
from crossgraft.tune.presets.repsim import _WAYS

ZOO = Path(__file__).parents[3] / "studies" / "zoo" / "random.yaml"
EVERY = (
    [f"repsim:{way}" for way in _WAYS]
    + ["itm_ground_truth"]
    + [f"sim_cifar:{data}" for data in ("cifar10", "cifar100", "svhn")]
    + [f"sim_cub:{network}" for network in ("resnet50", "swin")]
    + ["thesis:3", "thesis:4"]
    + [f"thesis_grid:batch_sizes={sizes}" for sizes in ("[32,64]", "[64,128]", "[128,256]")]
)
"""Every preset with every value of its option."""


def options_of_preset(preset, **others):
    return checked(TuneOptions, {"model": "test_resnet", "preset": preset, **others})


@pytest.mark.parametrize("preset", EVERY)
def test_every_setting_is_an_option_with_a_value_that_it_may_have(preset):
    options = options_of_preset(preset)
    for name, value in settings_of(preset).items():
        found = getattr(options, name)
        assert (tuple(found) if isinstance(found, list) else found) == value


def test_every_preset_is_tried():
    assert {choice.partition(":")[0] for choice in EVERY} == {name for name, each in PRESETS if each.command == "tune"}


# What the texts say, written down again by hand: RepSim appendix A; ITM 4.1; SIM appendix E; thesis 3.4.2, 4.2.2, 6.4
SAID = {
    "repsim": {"learning_rate": 6e-4, "batch_size": 128, "epochs": 50, "regularizer": "repsim:preset=paper", "image_size": 224},
    "repsim:lora": {"method": "lora:r=4", "regularizer": (), "epochs": 50},
    "itm_ground_truth": {"optimizer": "adamw", "grid": ["learning_rate=1e-5,2e-5,5e-5", "weight_decay=1e-2,1e-4"]},
    "sim_cifar": {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 1e-4, "epochs": 200},
    "sim_cifar:cifar100": {"weight_decay": 5e-4, "schedule": "step:at=[60,120,160],factor=0.2", "batch_size": 128},
    "sim_cub": {"learning_rate": 0.01, "weight_decay": 5e-4, "nesterov": True, "epochs": 100, "batch_size": 64},
    "sim_cub:swin": {"optimizer": "adamw", "learning_rate": 5e-6, "clip_norm": 5, "weight_decay": 5e-4},
    "thesis": {"optimizer": "adam", "learning_rate": 1e-5, "dropout": 0.5, "patience": 30, "select_by": "loss", "folds": 5},
    "thesis:4": {"epochs": 200, "folds": None, "augmentation": "thesis:4"},
    "thesis_grid": {"epochs": 400, "patience": 50, "stop_by": "auc", "select_by": "loss", "per_class": 100, "val_per_class": 25},
}


@pytest.mark.parametrize(("preset", "said"), SAID.items(), ids=SAID)
def test_numbers_are_those_of_the_text(preset, said):
    options = options_of_preset(preset)
    found = {name: getattr(options, name) for name in said}
    assert {name: list(value) if isinstance(value, tuple) and value else value for name, value in found.items()} == said


def test_a_preset_of_another_command_is_refused():
    with pytest.raises(UsageError, match=r"sim_few_shot is for crossgraft fewshot\. Those of crossgraft tune are repsim, "):
        options_of_preset("sim_few_shot")
    with pytest.raises(UsageError, match=r"repsim is for crossgraft tune\. Those of crossgraft fewshot are sim_few_shot"):
        settings_of("repsim", command="fewshot")


def test_others_may_be_added_and_none_is_changed():
    assert options_of_preset("thesis:4", head_first=True, learning_rate=0.00001).head_first
    message = r"--preset sim_cifar stands for --optimizer sgd, and --optimizer adamw is given\. Leave one of them out"
    with pytest.raises(UsageError, match=message):  # though adamw is what --optimizer is without a word
        options_of_preset("sim_cifar", optimizer="adamw")
    with pytest.raises(UsageError, match=r"--grid learning_rate=1e-5,2e-5,5e-5 weight_decay=1e-2,1e-4, and --grid momentum"):
        checked(CompareOptions, {"model": "a", "compare": "full", "preset": "itm_ground_truth", "grid": ["momentum=0,0.9"]})


@pytest.mark.parametrize(
    "preset", ["sim_cifra", "sim_cifar:mnist", "thesis:6", "thesis_grid:batch_sizes=[8,16]", "repsim:depth=2"]
)
def test_what_is_no_preset_is_refused(preset):
    with pytest.raises((UnknownNameError, UsageError)):
        options_of_preset(preset)


@pytest.mark.parametrize(
    ("preset", "model", "reason"),
    [
        ("sim_cifar", "test_vit", "a training of convolutional networks, and this network is none"),
        ("sim_cub", "test_vit", r"is for a convolutional network, and this is another kind\. Say sim_cub:swin"),
        ("sim_cub:swin", "test_resnet", r"is for no convolutional network, and this is another kind\. Say sim_cub:resnet50"),
    ],
)
def test_another_kind_of_network_is_refused(preset, model, reason):
    with pytest.raises(UsageError, match=reason):
        fine_tune("digits", model=f"{ZOO}:{model}", preset=preset, limit=100, plan=True)


@pytest.mark.parametrize(("preset", "name"), [("sim_cifar", "method"), ("repsim", "regularizer"), ("thesis:3", "folds")])
def test_a_comparison_is_refused_with_the_preset_and_not_with_an_option_that_nobody_typed(preset, name):
    message = rf"--preset {preset} does not go with --compare: it stands for --{name}, too\. .*\(crossgraft list presets\)"
    with pytest.raises(UsageError, match=message):
        compare_fine_tunings("digits", compare="full,linear", model=f"{ZOO}:test_resnet", preset=preset, plan=True)


def test_the_plan_says_what_is_done_otherwise_and_counts_every_point():
    images = np.random.default_rng(0).integers(0, 256, (520, 16, 16), dtype=np.uint8)
    data = dataset_from_arrays(images, np.arange(520) % 2)
    plan = fine_tune(data, model=f"{ZOO}:test_resnet", preset="thesis_grid", plan=True).plan
    assert plan.record.num_jobs == 6 * 5 * 2 * 2
    assert plan.record.num_train == 100 * 2 and plan.record.num_val == 25 * 2
    text = plan.summary()
    assert "preset         thesis_grid" in text
    assert f"--preset thesis_grid: {choose(PRESETS, 'thesis_grid').differs}" in text
    assert "learning_rate 1, 0.1, 0.01, 0.001, 0.0001, 1e-05" in text and "momentum 0.9, 0" in text
    assert "sgd, momentum 0.9 or sgd, momentum 0" in text
