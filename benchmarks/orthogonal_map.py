"""A step of RepSim's rotation Q against a product of two d × d matrices, beside the maps that torch offers.

    OMP_NUM_THREADS=1 python benchmarks/orthogonal_map.py           # d = 192, 512, 768; two minutes
    OMP_NUM_THREADS=1 python benchmarks/orthogonal_map.py --smoke   # seconds

Ours is ‖Σ − QᵀΣ₀Q‖² with its gradient for Q in closed form, and the move of Q (target: at most 8 products). The others are the
same term with ``torch.nn.utils.parametrizations.orthogonal``, forward and backward: they leave the optimiser's step to the next
forward. All are a little away from the identity. CPU seconds, float32, each kind once a round in turns; the median over
rounds, with the quartiles, and the median ratio to the product of the same round.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from crossgraft.compute import limit_threads
from crossgraft.tune.regularizers._moment_terms import MomentMatching, Moments

MAPS = ("cayley", "householder", "matrix_exp")
PRODUCTS_A_ROUND = 5


def main() -> None:
    arguments = parse_arguments()
    with limit_threads(arguments.threads):
        for size in arguments.sizes:
            measure(size, arguments.rounds)


def measure(size: int, num_rounds: int) -> None:
    generator = torch.Generator().manual_seed(0)
    start, now = (covariance(size, generator) for _ in range(2))
    kinds = {"product": product(start, now), "closed form": closed_form(start, now)}
    kinds |= {name: parametrized(name, start, now) for name in MAPS}
    for work in kinds.values():
        work()
    rounds = [{name: cpu_seconds(work) for name, work in kinds.items()} for _ in range(num_rounds)]
    print(f"d = {size}, {num_rounds} rounds, {torch.get_num_threads()} thread(s)")
    for name in kinds:
        seconds = [1000 * each[name] / (PRODUCTS_A_ROUND if name == "product" else 1) for each in rounds]
        ratio = statistics.median(PRODUCTS_A_ROUND * each[name] / each["product"] for each in rounds)
        low, middle, high = statistics.quantiles(seconds, n=4)
        shown = "" if name == "product" else f"   {ratio:6.1f} products"
        print(f"  {name:12} {middle:9.2f} ms ({low:.2f} to {high:.2f}){shown}")


def covariance(size: int, generator: torch.Generator) -> Tensor:
    """Of features whose spectrum falls as 1 / k."""
    features = torch.randn(2 * size, size, generator=generator) / torch.arange(1, size + 1).sqrt()
    return (features @ torch.linalg.qr(torch.randn(size, size, generator=generator)).Q).T.cov()


def product(start: Tensor, now: Tensor) -> Callable[[], None]:
    def work() -> None:
        for _ in range(PRODUCTS_A_ROUND):
            start @ now

    return work


def closed_form(start: Tensor, now: Tensor) -> Callable[[], None]:
    """Term, gradient, a step of SGD, and the move; the gradient for the features' covariance is part of it."""
    size = len(start)
    matching = MomentMatching(size, start, learn_q=True, learn_alpha=False, normalize="ref", mean_weight=0.0)
    mean = torch.zeros(size)
    reference, covariance = Moments(mean, start), now.clone().requires_grad_(True)
    assert matching.rotation is not None
    skew = matching.rotation.skew

    def work() -> None:
        term = matching.terms(Moments(mean, covariance), reference)["covariance"]
        (gradient,) = torch.autograd.grad(term, [skew])
        with torch.no_grad():
            skew.sub_(gradient, alpha=0.01 / float(gradient.norm() + 1e-9))
        matching.move(0)

    return work


def parametrized(name: str, start: Tensor, now: Tensor) -> Callable[[], None]:
    layer = nn.Linear(len(start), len(start), bias=False)
    layer.weight.data = torch.eye(len(start))
    nn.utils.parametrizations.orthogonal(layer, orthogonal_map=name)
    (free,) = (parameter for parameter in layer.parameters() if parameter.requires_grad)
    with torch.no_grad():
        free.add_(1e-3 * torch.randn(free.shape, generator=torch.Generator().manual_seed(1)))

    def work() -> None:
        q = layer.weight
        torch.autograd.grad((now - q.T @ start @ q).square().sum(), [free])

    return work


def cpu_seconds(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[192, 512, 768])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="d = 32, 3 rounds")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.sizes, arguments.rounds = [32], 3
    return arguments


if __name__ == "__main__":
    main()
