"""Seconds of few-shot heads beside the matrix products that they cannot do without, measured in the same run.

    OMP_NUM_THREADS=1 python benchmarks/fewshot_heads.py           # a minute or two
    OMP_NUM_THREADS=1 python benchmarks/fewshot_heads.py --smoke   # seconds

Made-up features, one thread. The floor of URL and CoPA is two products of n × d by d × d a step, Z = X Wᵀ and
∂L/∂W = ∂L/∂Zᵀ X, and
for CoPA one pass of the fused Adam over two d × d matrices. Each round times each of them in turns; the median over the rounds
counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.fewshot import CopaHead, LogisticHead, NccHead, RidgeHead, UrlHead


@dataclass(frozen=True)
class Size:
    """A support set, and how many times the floor CoPA may take, and seconds that URL may take."""

    images: int
    ways: int
    width: int
    copa_target: float | None = None
    url_target_seconds: float | None = None


SIZES = (Size(500, 25, 512, copa_target=1.5, url_target_seconds=0.30), Size(25, 5, 512, copa_target=3.0), Size(500, 25, 1280))


def main() -> None:
    arguments = parse_arguments()
    sizes = (Size(12, 3, 16),) if arguments.smoke else SIZES
    with limit_threads(1), reuse_freed_memory():
        for size in sizes:
            measure(size, arguments.rounds)


def measure(size: Size, num_rounds: int) -> None:
    random = np.random.default_rng(0)
    labels = np.arange(size.images) % size.ways
    features = random.standard_normal((size.ways, size.width))[labels] + random.standard_normal((size.images, size.width))
    features = features.astype(np.float32)
    heads = [NccHead(), RidgeHead(), LogisticHead(), UrlHead(), CopaHead()]
    works: dict[str, Callable[[], object]] = {
        "floor of URL": floor(features, UrlHead().steps, num_optimised=0),
        "floor of CoPA": floor(features, CopaHead().steps, num_optimised=2),
        **{head.title: lambda head=head: head.fit(features, labels) for head in heads},
    }
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(num_rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if number:  # the first round warms up
                seconds[name].append(time.perf_counter() - start)
    print(f"\nsupport {size.images} × {size.width}, {size.ways}-way, {num_rounds} rounds")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        print(f"  {name:20} {median:8.4f} s{said_of(name, medians, size)}")


def said_of(name: str, medians: dict[str, float], size: Size) -> str:
    """Ratio and target."""
    if name == "CoPA":
        ratio = medians["CoPA"] / medians["floor of CoPA"]
        target = size.copa_target
        verdict = "" if target is None else f", target {target}: {'met' if ratio <= target else 'missed'}"
        return f"   {ratio:.2f} × floor{verdict}   600 episodes: {medians['CoPA'] * 10:.1f} minutes"
    if name == "URL":
        ratio, target = medians["URL"] / medians["floor of URL"], size.url_target_seconds
        verdict = "" if target is None else f", target {target} s: {'met' if medians['URL'] <= target else 'missed'}"
        return f"   {ratio:.2f} × floor{verdict}"
    return ""


def floor(features: np.ndarray, num_steps: int, *, num_optimised: int) -> Callable[[], object]:
    rows, width = torch.from_numpy(features), features.shape[1]
    weights = [torch.nn.Parameter(torch.eye(width)) for _ in range(max(num_optimised, 1))]
    optimizer = torch.optim.Adam(weights, fused=True, weight_decay=0.1) if num_optimised else None

    def run() -> None:
        for _ in range(num_steps):
            transformed = rows @ weights[0].detach().T
            gradient = transformed.T @ rows
            if optimizer is not None:
                for each in weights:
                    each.grad = gradient
                optimizer.step()

    return run


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny support set")
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.rounds = 1
    return arguments


if __name__ == "__main__":
    main()
