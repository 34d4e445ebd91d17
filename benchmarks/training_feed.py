"""The feed of training against its floors: a copy of the batch, and a training step of a small network.

    OMP_NUM_THREADS=1 python benchmarks/training_feed.py           # 256 images at 224 pixels; two minutes
    OMP_NUM_THREADS=1 python benchmarks/training_feed.py --smoke   # seconds

Prints images a second of a whole epoch of batches for each augmentation, with images kept in memory and decoded again
(PNG files in memory), as a ratio to one float32 copy of the same batches; the same for mixup and CutMix; then how much
slower an epoch of training gets when the feed runs beside it, against training on batches that are ready. Jobs take
turns and the best of the rounds counts, because other programs can only slow a round down. CPU seconds are those of
all threads of this process; they say most on a machine that is busy with other work.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import timm
import torch
from PIL import Image

from crossgraft.choice import choose
from crossgraft.compute import limit_threads
from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.tune.augmentations import AUGMENTATIONS
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS
from crossgraft.tune.feed.batches import BatchMaker, BatchPlan, TrainingBatch
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.types import Preprocessing


class Seconds(NamedTuple):
    """Of the clock, and of all threads of this process together."""

    wall: float
    cpu: float


FEEDS = (
    ("none", None, True),
    ("light", None, True),
    ("thesis", None, True),
    ("thesis:6", None, True),
    ("none", "mixup", True),
    ("none", "cutmix", True),
    ("none", None, False),
    ("light", None, False),
)
"""Augmentation, batch transform, and whether images stay in memory."""


def main() -> None:
    arguments = parse_arguments()
    dataset = make_dataset(arguments.images, arguments.pixels)
    print(f"{arguments.images} images of {arguments.pixels} px, batch {arguments.batch_size}, {arguments.threads} thread(s)")
    with limit_threads(arguments.threads):
        measure_feeds(dataset, arguments)
        measure_training(dataset, arguments)


def measure_feeds(dataset: Dataset, arguments: argparse.Namespace) -> None:
    makers = {feed_name(*feed): make_feed(dataset, feed, arguments) for feed in FEEDS}
    ready = torch.rand(arguments.batch_size, 3, arguments.pixels, arguments.pixels)
    place = torch.empty_like(ready)
    copies = math.ceil(len(dataset) / arguments.batch_size)
    jobs: dict[str, Callable[[], object]] = {"copy": lambda: [place.copy_(ready) for _ in range(copies)]}
    jobs |= {name: lambda maker=maker: exhaust(maker.batches(0)) for name, maker in makers.items()}
    best = best_of(jobs, arguments.rounds)
    for name, seconds in best.items():
        ratio = seconds.cpu / best["copy"].cpu
        print(f"{name:28}{len(dataset) / seconds.cpu:10.0f} images a CPU second, {ratio:8.1f} × the copy")


def measure_training(dataset: Dataset, arguments: argparse.Namespace) -> None:
    """How much the feed slows an epoch down."""
    for name in arguments.models.split(","):
        network = timm.create_model(name, num_classes=2)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.0)
        maker = make_feed(dataset, ("light", None, True), arguments)
        ready = list(maker.batches(0))

        def epoch(batches: Iterable[TrainingBatch]) -> None:
            for batch in batches:
                loss = torch.nn.functional.cross_entropy(network(batch.images), batch.targets)  # noqa: B023
                optimizer.zero_grad()  # noqa: B023
                loss.backward()
                optimizer.step()  # noqa: B023

        jobs = {"ready": lambda: epoch(ready), "fed": lambda: epoch(maker.batches(0))}  # noqa: B023
        best = best_of(jobs, arguments.rounds)
        ready_seconds, fed = best["ready"], best["fed"]
        print(
            f"{name:28}{len(dataset) / ready_seconds.cpu:10.1f} images a CPU second on ready batches; fed with light "
            f"{fed.cpu / ready_seconds.cpu:.3f} × the CPU seconds, {fed.wall / ready_seconds.wall:.3f} × those of the clock"
        )


def best_of(jobs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Seconds]:
    """Least seconds of each job; the jobs take turns, after a first round that does not count."""
    best = dict.fromkeys(jobs, Seconds(math.inf, math.inf))
    for number in range(rounds + 1):
        for name, job in jobs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            job()
            if number > 0:
                taken = Seconds(time.perf_counter() - wall, time.process_time() - cpu)
                best[name] = Seconds(*map(min, taken, best[name]))
    return best


def feed_name(augmentation: str, transform: str | None, kept: bool) -> str:
    return f"{augmentation}{' + ' + transform if transform else ''}, {'in memory' if kept else 'decoded'}"


def make_feed(dataset: Dataset, feed: tuple[str, str | None, bool], arguments: argparse.Namespace) -> BatchMaker:
    augmentation, transform, kept = feed
    preprocessing = Preprocessing(arguments.pixels, arguments.pixels)
    images = TrainingImages(dataset, preprocessing, memory_limit_bytes=2**40 if kept else 0, num_threads=arguments.threads)
    targets = torch.eye(2)[torch.as_tensor(dataset.targets)]
    return BatchMaker(
        images,
        targets,
        BatchPlan(targets, batch_size=arguments.batch_size),
        augmentation=choose(AUGMENTATIONS, augmentation),
        batch_transforms=[choose(BATCH_TRANSFORMS, transform)] if transform else [],
    )


def make_dataset(num_images: int, pixels: int) -> Dataset:
    """Blobs in PNG files that are decoded whenever an image is read; a quarter larger than the input."""
    rng = np.random.default_rng(0)
    side = pixels * 5 // 4
    files = []
    for _ in range(num_images):
        small = Image.fromarray(rng.integers(0, 256, (side // 8, side // 8, 3), dtype=np.uint8))
        file = io.BytesIO()
        small.resize((side, side)).save(file, "png")
        files.append(file.getvalue())

    def decode(row: int) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(files[row])))

    dataset = dataset_from_arrays([decode(row) for row in range(num_images)], np.arange(num_images) % 2)
    return dataclasses.replace(dataset, _images=dataclasses.replace(dataset._images, kept={}, decode=decode))


def exhaust(batches: Iterable[TrainingBatch]) -> None:
    for _ in batches:
        pass


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=256)
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", default="mobilenetv3_small_050")
    parser.add_argument("--smoke", action="store_true", help="a few small images")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.images, arguments.pixels, arguments.batch_size, arguments.rounds = 24, 32, 8, 1
    return arguments


if __name__ == "__main__":
    main()
