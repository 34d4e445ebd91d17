"""Pretrain one toy backbone in a worker process and save it, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save

from crossgraft.demo.toy_models import TOY_MODELS
from crossgraft.demo.training import SourceTask, TrainingRecipe, seeded_initialisation, train
from crossgraft.running.jobs import Job, Work
from crossgraft.storage.atomic import write_atomically

PRETRAINING = TrainingRecipe(steps=200, batch_size=64, learning_rate=3e-3)


@dataclass(frozen=True)
class PretrainJob:
    """One backbone to make.

    Attributes:
        factory: Its function in ``toy_models``.
        task: What it learns.
        recipe: Training recipe.
        seed: Random seed of the demo.
        path: The ``.safetensors`` file to write.
    """

    factory: str
    task: SourceTask
    recipe: TrainingRecipe
    seed: int
    path: Path


class Pretraining(Work[PretrainJob, Path]):
    """Trains from random weights and writes the state dict; the result is the file."""

    def read_back(self, job: Job[PretrainJob]) -> Path | None:
        """The file of an earlier attempt."""
        return job.spec.path if job.spec.path.is_file() else None

    def do(self, job: Job[PretrainJob]) -> Path:
        """Train, and write the file."""
        spec = job.spec
        stream = f"demo pretraining {spec.path.stem}"
        with seeded_initialisation(spec.seed, stream):
            module = TOY_MODELS[spec.factory](num_classes=spec.task.num_classes)
        images, labels = torch.from_numpy(spec.task.images), torch.from_numpy(spec.task.labels)
        train(module, images, labels, spec.recipe, seed=spec.seed, stream=stream)
        return write_atomically(spec.path, save(module.state_dict()))
