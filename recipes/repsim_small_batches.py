"""Does a running mean of covariances help RepSim at four images a batch? The numbers of docs/regularizers/repsim.md.

    python recipes/repsim_small_batches.py
    python recipes/repsim_small_batches.py --smoke      # two seeds, few steps; the numbers mean nothing

A small network learns the digits 0 to 4 of scikit-learn's 8 × 8 digits, and is then fine-tuned on 100 images of 5 to 9 with
batches of 4, so many steps for every arm. The running mean S̄ ← m S̄ + (1 − m) S (m = 0.99, bias-corrected) takes the place of
the batch's covariance S in the residual; the gradient goes through S alone, in full. What counts is the debiased CKA on the
other images of 5 to 9: it is to be higher than without by more than the standard deviation over seeds.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Sequence

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from crossgraft.compute import limit_threads
from crossgraft.similarity import linear_cka
from crossgraft.tune.regularizers._moment_terms import MomentMatching, Moments

WIDTH, MOMENTUM, NUM_TRAIN = 32, 0.99, 100


class Network(nn.Module):
    """Two convolutions and a linear head of five classes."""

    def __init__(self) -> None:
        super().__init__()
        maps = [nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, WIDTH, 3, padding=1), nn.ReLU()]
        self.body = nn.Sequential(*maps, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(4 * WIDTH, WIDTH), nn.ReLU())
        self.head = nn.Linear(WIDTH, 5)


class RunningMean:
    """S̄ in value, S in gradient."""

    def __init__(self) -> None:
        self.total, self.weight = torch.zeros(WIDTH, WIDTH), 0.0

    def __call__(self, covariance: Tensor) -> Tensor:
        """Take one more covariance in."""
        self.total = MOMENTUM * self.total + (1 - MOMENTUM) * covariance.detach()
        self.weight = MOMENTUM * self.weight + (1 - MOMENTUM)
        return covariance + (self.total / self.weight - covariance).detach()


def moments(features: Tensor) -> Moments:
    """Of a batch."""
    return Moments(features.mean(0), features.T.cov())


def train(
    network: Network, images: Tensor, labels: Tensor, *, seed: int, steps: int, batch: int, weight: float, average: bool
) -> None:
    """Fine-tune in place; weight 0 is without RepSim."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        start = moments(network.body(images))
    matching = MomentMatching(WIDTH, torch.zeros(()), learn_q=True, learn_alpha=False, normalize="ref", mean_weight=0.0)
    own = {"params": list(matching.parameters()), "weight_decay": 0.0}
    optimizer = torch.optim.AdamW([{"params": list(network.parameters())}, own], lr=2e-3)
    averaged = RunningMean() if average else lambda covariance: covariance
    for _ in range(steps):
        rows = torch.randint(len(images), (batch,), generator=generator)
        features = network.body(images[rows])
        loss = nn.functional.cross_entropy(network.head(features), labels[rows])
        if weight:
            ours = moments(features)
            ours = Moments(ours.mean, averaged(ours.covariance))
            loss = loss + weight * matching.terms(ours, start)["covariance"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        matching.move()


def measure(network: Network, before: Network, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Debiased CKA with the network before, and accuracy."""
    with torch.no_grad():
        features, old = network.body(images), before.body(images)
        accuracy = (network.head(features).argmax(1) == labels).float().mean().item()
    return linear_cka(features.numpy(), old.numpy(), debiased=True), accuracy


def one_seed(seed: int, arms: dict[str, dict[str, float | int | bool]], steps: int) -> dict[str, tuple[float, float]]:
    """The same pretrained network and the same images for every arm."""
    digits = load_digits()
    images, labels = torch.from_numpy(digits.images).float()[:, None] / 16, torch.from_numpy(digits.target)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        pretrained = Network()
        new_head = nn.Linear(WIDTH, 5)
    old = labels < 5
    train(pretrained, images[old], labels[old], seed=seed, steps=steps, batch=32, weight=0.0, average=False)
    pretrained.head = new_head
    images, labels = images[~old], labels[~old] - 5
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    shown, kept = order[:NUM_TRAIN], order[NUM_TRAIN:]
    found = {}
    for name, options in arms.items():
        network = copy.deepcopy(pretrained)
        train(network, images[shown], labels[shown], seed=seed + 1000, steps=steps, **options)  # pyright: ignore[reportArgumentType]
        found[name] = measure(network, pretrained, images[kept], labels[kept])
    return found


def main(command_line: Sequence[str] | None = None) -> None:
    """Print one row an arm, and the paired differences."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args(command_line)
    seeds, steps = (2, 20) if arguments.smoke else (arguments.seeds, 1000)
    arms: dict[str, dict[str, float | int | bool]] = {"without RepSim": {"batch": 4, "weight": 0.0, "average": False}}
    for weight in (0.01, 0.1, 1.0):
        arms[f"weight {weight:g}"] = {"batch": 4, "weight": weight, "average": False}
        arms[f"weight {weight:g}, running mean"] = {"batch": 4, "weight": weight, "average": True}
        arms[f"weight {weight:g}, 64 images"] = {"batch": 64, "weight": weight, "average": False}
    with limit_threads(1):
        found = [one_seed(seed, arms, steps) for seed in range(seeds)]
    print(f"{seeds} seeds, mean ± standard deviation")
    print("| arm | debiased CKA | accuracy |\n|---|---|---|")
    for name in arms:
        columns = zip(*(each[name] for each in found), strict=True)
        print(f"| {name} | " + " | ".join(f"{statistics.mean(c):.3f} ± {statistics.stdev(c):.3f}" for c in columns) + " |")
    for weight in (0.01, 0.1, 1.0):
        plain, averaged = (f"weight {weight:g}{suffix}" for suffix in ("", ", running mean"))
        gains = [each[averaged][0] - each[plain][0] for each in found]
        print(f"weight {weight:g}: running mean - without, CKA: {statistics.mean(gains):+.3f} ± {statistics.stdev(gains):.3f}")


if __name__ == "__main__":
    main()
