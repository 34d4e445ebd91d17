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
from regularized_step import interval_of_median, make_network, make_step, networks, one_round, peak_bytes
from torch import nn

from crossgraft.compute import limit_threads

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


def measure(name: str, build: Callable[[], nn.Module], batch_size: int, methods: Sequence[str], num_rounds: int) -> None:
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
