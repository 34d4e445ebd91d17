"""Settings without meaning are refused by name."""

import pytest

from crossgraft.errors import UsageError
from crossgraft.tune.engine.settings import TrainerSettings


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"batch_size": 0},
        {"learning_rate": -1.0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"head_learning_rate": -1.0},
        {"weight_decay": -0.1},
        {"momentum": 1.0},
        {"layer_decay": 0.0},
        {"accumulate": 0},
        {"clip_norm": 0.0},
        {"patience": 0},
        {"checkpoint_every_steps": 0},
        {"num_processes": 0},
    ],
)
def test_refused(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong)).replace("_", ".")):
        TrainerSettings(**wrong)


@pytest.mark.parametrize(
    ("name", "value", "nearest"), [("optimizer", "adamx", "adam"), ("schedule", "cosin", "cosine"), ("precision", "16-mix", "16")]
)
def test_the_message_gives_the_nearest_name(name, value, nearest):
    settings = TrainerSettings()
    object.__setattr__(settings, name, value)  # the type checker of the tests refuses it in the constructor
    with pytest.raises(UsageError, match=f"{value}.*Did you mean {nearest}"):
        settings.__post_init__()
