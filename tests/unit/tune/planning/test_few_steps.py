"""Learning rates of trainings with few steps beside statistics of BatchNorm that stay."""

import pytest

from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.few_steps import ENOUGH_STEPS, rates_of_few_steps


def rates(num_steps, **given):
    found = rates_of_few_steps(TrainerSettings(learning_rate=1e-3, **given), num_steps)
    return found.learning_rate, found.head_learning_rate


@pytest.mark.parametrize(
    ("num_steps", "rate", "of_head"), [(50, 5e-4, 2e-3), (25, 2.5e-4, 4e-3), (10, 1e-4, 1e-2), (2, 2e-5, 1e-2)]
)
def test_the_fewer_the_steps_the_smaller_are_those_of_the_body_and_the_larger_those_of_the_head(
    num_steps, rate, of_head
):
    assert rates(num_steps) == (pytest.approx(rate), pytest.approx(of_head))
    assert rates(num_steps, head_learning_rate=0.3) == (pytest.approx(rate), 0.3)


def test_enough_steps_change_nothing_and_nothing_jumps_there():
    usual = TrainerSettings(epochs=3, optimizer="sgd")
    assert rates_of_few_steps(usual, ENOUGH_STEPS) == rates_of_few_steps(usual, 10**6) == usual
    assert rates(ENOUGH_STEPS - 1) == (pytest.approx(1e-3, rel=0.02), pytest.approx(1e-3, rel=0.02))
    assert rates(ENOUGH_STEPS) == (1e-3, None)
