"""Pretrain one toy backbone in a worker process and save it, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save

from crossgraft.demo.toy_models import TOY_MODELS
from crossgraft.demo.training import ToyImages, ToyLabels, TrainingRecipe, seeded_initialisation, train
from crossgraft.storage.atomic import write_atomically

PRETRAINING = TrainingRecipe(steps=200, batch_size=64, learning_rate=3e-3)


@dataclass(frozen=True)
class PretrainJob:
    """One backbone to make.

    Attributes:
        factory: Its function in ``toy_models``.
        images: Of the source task.
        labels: Of the source task.
        num_classes: Of the source task.
        recipe: Of training.
        seed: Of the demo.
        path: The ``.safetensors`` file to write.
    """

    factory: str
    images: ToyImages
    labels: ToyLabels
    num_classes: int
    recipe: TrainingRecipe
    seed: int
    path: Path


def pretrain(job: PretrainJob) -> None:
    """Train from random weights and write the state dict."""
    stream = f"demo pretraining {job.path.stem}"
    with seeded_initialisation(job.seed, stream):
        module = TOY_MODELS[job.factory](num_classes=job.num_classes)
    train(
        module,
        torch.from_numpy(job.images),
        torch.from_numpy(job.labels),
        job.recipe,
        seed=job.seed,
        stream=stream,
    )
    write_atomically(job.path, save(module.state_dict()))
