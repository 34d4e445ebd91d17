"""The honest check: fine-tune every model of the zoo for real, and test on writers that nothing has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from crossgraft.data import Dataset, prepare_batch
from crossgraft.demo.fine_tuning import FINE_TUNING, FineTuneBoth, FineTuned, FineTuneJob, TargetTask
from crossgraft.demo.record import FineTunedRow
from crossgraft.demo.training import TrainingRecipe
from crossgraft.metrics import accuracy
from crossgraft.models import Backbone, ModelSpec, load_backbone
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Executor, Job, results_of, run_jobs
from crossgraft.seeding import derive_seed

NUM_SEEDS = 3


@dataclass(frozen=True)
class HonestCheck:
    """Accuracy of every model after fine-tuning, and what is needed to compare two of them.

    Attributes:
        rows: One per model, in the order of the zoo.
        family: Family of each model, by name.
        full_shares: By model, for each test image the share of seeds with which the fine-tuned network is
            right.
        writers: Writer of each test image.
    """

    rows: list[FineTunedRow]
    family: dict[str, str]
    full_shares: dict[str, Float[np.ndarray, " num_test"]]
    writers: np.ndarray

    @property
    def full_accuracy(self) -> dict[str, float]:
        """Mean accuracy over seeds of the whole fine-tuned network, by model."""
        return {row.model: row.full_accuracy for row in self.rows}


def check_zoo(
    specs: Sequence[ModelSpec],
    train: Dataset,
    test: Dataset,
    recipe: TrainingRecipe = FINE_TUNING,
    num_seeds: int = NUM_SEEDS,
    *,
    pool: Executor,
    reporter: Reporter,
    seed: int = 0,
) -> HonestCheck:
    """Fine-tune all models, a linear layer and the whole network, on ``train``, and test them on ``test``.

    ``train`` are the images that were ranked on, ``test`` those of other writers; the ranking must use the same ``seed``, because
    of random weights.

    Cost:
        About 0.4 seconds of one core for each model and seed.
    """
    backbones = [load_backbone(spec, seed=seed) for spec in specs]
    seeds = tuple(derive_seed(seed, "demo fine-tuning", number) for number in range(num_seeds))
    jobs = [
        Job(
            backbone.name,
            FineTuneJob(
                factory=spec.source.rpartition(":")[2],
                num_source_classes=backbone.num_source_classes or 0,
                state={name: tensor.numpy() for name, tensor in backbone.module.state_dict().items()},
                task=_prepare(train, test, backbone),
                recipe=recipe,
                seeds=seeds,
            ),
        )
        for spec, backbone in zip(specs, backbones, strict=True)
    ]
    title = f"Fine-tuning {len(jobs)} toy models to check the ranking"
    with reporter.stage(title, total=len(jobs), unit="models") as stage:
        outcomes = run_jobs(jobs, FineTuneBoth(), keep_going=False, told=lambda _: stage.advance(), executor=pool)
    by_name = {job.name: result for job, result in zip(jobs, results_of(outcomes), strict=True)}
    writers = np.asarray(test.groups)
    return HonestCheck(
        rows=[_row(name, result, writers) for name, result in by_name.items()],
        family={backbone.name: backbone.family for backbone in backbones},
        full_shares={name: result.full.mean(axis=0) for name, result in by_name.items()},
        writers=writers,
    )


def _prepare(train: Dataset, test: Dataset, backbone: Backbone) -> TargetTask:
    """The same preprocessing as in the ranking."""
    train_images, test_images = (
        prepare_batch([part.read(row) for row in range(len(part))], backbone.preprocessing).numpy()
        for part in (train, test)
    )
    return TargetTask(train_images, train.targets.astype(np.int64), test_images, test.targets.astype(np.int64))


def _row(name: str, result: FineTuned, writers: np.ndarray) -> FineTunedRow:
    linear = accuracy(result.linear, writers)
    full = accuracy(result.full.mean(axis=0), writers)
    return FineTunedRow(
        model=name,
        num_test_images=len(writers),
        linear_accuracy=linear.value,
        linear_low=linear.low,
        linear_high=linear.high,
        full_accuracy=full.value,
        full_low=full.low,
        full_high=full.high,
        seeds=len(result.full),
    )
