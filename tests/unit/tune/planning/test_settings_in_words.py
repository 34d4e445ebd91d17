"""Every choice in force has its line, and what is off has none."""

import pytest

from crossgraft.tasks import MultiClass
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.choices import choose_plugins
from crossgraft.tune.planning.settings_in_words import settings_in_words


def words(settings=None, **choices):
    alone = {
        "task": MultiClass(), "method": "full", "regularizer": (), "batch_transform": (), "augmentation": "none",
        "flip": True, "loss": None, "class_weights": None, "sampler": "shuffle",
    }  # fmt: skip
    plugins = choose_plugins(**{**alone, **choices})
    return settings_in_words(plugins, TrainerSettings(**(settings or {})), SelectionRule("auc", "max"))


def test_what_is_off_is_left_out():
    plain = words()
    assert plain["learning rate"] == "0.0001"
    assert plain["schedule"] == "cosine after 5 epochs of warm-up"
    assert not {"mirroring", "regularizer", "layer decay", "head first", "accumulate", "patience"} & set(plain)


def test_several_plugins_of_a_slot_stand_together():
    assert words(batch_transform="mixup:0.2,cutmix")["batch transform"].count(" + ") == 1


@pytest.mark.parametrize(
    ("settings", "line", "text"),
    [
        ({"head_learning_rate": 0.01}, "learning rate", "0.0001 (head 0.01)"),
        ({"num_processes": 2, "device": "cuda"}, "device", "cuda × 2"),
        ({"layer_decay": 0.8}, "layer decay", "0.8"),
        ({"head_first": True, "head_epochs": 7}, "head first", "at most 7 epochs, patience 10"),
        ({"accumulate": 4}, "accumulate", "4"),
        ({"patience": 3}, "patience", "3"),
    ],
)
def test_what_is_on_has_a_line(settings, line, text):
    assert words(settings)[line] == text


def test_mirroring_is_said_where_images_are_changed():
    assert words(augmentation="light")["mirroring"] == "yes"
    assert words(augmentation="light", flip=False)["mirroring"] == "no"
