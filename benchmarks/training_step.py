"""A training step of the engine against a bare torch loop with the same network, batch and optimiser.

    OMP_NUM_THREADS=1 python benchmarks/training_step.py           # MobileNetV2 and ViT-Tiny at 96 px; a few minutes
    OMP_NUM_THREADS=1 python benchmarks/training_step.py --smoke   # seconds

Prints, for each network, the seconds of a bare step (forward, loss, backward, AdamW) on a batch that lies in memory, and the
engine's as a ratio to it: on the same batch again and again, with checks for finite losses, logging, learning rate, streams of
random numbers and Fabric in it. Both are run in turns, a block of steps each; the ratio is the median over the pairs, because
other programs slow single blocks down. CPU seconds of the process say the same on a machine that is busy.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from crossgraft.compute import limit_threads
from crossgraft.losses import CrossEntropy
from crossgraft.models import ModelSpec, load_backbone
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.models.memory_format import put_channels_last
from crossgraft.tune.engine.launch import make_fabric
from crossgraft.tune.engine.optimizers import make_optimizer
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.step import Network, TrainingStep, apply_modes, apply_selection
from crossgraft.tune.methods import METHODS

CLASSES = 4


@dataclass(frozen=True)
class FixedBatch:
    """The same images in every step."""

    rows: Tensor
    images: Tensor
    targets: Tensor


def main() -> None:
    arguments = parse_arguments()
    print(f"batch {arguments.batch_size}, {arguments.image_size} px, {arguments.threads} thread(s), {arguments.pairs} pairs")
    with limit_threads(arguments.threads):
        for name in arguments.models.split(","):
            measure(name, arguments)


def measure(name: str, arguments: argparse.Namespace) -> None:
    backbone = load_backbone(ModelSpec(name=name, source=name, weights="random"), image_size=arguments.image_size)
    batch = make_batch(arguments.batch_size, arguments.image_size)
    bare = bare_step(make_classifier(backbone, CLASSES, seed=0), batch)
    engine = engine_step(make_classifier(backbone, CLASSES, seed=0), batch)
    for step in (bare, engine):
        seconds_of(step, 2)
    pairs = [pair(bare, engine, arguments.steps, turn) for turn in range(arguments.pairs)]
    wall = statistics.median(ours[0] / theirs[0] for theirs, ours in pairs)
    cpu = statistics.median(ours[1] / theirs[1] for theirs, ours in pairs)
    floor = statistics.median(theirs[0] for theirs, _ in pairs) / arguments.steps
    print(f"{name:24} bare {1000 * floor:8.1f} ms   engine {wall:.3f} of it (of CPU seconds {cpu:.3f})")


def pair(
    bare: Callable[[], None], engine: Callable[[], None], steps: int, turn: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Seconds of both, in an order that changes from turn to turn."""
    if turn % 2:
        ours = seconds_of(engine, steps)
        return seconds_of(bare, steps), ours
    return seconds_of(bare, steps), seconds_of(engine, steps)


def seconds_of(step: Callable[[], None], steps: int) -> tuple[float, float]:
    """Of the clock and of the processor."""
    start, cpu_start = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    return time.perf_counter() - start, time.process_time() - cpu_start


def make_batch(size: int, pixels: int) -> FixedBatch:
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(size, 3, pixels, pixels, generator=generator)
    return FixedBatch(torch.arange(size), images, torch.eye(CLASSES)[torch.arange(size) % CLASSES])


def bare_step(classifier: Classifier, batch: FixedBatch) -> Callable[[], None]:
    """What a person would write first."""
    classifier.train()
    optimizer = torch.optim.AdamW(classifier.parameters(), lr=1e-5)
    labels = batch.targets.argmax(1)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(classifier(batch.images), labels).backward()
        optimizer.step()

    return step


def engine_step(classifier: Classifier, batch: FixedBatch) -> Callable[[], None]:
    settings = TrainerSettings(device="cpu", learning_rate=1e-5, batch_size=len(batch.rows))
    fabric = make_fabric(settings)
    put_channels_last(classifier)
    selection = METHODS.get("full")().select(classifier)
    apply_selection(classifier, selection)
    apply_modes(classifier, selection)
    named = make_optimizer(classifier, selection, (), settings)
    network, optimizer = fabric.setup(Network(classifier, ()), named.optimizer)
    training_step = TrainingStep(
        fabric, network, optimizer, named=named, classifier=classifier, loss=CrossEntropy(), regularizers=(), settings=settings
    )
    numbers: Iterator[int] = iter(range(10**9))

    def step() -> None:
        training_step.run(batch, next(numbers))

    return step


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few steps of a tiny network")
    parser.add_argument("--models", default="mobilenetv2_100,vit_tiny_patch16_224")
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5, help="steps of a block")
    parser.add_argument("--pairs", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.models, arguments.image_size, arguments.batch_size = "test_resnet", 32, 4
        arguments.steps, arguments.pairs = 2, 3
    return arguments


if __name__ == "__main__":
    main()
