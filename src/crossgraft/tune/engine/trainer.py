"""Train a classifier: the one entry to the engine, whatever the device, the precision and the number of processes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from lightning_fabric import Fabric
from pydantic import TypeAdapter, ValidationError
from timm.layers.norm_act import convert_sync_batchnorm
from torch import Tensor

from crossgraft.choice import spell
from crossgraft.errors import UsageError
from crossgraft.losses import Loss
from crossgraft.models.classifier import Classifier
from crossgraft.models.device import explain_lost_device
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.models.memory_format import channels_last
from crossgraft.tune.engine.checkpoint import Checkpoint, damaged_checkpoint, read_checkpoint, write_checkpoint
from crossgraft.tune.engine.contract import Evaluate, Feed, OnEpoch, OnStep, TrainedEpoch, TrainingJob, TrainingResult
from crossgraft.tune.engine.launch import check_processes, make_fabric, train_in_processes
from crossgraft.tune.engine.phase_run import PhaseRun, Progress, phases_of
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import apply_selection, training_batch_norms
from crossgraft.tune.feed.batches import BatchMaker
from crossgraft.tune.protocols import FeatureTransform, Objective, Regularizer, Selection, TrainingSet, attach


def train(
    classifier: Classifier,
    feed: Feed,
    selection: Selection,
    *,
    loss: Loss,
    evaluate: Evaluate,
    rule: SelectionRule,
    settings: TrainerSettings,
    regularizers: Sequence[Regularizer] = (),
    features_are_fixed: bool = False,
    keep: Keep | None = None,
    stop_rule: SelectionRule | None = None,
    objective: Objective | None = None,
    num_domains: int = 1,
    feature_transforms: Sequence[FeatureTransform] = (),
    checkpoint_folder: Path | None = None,
    gradient_norms_file: Path | None = None,
    configuration: Mapping[str, object] | None = None,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
) -> TrainingResult:
    """Train ``classifier`` in place and leave the weights in it that ``rule`` picked; in eval mode.

    With a checkpoint in ``checkpoint_folder`` the run goes on from there. On the CPU, with the same versions and number of
    threads, a run that was killed at any point and started again ends with the same bits as one that was not.

    Args:
        classifier: Pretrained, on any device; is moved to that of the settings and to the number type of the precision.
        feed: Makes the batches of all processes together.
        selection: What trains.
        loss: Per image; its class weights are resolved already.
        evaluate: Metrics on the selection rows, once an epoch.
        rule: Rule for the epoch that is kept.
        settings: How long, how fast, where.
        regularizers: Their terms are added to the loss.
        features_are_fixed: Only the head trains; features are computed once where ``feed`` shows plain images and there is
            no regulariser.
        keep: Similarity that the kept epoch is to have; None: the rule alone decides.
        stop_rule: Whose metric the patience looks at; None: that of ``rule``.
        objective: What is minimised; None: the mean of the task loss.
        num_domains: Number of domains among the training images.
        feature_transforms: Change feature maps in the forward pass of each step.
        checkpoint_folder: None: nothing is saved.
        gradient_norms_file: CSV file that is written when an epoch ends, where the settings ask for gradient norms.
        configuration: What else decides the result (data, augmentation, …), as JSON; a checkpoint of another configuration is
            refused.
        on_step: Called after each step.
        on_epoch: Called after each epoch, when its checkpoint is written.

    With several processes (one a GPU, or on the CPU) everything but the two callbacks is pickled to processes of their own;
    what they learned comes back into ``classifier``.

    Raises:
        DivergedError: A loss, a term, a gradient or a weight is not finite; the last checkpoint stays.
        UsageError: A contradiction in selection, settings or processes.
        OtherRunError: The checkpoint belongs to another configuration.
        StorageError: A checkpoint cannot be written; the one before stays.
        OutOfMemoryError: A step does not fit into memory; the last checkpoint stays.
        DeviceLostError: The GPU failed; the last checkpoint stays.
    """
    job = TrainingJob(
        classifier=classifier,
        feed=feed,
        selection=selection,
        loss=loss,
        regularizers=tuple(regularizers),
        evaluate=evaluate,
        rule=rule,
        settings=settings,
        checkpoint_folder=checkpoint_folder,
        gradient_norms_file=gradient_norms_file,
        features_are_fixed=features_are_fixed,
        keep=keep,
        stop_rule=stop_rule,
        objective=objective,
        num_domains=num_domains,
        feature_transforms=tuple(feature_transforms),
        configuration=dict(configuration or {}),
    )
    phases_of(job)  # contradictions come to light before a process is started
    check_processes(job)
    _check_objective(job)
    if settings.num_processes > 1:
        return train_in_processes(job, run_job, on_step, on_epoch)
    return run_job(make_fabric(settings), job, on_step, on_epoch)


def _check_objective(job: TrainingJob) -> None:
    """Refuse what looks at a whole batch where a batch has parts, and what compares domains where there are none."""
    objective = job.objective
    if job.feature_transforms and job.settings.accumulate > 1:
        names = ", ".join(each.name for each in job.feature_transforms)
        raise UsageError(f"The feature transform {names} mixes images of a whole batch. Leave out --accumulate.")
    if objective is None or objective.is_plain_mean:
        return
    if job.settings.accumulate > 1:
        raise UsageError(f"The objective {objective.name} looks at a whole batch at once. Leave out --accumulate.")
    if objective.needs_domains and job.num_domains < 2:
        raise UsageError(f"The objective {objective.name} compares domains. Say which column names them: --domains COLUMN.")


def run_job(fabric: Fabric, job: TrainingJob, on_step: OnStep | None, on_epoch: OnEpoch | None) -> TrainingResult:
    """Train in this process, which may be one of several that do the same."""
    number_type = torch.float64 if job.settings.precision == "64-true" else torch.float32
    configuration = _configuration(job)
    with explain_lost_device(str(fabric.device)):
        job.classifier.to(device=fabric.device, dtype=number_type)
    if fabric.world_size > 1 and training_batch_norms(job.classifier, job.selection):
        job.classifier.body = convert_sync_batchnorm(job.classifier.body)
    if fabric.world_size > 1 and isinstance(job.feed, BatchMaker):
        job.feed.device = str(fabric.device)  # "cuda" would be the first one in the feed's thread
    apply_selection(job.classifier, job.selection)
    kind = fabric.device.type if job.settings.precision.endswith("-mixed") else "cpu"
    with channels_last(job.classifier, kind=kind), explain_lost_device(str(fabric.device)):
        try:
            for regularizer in job.regularizers:
                training_set = job.feed if isinstance(job.feed, TrainingSet) else None
                attach(regularizer, job.classifier, training_set, seed=job.settings.seed)
            if job.objective is not None:
                job.objective.attach(num_domains=job.num_domains, num_classes=job.classifier.num_outputs)
            for transform in job.feature_transforms:  # last, so that no copy that a regulariser makes has their hooks
                transform.attach(job.classifier)
            return _Trainer(fabric, job, configuration, on_step, on_epoch).run()
        finally:
            for part in (*job.feature_transforms, *job.regularizers):
                part.detach()
            job.classifier.eval()


@dataclass(frozen=True)
class _Position:
    """What a checkpoint holds beside the tensors.

    Attributes:
        phase: Number of the phase.
        progress: In it.
        history: One row per epoch, of all phases so far.
    """

    phase: int
    progress: Progress
    history: list[TrainedEpoch]


def _read_position(values: Mapping[str, Any], job: TrainingJob) -> _Position:
    try:
        position = TypeAdapter(_Position).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise damaged_checkpoint(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if not 0 <= position.phase < len(phases_of(job)):
        raise damaged_checkpoint(f"there is no phase {position.phase}")
    return position


class _Trainer:
    """Goes through the phases, from the checkpoint on where there is one."""

    def __init__(
        self, fabric: Fabric, job: TrainingJob, configuration: Mapping[str, Any], on_step: OnStep | None, on_epoch: OnEpoch | None
    ) -> None:
        self.fabric, self.job, self.configuration = fabric, job, configuration
        self.on_step, self.on_epoch = on_step, on_epoch
        self.history: list[TrainedEpoch] = []  # of the phases that are done

    def run(self) -> TrainingResult:
        folder = self.job.checkpoint_folder
        checkpoint = read_checkpoint(folder, self.configuration) if folder is not None else None
        position = _read_position(checkpoint.position, self.job) if checkpoint is not None else None
        first = position.phase if position is not None else 0
        run = self._begin(first)
        if checkpoint is not None and position is not None:
            self._go_on(run, position, checkpoint.tensors)
        run.run()
        for number in range(first + 1, len(phases_of(self.job))):
            self.history += run.history
            run = self._begin(number)
            run.run()
        return TrainingResult(
            history=(*self.history, *run.history),
            best_epoch=run.progress.best_epoch,
            best_value=run.progress.best_value,
            rule=self.job.rule,
            stopped_early=run.progress.stopped_early,
            resumed=checkpoint is not None,
            gradient_norms=None if run.gradients is None else run.gradients.norms,
        )

    def _begin(self, number: int) -> PhaseRun:
        def save() -> None:
            self._save(number, run)

        phase = phases_of(self.job)[number]
        run = PhaseRun(self.fabric, self.job, phase, on_step=self.on_step, on_epoch=self.on_epoch, save=save)
        return run

    def _go_on(self, run: PhaseRun, position: _Position, tensors: Mapping[str, Tensor]) -> None:
        self.history = [row for row in position.history if row.phase != run.phase.name]
        run.history = [row for row in position.history if row.phase == run.phase.name]
        run.load_state(position.progress, tensors)

    def _save(self, number: int, run: PhaseRun) -> None:
        folder = self.job.checkpoint_folder
        if folder is None:
            return
        if self.fabric.global_rank == 0:
            progress, tensors = run.state()
            history = [asdict(row) for row in (*self.history, *run.history)]
            position = {"phase": number, "progress": progress, "history": history}  # as in _Position
            write_checkpoint(folder, Checkpoint(self.configuration, position, tensors))
        self.fabric.barrier()


def _configuration(job: TrainingJob) -> dict[str, Any]:
    """Everything that decides the result, as JSON; the starting weights as a hash."""
    trained = "\n".join(job.selection.trained)
    return {
        **job.settings.decisive,
        "loss": repr(job.loss),
        "regularizers": [spell(regularizer) for regularizer in job.regularizers],
        "rule": job.rule.name,
        "trained parameters": hashlib.sha256(trained.encode()).hexdigest()[:16],
        "starting weights": weights_fingerprint(job.classifier)[:16],
        "steps per epoch": job.feed.steps_per_epoch,
        **(
            {"eval mode": hashlib.sha256("\n".join(job.selection.eval_mode).encode()).hexdigest()[:16]}
            if job.selection.eval_mode
            else {}
        ),
        **({} if job.keep is None else {"keep": repr(job.keep)}),
        **({} if job.stop_rule is None else {"stop rule": job.stop_rule.name}),
        **({} if job.objective is None or job.objective.is_plain_mean else {"objective": spell(job.objective)}),
        **({"feature transforms": [spell(each) for each in job.feature_transforms]} if job.feature_transforms else {}),
        **job.configuration,
    }
