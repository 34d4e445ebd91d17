"""A phase from its first step, or from a checkpoint, to the best weights: epochs, evaluation, early stopping."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from crossgraft.compute import is_out_of_memory
from crossgraft.errors import DivergedError
from crossgraft.storage.atomic import write_atomically
from crossgraft.tune.engine.cached_features import FeatureFeed, HeadOnly, features_of, shows_plain_images
from crossgraft.tune.engine.checkpoint import damaged_checkpoint
from crossgraft.tune.engine.contract import Feed, OnEpoch, OnStep, PhaseName, StepBatch, StepReport, TrainedEpoch, TrainingJob
from crossgraft.tune.engine.gradient_norms import GradientLog
from crossgraft.tune.engine.optimizers import all_finite, make_optimizer, scheduled_rate
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import (
    Network,
    StepTerms,
    TrainingStep,
    apply_modes,
    apply_selection,
    close,
    head_alone,
    look_at,
    refuse_non_finite,
)
from crossgraft.tune.feed.batches import BatchMaker
from crossgraft.tune.protocols import LOOK_EVERY_STEPS, FeatureTransform, Objective, Regularizer, Selection


@runtime_checkable
class KeepsFeatures(Protocol):
    """An evaluation that can keep the features of its images while the trainer says that they do not change."""

    def keep_features(self, keep: bool) -> None:
        """From now on features are the same in every call (or no longer)."""
        ...


@dataclass(frozen=True)
class Phase:
    """One stretch of training with one choice of parameters, one optimiser and one schedule.

    Attributes:
        name: ``head`` or ``all``.
        selection: What is trained.
        regularizers: Whose terms are added; none while the head is trained alone.
        settings: Settings of this phase.
        keep: Similarity to end at; None in the head's phase, where features do not move.
        features_are_fixed: Whether features never change in it, and are computed once where the feed allows.
        objective: What is minimised; None: the mean of the task loss, as in the head's phase.
        feature_transforms: What is done to feature maps; none in the head's phase.
    """

    name: PhaseName
    selection: Selection
    regularizers: tuple[Regularizer, ...]
    settings: TrainerSettings
    features_are_fixed: bool
    keep: Keep | None = None
    objective: Objective | None = None
    feature_transforms: tuple[FeatureTransform, ...] = ()

    def feed_and_network(self, job: TrainingJob) -> tuple[Feed, nn.Module]:
        """What is fed into what: images into the whole network, or features into the head."""
        feed = job.feed
        as_is = self.name == "head" or shows_plain_images(feed)
        if (
            isinstance(feed, BatchMaker)
            and self.features_are_fixed
            and as_is
            and not self.regularizers
            and not self.feature_transforms
        ):
            size, device = self.settings.batch_size, feed.device
            features = features_of(job.classifier, feed.images, batch_size=size, device=device)
            return FeatureFeed(feed, features), HeadOnly(job.classifier, self.settings.dropout)
        return feed, Network(job.classifier, self.regularizers, self.settings.dropout)


def phases_of(job: TrainingJob) -> tuple[Phase, ...]:
    """The head's phase, where it is asked for, and the main one.

    The thesis trains the classification layer first with the settings of the rest, until the value on the selection rows
    stops getting better; ours has no warm-up and a constant learning rate, so that only the patience ends it.

    Raises:
        UsageError: The head is to be trained first, but nothing else is trained.
    """
    settings = job.settings
    main = Phase("all", job.selection, job.regularizers, settings, job.features_are_fixed, job.keep, job.objective)
    main = replace(main, feature_transforms=job.feature_transforms)
    if not settings.head_first:
        return (main,)
    of_head = replace(
        settings,
        epochs=settings.head_epochs,
        patience=settings.head_patience,
        min_epochs=1,
        schedule="constant",
        warmup_epochs=0.0,
        layer_decay=1.0,
    )
    return Phase("head", head_alone(job.selection), (), of_head, features_are_fixed=True), main


_GRADIENTS = "gradient norms"
"""Their name in checkpoints."""


@dataclass
class Progress:
    """Where a phase is; all of it goes into checkpoints.

    Attributes:
        epoch: The epoch that is under way, from 0.
        step: Steps done in it.
        sums: Sum of each term over the images of the epoch so far.
        images: Number of those images.
        best_epoch: -1 before the first evaluation.
        best_value: Value of the rule's metric in that epoch.
        best_watched: Best value so far of the metric that the patience looks at, where that is another one.
        epochs_without_better: For the patience.
        stopped_early: Whether the patience has ended.
        best_is_near: Whether that epoch is near the similarity to end at.
        scaler: State of the gradient scaler of float16.
    """

    epoch: int = 0
    step: int = 0
    sums: dict[str, float] = field(default_factory=dict[str, float])
    images: int = 0
    best_epoch: int = -1
    best_value: float = math.nan
    best_watched: float = math.nan
    epochs_without_better: int = 0
    stopped_early: bool = False
    best_is_near: bool = False
    scaler: dict[str, Any] = field(default_factory=dict[str, Any])


class _Made(NamedTuple):
    """A step that nobody has looked at."""

    terms: StepTerms
    num_images: int
    learning_rate: float


class PhaseRun:
    """Trains one phase.

    Args:
        fabric: Launched.
        job: What is trained.
        phase: The part of it.
        on_step: Called in the first process after each step.
        on_epoch: Called in the first process after each epoch, when its checkpoint is written.
        save: Called where a checkpoint is due, in all processes.
    """

    def __init__(
        self,
        fabric: Fabric,
        job: TrainingJob,
        phase: Phase,
        *,
        on_step: OnStep | None,
        on_epoch: OnEpoch | None,
        save: Callable[[], None],
    ) -> None:
        self.fabric, self.job, self.phase = fabric, job, phase
        self.on_step, self.on_epoch, self.save = on_step, on_epoch, save
        self.progress = Progress()
        self.history: list[TrainedEpoch] = []
        self.best: dict[str, Tensor] = {}
        apply_selection(job.classifier, phase.selection)
        logs = phase.settings.log_gradient_norms and phase.name == "all"  # the head alone has no blocks
        self.gradients = GradientLog(job.classifier, phase.selection) if logs else None
        self.feed, network = phase.feed_and_network(job)
        self.named = make_optimizer(job.classifier, phase.selection, phase.regularizers, phase.settings)
        module, optimizer = fabric.setup(network, self.named.optimizer)
        self.training_step = TrainingStep(
            fabric,
            module,
            optimizer,
            named=self.named,
            classifier=job.classifier,
            loss=job.loss,
            regularizers=phase.regularizers,
            settings=phase.settings,
            before_update=self._read_gradients,
            objective=phase.objective,
            num_domains=job.num_domains,
            feature_transforms=phase.feature_transforms,
        )
        self.rate = scheduled_rate(phase.settings, self.feed.steps_per_epoch)
        self._begun, self._begun_step, self._images_seen = time.perf_counter(), -1, 0
        self._look_every = phase.settings.look_every_steps or (1 if self.training_step.looks_first else LOOK_EVERY_STEPS)
        self._not_looked_at: list[_Made] = []

    def run(self) -> None:
        """Train until the epochs or the patience end; then put the chosen weights into the classifier.

        Raises:
            DivergedError: A loss, a gradient or a weight is not finite.
            UnknownNameError: The evaluation has no metric of the name that the rule asks for.
        """
        if isinstance(self.job.evaluate, KeepsFeatures):
            self.job.evaluate.keep_features(self.phase.features_are_fixed)
        while not (self.progress.stopped_early or self.progress.epoch >= self.phase.settings.epochs):
            started = time.perf_counter()
            apply_modes(self.job.classifier, self.phase.selection)
            self._train_epoch()
            self._end_epoch(started)
        self.job.classifier.load_state_dict(self.best, strict=False)
        self.job.classifier.eval()

    def _train_epoch(self) -> None:
        progress, every = self.progress, self.phase.settings.checkpoint_every_steps
        batches = self.feed.batches(progress.epoch, start=progress.step)
        try:
            for batch in batches:
                self._step(batch)
                # The last step of an epoch is saved after its evaluation.
                if every and progress.step % every == 0 and progress.step < self.feed.steps_per_epoch:
                    self._save()
        finally:
            close(batches)

    def _step(self, batch: StepBatch) -> None:
        progress = self.progress
        step = progress.epoch * self.feed.steps_per_epoch + progress.step
        self.named.set_learning_rate_share(self.rate.share(step))
        if self._begun_step < 0:
            self._begun_step = step
        try:
            terms = self.training_step.run(batch, step)
        except (RuntimeError, MemoryError) as error:
            if is_out_of_memory(error):
                raise self.phase.settings.no_memory from error
            if isinstance(error, DivergedError | torch.linalg.LinAlgError):  # pyright: ignore[reportPrivateImportUsage]
                self._look()  # what was not finite in an earlier step is the reason
            raise
        progress.step += 1
        progress.images += len(batch.rows)
        self._not_looked_at.append(_Made(terms, len(batch.rows), self.named.head_learning_rate))
        if len(self._not_looked_at) >= self._look_every:
            self._look()

    def _look(self) -> None:
        """Read the terms of the steps since the last look: the only time in an epoch at which anybody waits for the device.

        Raises:
            DivergedError: A step was not finite. Whatever is kept of a network is kept after a look.
        """
        made, self._not_looked_at = self._not_looked_at, []
        look_at([each.terms for each in made])
        if self.gradients is not None:
            self.gradients.look()
        for each in made:
            for name, value in each.terms.numbers.items():
                self.progress.sums[name] = self.progress.sums.get(name, 0.0) + value * each.num_images
            self._report(each)

    def _read_gradients(self) -> None:
        if self.gradients is not None:
            scaler = getattr(self.fabric._precision, "scaler", None)
            self.gradients.add(1.0 if scaler is None else scaler._get_scale_async())

    def _report(self, made: _Made) -> None:
        step = made.terms.step
        self._images_seen += made.num_images
        if self.on_step is None or self.fabric.global_rank != 0:
            return
        seconds = max(time.perf_counter() - self._begun, 1e-9)
        left = self.rate.steps.total - 1 - step
        self.on_step(
            StepReport(
                phase=self.phase.name,
                epoch=self.progress.epoch,
                step=step + 1,
                total_steps=self.rate.steps.total,
                terms=made.terms.numbers,
                learning_rate=made.learning_rate,
                images_per_second=self._images_seen / seconds,
                seconds_left=left * seconds / (step + 1 - self._begun_step),
            )
        )

    def _end_epoch(self, started: float) -> None:
        self._look()
        progress = self.progress
        metrics = self._evaluate()
        terms = {name: total / max(progress.images, 1) for name, total in progress.sums.items()}
        value = self._compared(self.job.rule, metrics, terms)
        best = progress.best_value if progress.best_epoch >= 0 else None
        keep = self.phase.keep
        is_near = keep is None or keep.is_near(metrics)
        is_best = is_near and (self.job.rule.is_better(value, best) or (keep is not None and not progress.best_is_near))
        progress.epochs_without_better = 0 if self._is_better(metrics, terms, is_best) else progress.epochs_without_better + 1
        if is_best or not is_near or self.job.rule.keep == "last":
            progress.best_epoch, progress.best_value, progress.best_is_near = progress.epoch, value, is_near
            self.best = {name: tensor.detach().to("cpu", copy=True) for name, tensor in self.moving().items()}
        row = TrainedEpoch(
            phase=self.phase.name,
            epoch=progress.epoch,
            learning_rate=self.named.head_learning_rate,
            terms=terms,
            metrics=metrics,
            seconds=time.perf_counter() - started,
            is_best=is_best,
        )
        self.history.append(row)
        progress.epoch, progress.step, progress.sums, progress.images = progress.epoch + 1, 0, {}, 0
        patience, done = self.phase.settings.patience, progress.epoch
        out_of_patience = patience is not None and progress.epochs_without_better >= patience
        progress.stopped_early = out_of_patience and self.phase.settings.min_epochs <= done < self.phase.settings.epochs
        self._write_gradient_norms()  # first, so that a checkpoint never knows of steps that the file lacks
        self._save()
        if self.on_epoch is not None and self.fabric.global_rank == 0:
            self.on_epoch(row)

    def _is_better(self, metrics: Mapping[str, float], terms: Mapping[str, float], is_best: bool) -> bool:
        """Whether the patience begins anew: with the best epoch so far, or by the metric that it looks at instead."""
        stop, progress = self.job.stop_rule, self.progress
        if stop is None:
            return is_best
        watched = self._compared(stop, metrics, terms)
        is_better = stop.is_better(watched, progress.best_watched if progress.epoch else None)
        if is_better:
            progress.best_watched = watched
        return is_better

    def _write_gradient_norms(self) -> None:
        path = self.job.gradient_norms_file
        if self.gradients is not None and path is not None and self.fabric.global_rank == 0:
            write_atomically(path, self.gradients.norms.csv)

    def _compared(self, rule: SelectionRule, metrics: Mapping[str, float], terms: Mapping[str, float]) -> float:
        """What a rule looks at; for the head alone, without selection rows, the training loss says when it has converged."""
        value = rule.value(metrics)
        if self.phase.name == "head" and math.isnan(value):
            return terms["loss"] if rule.direction == "min" else -terms["loss"]
        return value

    def _evaluate(self) -> dict[str, float]:
        """In eval mode and full precision, by the first process; the others are told."""
        self.job.classifier.eval()
        metrics: dict[str, float] = {}
        if self.fabric.global_rank == 0:
            with torch.no_grad():
                metrics = {name: float(value) for name, value in self.job.evaluate(self.job.classifier).items()}
        return self.fabric.broadcast(metrics, src=0) if self.fabric.world_size > 1 else metrics

    def _save(self) -> None:
        """Never a checkpoint that a resumed run could only fail from."""
        self._look()
        if not all_finite(self.named.parameters):
            refuse_non_finite({"a weight": math.nan}, self.progress.epoch * self.feed.steps_per_epoch + self.progress.step)
        self.save()

    def moving(self) -> dict[str, Tensor]:
        """Everything in the classifier that can change in this phase: trained parameters and all buffers."""
        frozen = self.phase.selection.frozen
        return {name: tensor for name, tensor in self.job.classifier.state_dict().items() if name not in frozen}

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Progress for the header and tensors for the body of a checkpoint."""
        self.progress.scaler = self.fabric._precision.state_dict()
        tensors = {f"weights/{name}": tensor for name, tensor in self.moving().items()}
        tensors |= {f"best/{name}": tensor for name, tensor in self.best.items()}
        tensors |= {f"optimizer/{name}": tensor for name, tensor in self.named.state().items()}
        if self.gradients is not None:
            tensors[_GRADIENTS] = self.gradients.state()
        if self.phase.objective is not None:
            tensors |= {f"objective/{name}": value for name, value in self.phase.objective.state_dict().items()}
        for number, regularizer in enumerate(self.phase.regularizers):
            tensors |= {f"regularizer {number}/{name}": value for name, value in regularizer.state_dict().items()}
        return asdict(self.progress), tensors

    def load_state(self, progress: Progress, tensors: Mapping[str, Tensor]) -> None:
        """Go on from what ``state`` gave.

        Raises:
            RunDirectoryError: It is not of this phase.
        """
        epochs, steps = self.phase.settings.epochs, self.feed.steps_per_epoch
        if not (0 <= progress.epoch <= epochs and 0 <= progress.step < steps):
            raise damaged_checkpoint(f"there is no step {progress.step} of epoch {progress.epoch}")
        weights, self.best = _within("weights", tensors), _within("best", tensors)
        for state in (weights, self.best) if self.best else (weights,):
            if _shapes(state) != _shapes(self.moving()):
                raise damaged_checkpoint("its weights are of another network")
        self.progress = progress
        self.job.classifier.load_state_dict(weights, strict=False)
        try:
            self.fabric._precision.load_state_dict(progress.scaler)
            self.named.load_state(_within("optimizer", tensors))
            if self.phase.objective is not None:
                self.phase.objective.load_state_dict(_within("objective", tensors))
            for number, regularizer in enumerate(self.phase.regularizers):
                regularizer.load_state_dict(_within(f"regularizer {number}", tensors))
            if self.gradients is not None:
                self.gradients.load_state(tensors[_GRADIENTS], progress.epoch * steps + progress.step)
        except (LookupError, TypeError, AttributeError, RuntimeError) as error:
            raise damaged_checkpoint(f"the state of the optimizer, objective, of a regularizer or of a log: {error}") from error


def _shapes(state: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in state.items()}


def _within(folder: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(f"{folder}/"): tensor for name, tensor in tensors.items() if name.startswith(f"{folder}/")}
