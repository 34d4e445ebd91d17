"""Step time and memory of adapters: the engine's step that trains them against the engine's step that trains everything.

    OMP_NUM_THREADS=1 python benchmarks/adapter_step.py           # three networks; ten minutes of one idle core
    OMP_NUM_THREADS=1 python benchmarks/adapter_step.py --smoke   # seconds

Networks, images and rounds are those of regularized_step.py, ratios again of CPU seconds within a round. Memory is what training
holds at once: weights, gradients, moments of AdamW, the kept best weights, and what a step keeps for its backward pass.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
import torch
from regularized_step import CLASSES, SIZE, interval_of_median, make_network, make_step, networks, one_round
from torch import nn

from crossgraft.compute import limit_threads
from crossgraft.data import dataset_from_arrays
from crossgraft.losses import CrossEntropy
from crossgraft.tune.augmentations import NoAugmentation
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.batch_plan import BatchPlan
from crossgraft.tune.feed.batches import BatchMaker
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.planning.step_cost import measure_step

OF_EVERY_NETWORK = ("full", "linear", "partial:3", "lora:4")
OF_TRANSFORMERS = ("lora:4,targets=Linear", "adaptformer:64")
NETWORKS = ("resnet18-w64", "vit-d192-l6", "vit-d384-l3")


def main() -> None:
    arguments = parse_arguments()
    print(f"{arguments.threads} thread(s), CPU seconds")
    with limit_threads(arguments.threads):
        for name in arguments.networks.split(","):
            build, batch_size = networks()[name]
            methods = [*OF_EVERY_NETWORK, *(OF_TRANSFORMERS if name.startswith("vit") else ())]
            measure(name, build, arguments.batch_size or batch_size, methods, arguments.rounds)


def measure(
    name: str, build: Callable[[], nn.Module], batch_size: int, methods: Sequence[str], num_rounds: int
) -> None:
    """One line a method; the first one is what the others are compared with."""
    steps = [make_step(build, batch_size, None, method) for method in methods]
    for step in steps:
        step()
    seconds = np.array([one_round(steps, number) for number in range(num_rounds)])
    held = [peak_bytes(build, batch_size, method) for method in methods]
    print(f"\n{name}, batches of {batch_size}, {num_rounds} rounds: full takes {np.median(seconds[:, 0]):.3f} s a step")
    for method, own, memory in zip(methods, seconds.T, held, strict=True):
        ratios = own / seconds[:, 0]
        low, high = interval_of_median(ratios)
        trained, share = trained_of(build, method)
        print(
            f"  {method:24} time {np.median(ratios):.3f} ({low:.3f} to {high:.3f})   memory {memory / held[0]:.3f} "
            f"({memory / 2**20:.0f} MiB)   trained {trained} ({share:.2%})",
            flush=True,
        )


def peak_bytes(build: Callable[[], nn.Module], batch_size: int, method: str) -> int:
    """What the plan of a fine-tuning says."""
    classifier, selection = make_network(build, method)
    pixels = np.random.default_rng(0).integers(0, 256, (3 * batch_size, SIZE, SIZE, 3), dtype=np.uint8)
    labels = np.arange(3 * batch_size) % CLASSES
    images = TrainingImages(dataset_from_arrays(pixels, labels), classifier.preprocessing)
    targets = torch.eye(CLASSES)[torch.from_numpy(labels)]
    plan = BatchPlan(targets, batch_size=batch_size, seed=0)
    cost = measure_step(
        classifier,
        BatchMaker(images, targets, plan, augmentation=NoAugmentation(), batch_transforms=()),
        selection,
        loss=CrossEntropy(),
        regularizers=(),
        settings=TrainerSettings(device="cpu", learning_rate=1e-5, batch_size=batch_size),
        features_are_fixed=False,
    )
    return cost.peak_bytes or 0


def trained_of(build: Callable[[], nn.Module], method: str) -> tuple[int, float]:
    """How many parameters are trained, and which share of all."""
    classifier, selection = make_network(build, method)
    sizes = {name: parameter.numel() for name, parameter in classifier.named_parameters()}
    trained = sum(sizes[name] for name in selection.trained)
    return trained, trained / sum(sizes.values())


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few steps of the smallest network")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--batch-size", type=int, help="in place of that of the network")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=31)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.networks, arguments.batch_size, arguments.rounds = "vit-d192-l6", 4, 2
    return arguments


if __name__ == "__main__":
    main()
