"""What the trainer is given, what it says while it works, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from crossgraft.losses import Loss
from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.gradient_norms import GradientNorms
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.protocols import FeatureTransform, Objective, Regularizer, Selection

PhaseName = Literal["head", "all"]


@runtime_checkable
class StepBatch(Protocol):
    """One batch of all processes together, prepared, augmented and mixed."""

    @property
    def rows(self) -> Int[Tensor, " batch"]:
        """Row of the training set of each image."""
        ...

    @property
    def images(self) -> Float[Tensor, "batch channels height width"]:
        """What the network sees."""
        ...

    @property
    def targets(self) -> Float[Tensor, "batch num_classes"]:
        """One row per image, over classes or labels."""
        ...

    @property
    def domains(self) -> Int[Tensor, " batch"] | None:
        """Domain of each image, from 0; None: nobody said."""
        ...


@runtime_checkable
class Feed(Protocol):
    """Batches that are a pure function of the epoch and the step, so that a resumed run sees the same ones."""

    @property
    def steps_per_epoch(self) -> int:
        """Batches of one epoch."""
        ...

    def batches(self, epoch: int, *, start: int = 0) -> Iterator[StepBatch]:
        """The batches of ``epoch`` from number ``start`` on."""
        ...


@dataclass(frozen=True)
class StepReport:
    """Said after each step.

    Attributes:
        phase: ``head`` while the head is trained alone first, else ``all``.
        epoch: From 0.
        step: Steps done in this phase.
        total_steps: Steps of this phase if it does not stop early.
        terms: ``loss`` (the sum), ``task`` (the plain mean) and ``<objective or regulariser>/<term>``, of the whole batch.
        learning_rate: Learning rate of the head in this step.
        images_per_second: Throughput of all processes together, since this process began.
        seconds_left: Until ``total_steps``, at the rate so far.
    """

    phase: PhaseName
    epoch: int
    step: int
    total_steps: int
    terms: Mapping[str, float]
    learning_rate: float
    images_per_second: float
    seconds_left: float


@dataclass(frozen=True)
class TrainedEpoch:
    """One row of the learning curves.

    Attributes:
        phase: As in ``StepReport``.
        epoch: From 0.
        learning_rate: Learning rate of the head in the last step.
        terms: Mean over the images of the epoch, names as in ``StepReport``.
        metrics: What the evaluation found after the epoch.
        seconds: Duration of training and evaluation; after a resume, of the part since then.
        is_best: Whether the selection rule prefers this epoch to all before it in its phase; with a similarity to keep, to those
            since training came near it.
    """

    phase: PhaseName
    epoch: int
    learning_rate: float
    terms: Mapping[str, float]
    metrics: Mapping[str, float]
    seconds: float
    is_best: bool


OnStep = Callable[[StepReport], None]
OnEpoch = Callable[[TrainedEpoch], None]
Evaluate = Callable[[Classifier], Mapping[str, float]]
"""Metrics by name on the selection rows; the network comes in eval mode, without gradients."""


@dataclass(frozen=True)
class TrainingJob:
    """One network to train: everything that decides the result. With several processes, all of it is pickled."""

    classifier: Classifier
    feed: Feed
    selection: Selection
    loss: Loss
    regularizers: tuple[Regularizer, ...]
    evaluate: Evaluate
    rule: SelectionRule
    settings: TrainerSettings
    checkpoint_folder: Path | None = None
    gradient_norms_file: Path | None = None
    features_are_fixed: bool = False
    keep: Keep | None = None
    stop_rule: SelectionRule | None = None
    objective: Objective | None = None
    num_domains: int = 1
    feature_transforms: tuple[FeatureTransform, ...] = ()
    configuration: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class TrainingResult:
    """How the training went; the chosen weights are in the classifier.

    Attributes:
        history: One row per epoch, of the head's phase first where there is one.
        best_epoch: Epoch of the phase ``all`` whose weights were kept.
        best_value: Value of the rule's metric there; nan where it was never defined.
        rule: What picked it.
        stopped_early: Whether the patience ended before the epochs did.
        resumed: Whether the run began from a checkpoint.
        gradient_norms: Norms of the steps of the phase ``all``; None where they were not asked for.
    """

    history: tuple[TrainedEpoch, ...]
    best_epoch: int
    best_value: float
    rule: SelectionRule
    stopped_early: bool
    resumed: bool
    gradient_norms: GradientNorms | None = None
