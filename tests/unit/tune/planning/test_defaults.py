"""Arguments of the command become settings of the trainer."""

import pytest

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.tasks import BinaryTask
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.choices import PRECISIONS, choose_plugins, trainer_settings


def settings(**given):
    options = TuneOptions(model="test_resnet", **{"device": "cpu", **given})
    return trainer_settings(options, choose_plugins(options, BinaryTask()), num_train=100, num_parameters=1000)


@pytest.mark.parametrize("name", [*PRECISIONS, *PRECISIONS.values()])
def test_number_types_have_short_and_long_names(name):
    assert settings(precision=name).precision == PRECISIONS.get(name, name)


def test_what_is_given_is_kept_under_its_name():
    found = settings(epochs=3, head_first=True, head_patience=4, devices=2, checkpoint_every=9, seed=5)
    assert (found.epochs, found.head_first, found.head_patience) == (3, True, 4)
    assert (found.num_processes, found.checkpoint_every_steps, found.seed, found.device) == (2, 9, 5, "cpu")


def test_what_has_no_meaning_is_refused():
    with pytest.raises(UnknownNameError, match=r"precision: bf61.*Did you mean bf16"):
        settings(precision="bf61")
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="learning_rate must"):
            settings(learning_rate=rate)
