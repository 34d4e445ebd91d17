"""One training loop for pretraining and fine-tuning. It runs in worker processes: few imports."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64
from safetensors.torch import save
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from crossgraft.compute import limit_threads
from crossgraft.data import Dataset
from crossgraft.data.splits import k_folds
from crossgraft.demo.record import SplitComparison
from crossgraft.demo.toy_models import TOY_MODELS, ToyBackbone
from crossgraft.errors import DataError
from crossgraft.metrics import accuracy, accuracy_difference
from crossgraft.running.jobs import Job, Work
from crossgraft.seeding import derive_seed, torch_generator
from crossgraft.statistics import Estimate
from crossgraft.storage.atomic import write_atomically

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
            linear=_probe_linearly(job.spec), full=np.stack([_tune_whole_network(job.spec, seed) for seed in job.spec.seeds])
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
        ((train_features - mean) / spread).clone(), torch.from_numpy(job.task.train_labels), job.task.num_classes
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


NUM_FOLDS = 5


def compare_splits(digits: Dataset, *, seed: int) -> SplitComparison:
    """Logistic regression on pixels, cross-validated with shuffled folds and with folds of whole writers.

    Both intervals, and that of the difference, count writers rather than images: images of one writer are
    alike.

    Raises:
        DataError: The images have no writers, or too few for the folds.
    """
    if digits.groups is None:
        raise DataError("Folds of whole writers need the writer of each image.")
    shuffled = _cross_validate(digits, None, seed=seed)
    grouped = _cross_validate(digits, digits.groups, seed=seed)
    first, second = accuracy(shuffled, digits.groups), accuracy(grouped, digits.groups)
    return SplitComparison(
        probe="logistic regression on pixels",
        shuffled_accuracy=first.value,
        shuffled_low=first.low,
        shuffled_high=first.high,
        grouped_accuracy=second.value,
        grouped_low=second.low,
        grouped_high=second.high,
        explanation=explain(first.value, second.value, accuracy_difference(shuffled, grouped, digits.groups)),
    )


def explain(shuffled: float, grouped: float, difference: Estimate) -> str:
    """What the two accuracies mean, as far as the interval of their difference supports it."""
    measured = (
        f"The same classifier on the same images: accuracy {shuffled:.3f} when images are shuffled into the "
        f"folds, so that each writer is on both sides, and {grouped:.3f} when every test writer is new. The "
        f"difference is {difference.value:+.3f}, 95 % interval [{difference.low:+.3f}, "
        f"{difference.high:+.3f}]"
    )
    if difference.low > 0:
        return f"{measured}: shuffled folds promise more than new writers give. Patients are like writers here."
    return f"{measured}: with so few writers, this shows no advantage of shuffled folds."


def _cross_validate(digits: Dataset, groups: np.ndarray | None, *, seed: int) -> Bool[np.ndarray, " num_samples"]:
    """Whether each image is classified correctly when the fold that holds it is the test fold."""
    pixels = np.stack([digits.read(row).ravel() / 255 for row in range(len(digits))])
    correct = np.zeros(len(digits), dtype=bool)
    with limit_threads(1):
        for split in k_folds(digits.targets, num_folds=NUM_FOLDS, groups=groups, seed=seed):
            train, test = split.rows("train"), split.rows("test")
            probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
            probe.fit(pixels[train], digits.targets[train])
            correct[test] = probe.predict(pixels[test]) == digits.targets[test]
    return correct
