"""What BatchNorm normalises with while a network is trained: chosen before the first step, and said in the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import get_args

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.geometry.batch_norm import BATCH_SIZE, batch_norms_of
from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import training_batch_norms, without_moving_statistics
from crossgraft.tune.options import BatchNormMode
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.protocols import AddsAdapters, Selection, freezes_batch_norm, keeps_reference
from crossgraft.words.formatting import counted, joined

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


_WHY_TRAIN = "the default, as without a regulariser"
"""Why beside a regulariser that compares with the start, too."""
_WHY_FROZEN = "the default beside {}: statistics that move change what it keeps"


@dataclass(frozen=True)
class BatchNorm:
    """What was decided.

    Attributes:
        mode: ``train``: the mean and variance of each batch, which move the kept ones; ``frozen``: the kept ones, as in
            evaluation; ``adapt``: as ``train``, from a network whose kept ones were estimated on the training images first.
        reason: Reason of it in words, where nobody asked for it.
        num_layers: Layers that it is about; 0: there is nothing to decide.
        idle_method: Name of the method, where it moves the statistics of none of them whatever the mode is.
        is_held: Whether statistics that the method would move stay beside a regulariser that keeps more then.
    """

    mode: BatchNormMode
    reason: str
    num_layers: int
    idle_method: str = ""
    is_held: bool = False

    @property
    def in_words(self) -> str:
        """For the plan."""
        if self.idle_method and self.mode == "train":
            return f"frozen ({self.idle_method} moves none)"
        return f"{self.mode} ({self.reason})" if self.reason else self.mode

    def notes(self, num_train: int) -> list[str]:
        """What the plan says about it."""
        if self.mode != "adapt" or not self.num_layers:
            return []
        layers = counted(self.num_layers, "BatchNorm layer")
        note = (
            f"Mean and variance of {layers} are estimated on the training images before the first step; that network is start "
            "and reference."
        )
        if num_train < BATCH_SIZE * 3 // 2:
            note += f" They come from one batch of {counted(num_train, 'image')}, and are noisy."
        return [note]


def choose_batch_norm(
    asked: BatchNormMode | None, plugins: Plugins, classifier: Classifier, selection: Selection
) -> tuple[BatchNorm, list[str]]:
    """The decision, and what the plan says where there is nothing to decide.

    Left open it is ``frozen`` beside a regulariser that keeps more then at the same accuracy (docs/results/repsim.md says of
    which that was measured), however long the training is, and otherwise ``train``. What few steps then are is decided in
    ``for_few_steps``.

    Raises:
        UnknownNameError: No mode has that name.
        UsageError: Random weights have no statistics that are worth keeping.
    """
    if asked is not None and asked not in get_args(BatchNormMode):
        raise UnknownNameError("mode of BatchNorm", str(asked), get_args(BatchNormMode))
    layers = batch_norms_of(classifier)
    if asked in ("frozen", "adapt") and plugins.method.starts_from_scratch:
        raise UsageError(
            f"--batch-norm {asked} is about the statistics of the pretrained network, but --method {plugins.method.name} "
            "replaces it by random weights. Leave one of them out."
        )
    if not layers:
        notes = [f"The network has no BatchNorm layers with kept statistics, so --batch-norm {asked} does nothing."]
        return BatchNorm("train", "", 0), notes if asked else []
    moving = set(training_batch_norms(classifier, selection)).intersection(layers)
    idle = "" if moving else plugins.method.name
    keepers = [each for each in plugins.regularizers if keeps_reference(each) and moving]
    freezing = [each.name for each in keepers if freezes_batch_norm(each)]
    if asked is not None:
        decided = BatchNorm(asked, "", len(layers), idle, is_held=asked == "frozen" and bool(freezing))
        return decided, _on_what_was_asked(asked, plugins, moves=bool(moving))
    if freezing:
        return BatchNorm("frozen", _WHY_FROZEN.format(joined(freezing)), len(layers), is_held=True), []
    return BatchNorm("train", _WHY_TRAIN if keepers else "", len(layers), idle), []


def _on_what_was_asked(asked: BatchNormMode, plugins: Plugins, *, moves: bool) -> list[str]:
    if asked == "adapt":
        beside_adapters = (
            "The estimated statistics are part of the saved model, but not of an adapter alone (export --format peft, "
            "--adapter): that is put into the pretrained network, which has other ones."
        )
        return [beside_adapters] if isinstance(plugins.method, AddsAdapters) else []
    idle = f"--method {plugins.method.name} keeps the statistics of BatchNorm as they are anyway."
    return [] if moves else [idle]


def selection_with(batch_norm: BatchNorm, classifier: Classifier, selection: Selection) -> Selection:
    """What is trained, in the modes that were decided."""
    return without_moving_statistics(classifier, selection) if batch_norm.mode == "frozen" else selection
