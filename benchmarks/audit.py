"""Costs of an audit beside what it cannot do without, measured in the same run.

    OMP_NUM_THREADS=1 python benchmarks/audit.py           # a minute or two
    OMP_NUM_THREADS=1 python benchmarks/audit.py --smoke   # seconds

CPU seconds of one thread, median of the rounds, which take everything in turns. Learning priority beside one forward and one
backward pass of the same images; photon noise of one CT slice beside projecting and projecting back the whole slice with
scikit-image; each confounder on one image.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import timm
import torch
from skimage.data import shepp_logan_phantom
from skimage.transform import iradon, radon, resize

from crossgraft.audit import learning_priority
from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.edit.confounders import CONFOUNDERS, PoissonProjection

SLICES = 500
TARGET_PRIORITY, TARGET_MINUTES = 1.1, 10.0


def main() -> None:
    arguments = parse_arguments()
    with limit_threads(1), reuse_freed_memory():
        priority(arguments)
        projection(arguments)
        every_edit(arguments)


def priority(arguments: argparse.Namespace) -> None:
    """The network as it stands in the library, 32 images at a time."""
    side, number = (32, 4) if arguments.smoke else (224, 64)
    network = timm.create_model("resnet18", num_classes=2).eval()
    images, labels = torch.rand(number, 3, side, side), np.arange(number) % 2

    def both_passes() -> None:
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        for batch, own in zip(images.split(32), torch.from_numpy(labels).split(32), strict=True):
            watched = batch.clone().requires_grad_(True)
            torch.nn.functional.cross_entropy(network(watched), own, reduction="sum").backward()

    found = in_turns(
        {"both passes": both_passes, "priority": lambda: learning_priority(network, images, labels)}, arguments.rounds
    )
    ratio = found["priority"] / found["both passes"]
    print(f"learning priority, ResNet-18, {number} images of {side}: {ratio:.3f} × both passes (target {TARGET_PRIORITY})")


def projection(arguments: argparse.Namespace) -> None:
    side, angles = (64, 64) if arguments.smoke else (512, 1000)
    image = resize(shepp_logan_phantom(), (side, side)).astype(np.float64)
    theta = np.linspace(0, 180, angles, endpoint=False)
    noise = PoissonProjection(num_angles=angles)

    def there_and_back() -> None:
        iradon(radon(image, theta, circle=False), theta, circle=False, output_size=side)

    works: dict[str, Callable[[], object]] = {"noise": lambda: noise(image, np.random.default_rng(0))}
    found = in_turns(works, arguments.rounds)
    whole = in_turns({"there and back": there_and_back}, 1)["there and back"]
    minutes = found["noise"] * SLICES / 60
    print(
        f"photon noise of a slice of {side}², {angles} angles: {found['noise']:.3f} s, {SLICES} slices {minutes:.1f} minutes "
        f"(target {TARGET_MINUTES:g}); there and back with scikit-image {whole:.1f} s, {whole / found['noise']:.0f} × as long"
    )


def every_edit(arguments: argparse.Namespace) -> None:
    side = 64 if arguments.smoke else 512
    image = (255 * resize(shepp_logan_phantom(), (side, side))).astype(np.uint8)
    works: dict[str, Callable[[], object]] = {
        name: lambda kind=kind: kind()(image, np.random.default_rng(0)) for name, kind in CONFOUNDERS
    }
    for name, seconds in in_turns(works, arguments.rounds).items():
        print(f"  {name:20} {1000 * seconds:8.1f} ms an image of {side}²")


def in_turns(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each; the first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if number or rounds == 1:
                seconds[name].append(time.process_time() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="small images")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rounds = 1
    return arguments


if __name__ == "__main__":
    main()
