"""Learning rates of a training that has few steps beside statistics of BatchNorm that stay."""

from __future__ import annotations

from dataclasses import replace

from crossgraft.tune.engine.settings import TrainerSettings

ENOUGH_STEPS = 100
"""Steps from which on a network mends what steps of the usual size have broken."""
MOST_OF_HEAD = 10.0
"""Largest factor of the head's learning rate in fewer."""


def rates_of_few_steps(settings: TrainerSettings, num_steps: int) -> TrainerSettings:
    """Settings of a training of ``num_steps`` whose learning rates nobody asked for, beside a regulariser that keeps features.

    With s = ``num_steps`` / 100, where that is below 1, the pretrained part has s times its learning rate, and a head that was
    given none of its own 1 / s times what it would have had, at most ten times.

    Why: AdamW changes each weight by about its learning rate, however small the gradient is. BatchNorm in training mode takes
    out what that does to mean and scale of activations; kept statistics do not. And a regulariser that compares with the
    start pulls at nothing while features still are those of the start. So the first ten steps of the usual size take away
    similarity and accuracy, and about a hundred bring them back. Smaller steps leave the features as they came, and then the
    head has to learn the task, in as few steps. docs/results/repsim.md says what that was measured on.
    """
    share = num_steps / ENOUGH_STEPS
    if share >= 1:
        return settings
    usual, of_head = settings.learning_rate, settings.head_learning_rate
    if of_head is None:
        of_head = usual * min(1 / share, MOST_OF_HEAD)
    return replace(settings, learning_rate=usual * share, head_learning_rate=of_head)


def about_few_steps(usual: float) -> str:
    """For the plan, with the learning rate of longer trainings."""
    return (
        f"In fewer than {ENOUGH_STEPS} steps with statistics of BatchNorm that stay, a network cannot mend what steps of the "
        f"usual size break: the learning rate of its pretrained part is {usual:g} × steps / {ENOUGH_STEPS}, that of the head "
        f"{usual:g} × {ENOUGH_STEPS} / steps, at most {usual * MOST_OF_HEAD:g}. --learning-rate sets one for both."
    )
