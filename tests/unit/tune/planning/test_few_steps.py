"""Settings of trainings with few steps beside statistics of BatchNorm that stay."""

import pytest

from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.batch_norm import ENOUGH_STEPS, for_few_steps


@pytest.mark.parametrize(("num_steps", "rate"), [(99, 9.9e-4), (50, 5e-4), (10, 1e-4), (1, 1e-5)])
def test_the_head_comes_first_and_the_fewer_the_steps_the_smaller_they_are(num_steps, rate):
    found = for_few_steps(TrainerSettings(learning_rate=1e-3), num_steps)
    assert found.head_first and (found.learning_rate, found.head_learning_rate) == (pytest.approx(rate), 1e-3)
    given = for_few_steps(TrainerSettings(learning_rate=1e-3, head_learning_rate=0.3), num_steps)
    assert (given.learning_rate, given.head_learning_rate) == (pytest.approx(rate), 0.3)


def test_enough_steps_change_nothing():
    usual = TrainerSettings(epochs=3, optimizer="sgd")
    assert for_few_steps(usual, ENOUGH_STEPS) == for_few_steps(usual, 10**6) == usual
