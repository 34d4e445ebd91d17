"""Fine-tune one toy backbone for real, in a worker process: a linear layer alone, and the whole network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from crossgraft.demo.toy_models import TOY_MODELS, ToyBackbone
from crossgraft.demo.training import ToyImages, ToyLabels, TrainingRecipe, seeded_initialisation, train
from crossgraft.running.jobs import Job, Work

FINE_TUNING = TrainingRecipe(steps=80, batch_size=25, learning_rate=2e-3)
PROBE_PENALTY = 0.01
"""Penalty on the squared weights of the linear layer, on standardised features."""
PROBE_ITERATIONS = 100


class TargetTask(NamedTuple):
    """The labelled images of the user, and the images of unseen writers."""

    train_images: ToyImages
    train_labels: ToyLabels
    test_images: Float[np.ndarray, "num_test 1 8 8"]
    test_labels: np.ndarray

    @property
    def num_classes(self) -> int:
        """Classes of the target."""
        return int(self.train_labels.max()) + 1


@dataclass(frozen=True)
class FineTuneJob:
    """One backbone to fine-tune.

    Attributes:
        factory: Its function in ``toy_models``.
        num_source_classes: Outputs of its pretrained head.
        state: Its weights, by name.
        task: What to learn.
        recipe: Recipe for training the whole network.
        seeds: One fine-tuning each: they choose the new head and the order of the images.
    """

    factory: str
    num_source_classes: int
    state: Mapping[str, np.ndarray]
    task: TargetTask
    recipe: TrainingRecipe
    seeds: tuple[int, ...]


class FineTuned(NamedTuple):
    """Which test images are right after fine-tuning.

    Attributes:
        linear: By the linear layer on frozen features.
        full: By the whole network, one row a seed.
    """

    linear: Bool[np.ndarray, " num_test"]
    full: Bool[np.ndarray, "num_seeds num_test"]


class FineTuneBoth(Work[FineTuneJob, FineTuned]):
    """The linear layer once (it has one optimum), the whole network once for each seed."""

    def do(self, job: Job[FineTuneJob]) -> FineTuned:
        """Both."""
        return FineTuned(
            linear=_probe_linearly(job.spec),
            full=np.stack([_tune_whole_network(job.spec, seed) for seed in job.spec.seeds]),
        )


def _load(job: FineTuneJob) -> ToyBackbone:
    module = TOY_MODELS[job.factory](num_classes=job.num_source_classes)
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in job.state.items()})
    return module.eval()


def _tune_whole_network(job: FineTuneJob, seed: int) -> Bool[np.ndarray, " num_test"]:
    module = _load(job)
    with seeded_initialisation(seed, "demo fine-tuning"):
        module.reset_classifier(job.task.num_classes)
    images, labels = torch.from_numpy(job.task.train_images), torch.from_numpy(job.task.train_labels)
    train(module, images, labels, job.recipe, seed=seed, stream="demo fine-tuning")
    with torch.inference_mode():
        return _is_right(module(torch.from_numpy(job.task.test_images)), job.task)


def _probe_linearly(job: FineTuneJob) -> Bool[np.ndarray, " num_test"]:
    """L2-penalised logistic regression on features standardised by the training images."""
    module = _load(job)
    with torch.inference_mode():
        train_features, test_features = (
            module.forward_head(module.forward_features(torch.from_numpy(images)), pre_logits=True)
            for images in (job.task.train_images, job.task.test_images)
        )
    mean, spread = train_features.mean(dim=0), train_features.std(dim=0) + 1e-6
    layer = _logistic_regression(
        ((train_features - mean) / spread).clone(),
        torch.from_numpy(job.task.train_labels),
        job.task.num_classes,
    )
    with torch.inference_mode():
        return _is_right(layer((test_features - mean) / spread), job.task)


def _logistic_regression(features: Tensor, labels: Tensor, num_classes: int) -> nn.Linear:
    layer = nn.Linear(features.shape[1], num_classes)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    optimizer = torch.optim.LBFGS(layer.parameters(), max_iter=PROBE_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = cross_entropy(layer(features), labels) + PROBE_PENALTY * layer.weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)  # pyright: ignore[reportArgumentType] - torch says float, but takes a tensor
    return layer


def _is_right(logits: Tensor, task: TargetTask) -> Bool[np.ndarray, " num_test"]:
    return logits.argmax(dim=1).numpy() == task.test_labels
