"""One training loop for pretraining and fine-tuning. It runs in worker processes: few imports."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from crossgraft.seeding import derive_seed, torch_generator

ToyImages = Float32[np.ndarray, "num_samples 1 8 8"]
ToyLabels = Int64[np.ndarray, " num_samples"]


@dataclass(frozen=True)
class TrainingRecipe:
    """AdamW under a one-cycle schedule, without augmentation.

    Attributes:
        steps: Number of batches.
        batch_size: Images in a batch.
        learning_rate: The peak of the schedule.
        weight_decay: Weight decay of all parameters.
    """

    steps: int
    batch_size: int
    learning_rate: float
    weight_decay: float = 0.05


@dataclass(frozen=True)
class SourceTask:
    """Images and labels to pretrain on.

    Attributes:
        name: For tables.
        images: Prepared for the toy backbones.
        labels: Class index of each image.
    """

    name: str
    images: ToyImages
    labels: ToyLabels

    @property
    def num_classes(self) -> int:
        """Classes of the source."""
        return int(self.labels.max()) + 1


@contextmanager
def seeded_initialisation(seed: int, *names: object) -> Generator[None]:
    """Layers built inside draw their weights from the stream ``names``; torch's global state is kept."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, *names))
        yield


def train(
    module: nn.Module,
    images: Float[Tensor, "num_samples 1 8 8"],
    labels: Tensor,
    recipe: TrainingRecipe,
    *,
    seed: int,
    stream: str,
) -> None:
    """Train all parameters of ``module`` in place with cross-entropy, and leave it in eval mode."""
    optimizer = torch.optim.AdamW(module.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.learning_rate, total_steps=recipe.steps)
    batches = _shuffled_batches(len(images), recipe.batch_size, torch_generator(seed, stream))
    module.train()
    for _ in range(recipe.steps):
        rows = next(batches)
        loss = cross_entropy(module(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    module.eval()


def _shuffled_batches(num_samples: int, batch_size: int, random: torch.Generator) -> Iterator[Tensor]:
    """Every image once an epoch, but for a last, smaller batch: batch statistics need many images."""
    batch_size = min(batch_size, num_samples)
    while True:
        order = torch.randperm(num_samples, generator=random)
        yield from order[: num_samples - num_samples % batch_size].split(batch_size)
