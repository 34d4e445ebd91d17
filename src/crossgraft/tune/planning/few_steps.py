"""A training that has few steps beside statistics of BatchNorm that stay: its head first, and smaller steps of the rest."""

from __future__ import annotations

from dataclasses import replace

from crossgraft.tune.engine.settings import TrainerSettings

ENOUGH_STEPS = 100
"""Steps from which on a network mends what steps of the usual size have broken."""


def for_few_steps(settings: TrainerSettings, num_steps: int) -> TrainerSettings:
    """Settings of a training of ``num_steps`` whose learning rate nobody asked for, beside a regulariser that keeps features.

    Below 100 steps the head is trained alone first, on features that are computed once; then the pretrained part has
    ``num_steps`` / 100 of its learning rate, and the head all of it.

    Why: AdamW changes each weight by about its learning rate, however small the gradient is. BatchNorm in training mode takes
    out what that does to mean and scale of activations; kept statistics do not. And a regulariser that compares with the
    start pulls at nothing while features still are those of the start. So the first ten steps of the usual size take away
    similarity and accuracy, and about a hundred bring them back. Smaller steps leave the features as they came, and then the
    head has to learn the task, for which so few steps are not enough. docs/results/repsim.md says what that was measured on.
    """
    if num_steps >= ENOUGH_STEPS:
        return settings
    usual, of_head = settings.learning_rate, settings.head_learning_rate
    return replace(
        settings,
        learning_rate=usual * num_steps / ENOUGH_STEPS,
        head_learning_rate=usual if of_head is None else of_head,
        head_first=True,
    )


def about_few_steps(usual: float) -> str:
    """For the plan, with the learning rate of longer trainings."""
    return (
        f"In fewer than {ENOUGH_STEPS} steps with statistics of BatchNorm that stay, a network cannot mend what steps of the "
        f"usual size break: the head is trained alone first, then the pretrained part with a learning rate of {usual:g} × steps "
        f"/ {ENOUGH_STEPS}. --learning-rate sets another one, without a first phase."
    )
