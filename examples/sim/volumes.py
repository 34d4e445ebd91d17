"""ρSIM on volumes: a network of 3-D convolutions says in which order the axes of a piece of a head stand.

    python examples/sim/volumes.py SITE/nibabel/tests/data docs/results/sim-other-tasks/volumes.csv

The only volumes at hand are the four heads that nibabel ships for its tests (magnetic resonance, 2 to 3 mm). No answer comes with
them, so one is made: a cube of 16 voxels is cut out, its three axes (inwards, front, up) are put into one of six orders, and the
network is to say which. It trains on the left half of each head and is tested on the right one, mirrored: other voxels, but of
the same four heads, with the same resolution along each axis. The trivial answer is a linear model of how much neighbours differ
along each axis.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import nibabel
import numpy as np
import torch
from arms import ARMS, TRIVIAL, Measured, Table, parameters_of, read_command, sim_of
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional

HEADS = ("anatomical.nii", "example4d.nii.gz", "example4d+orig.HEAD", "scaled+tlrc.HEAD")
SIDE, STEPS, BATCH, TESTED = 16, 300, 32, 600
ORDERS = tuple(permutations(range(3)))
LEAST_SHARE = 0.5
"""Of the voxels of a cube that are brighter than a tenth of the brightest: the rest is air."""

Part = tuple[torch.Tensor, torch.Tensor]
"""(n, 1, SIDE, SIDE, SIDE) cubes and the (n,) orders of their axes."""


def halves(folder: Path) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The left half of each head and the mirrored right one, axes inwards, to the front and up; of a film the first volume."""
    left: list[np.ndarray] = []
    right: list[np.ndarray] = []
    for name in HEADS:
        head = np.asarray(nibabel.as_closest_canonical(nibabel.load(folder / name)).dataobj, dtype=np.float32)
        head = head[..., 0] if head.ndim == 4 else head
        head = head / np.quantile(head, 0.99)
        left.append(head[: len(head) // 2])
        right.append(head[: -(len(head) // 2) - 1 : -1])
    return left, right


def cubes(heads: list[np.ndarray], number: int, drawn: np.random.Generator) -> Part:
    """Cubes from anywhere in the heads, standardised, their axes in any order."""
    found: list[np.ndarray] = []
    orders = drawn.integers(len(ORDERS), size=number)
    while len(found) < number:
        head = heads[drawn.integers(len(heads))]
        x, y, z = (drawn.integers(size - SIDE + 1) for size in head.shape)
        cube = head[x : x + SIDE, y : y + SIDE, z : z + SIDE]
        if (cube > 0.1).mean() >= LEAST_SHARE:
            cube = (cube - cube.mean()) / (cube.std() + 1e-6)
            found.append(cube.transpose(ORDERS[orders[len(found)]])[None])
    return torch.from_numpy(np.stack(found)), torch.from_numpy(orders)


class Block(nn.Module):
    """Two 3-D convolutions around a shortcut, on half the voxels along each axis."""

    def __init__(self, taken: int, given: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv3d(taken, given, 3, 2, 1, bias=False), nn.BatchNorm3d(given), nn.ReLU())
        self.second = nn.Sequential(nn.Conv3d(given, given, 3, 1, 1, bias=False), nn.BatchNorm3d(given))
        self.past = nn.Conv3d(taken, given, 1, 2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.second(self.first(x)) + self.past(x))


class Solid(nn.Module):
    """One convolution, three blocks, and six orders of the axes."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv3d(1, 8, 3, 1, 1, bias=False), nn.BatchNorm3d(8), nn.ReLU())
        self.blocks = nn.ModuleList([Block(8, 16), Block(16, 32), Block(32, 64)])
        self.last = nn.Linear(64, len(ORDERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x.mean(dim=(2, 3, 4)))


def scored(orders: torch.Tensor, answers: np.ndarray) -> Measured:
    """Accuracy, and the mean of F1 over the orders."""
    return {"accuracy": float(accuracy_score(orders, answers)), "macro_f1": float(f1_score(orders, answers, average="macro"))}


def roughness(found: torch.Tensor) -> np.ndarray:
    """(n, 3) mean differences between neighbours along each axis."""
    return torch.stack([found.diff(dim=axis).abs().flatten(1).mean(dim=1) for axis in (2, 3, 4)], dim=1).log().numpy()


def best_trivial(train: Part, test: Part) -> Measured:
    """What resolution betrays."""
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(roughness(train[0]), train[1])
    return scored(test[1], linear.predict(roughness(test[0])))


def train_one(arm: str, seed: int, left: list[np.ndarray], test: Part, *, steps: int) -> Measured:
    """Train a network as one arm has it, always on new cubes."""
    torch.manual_seed(seed)
    network, drawn = Solid(), np.random.default_rng(seed)
    sim = sim_of(arm, network, test[0][:2], seed=seed, blocks=list(network.blocks), layout="ncdhw")
    optimizer = torch.optim.AdamW(parameters_of(network, sim), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps)
    for _ in range(steps):
        found, orders = cubes(left, BATCH, drawn)
        loss = functional.cross_entropy(network(found), orders) + sim.loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    network.eval()
    with torch.no_grad():
        return scored(test[1], network(test[0]).argmax(dim=1).numpy())


def main() -> None:
    """All seeds and arms."""
    asked = read_command(__doc__)
    table = Table(asked.out)
    left, right = halves(asked.files)
    number, steps = (30, 3) if asked.smoke else (TESTED, STEPS)
    test = cubes(right, number, np.random.default_rng(0))
    table.measure(
        "heads", "linear", TRIVIAL, 0, lambda: best_trivial(cubes(left, 4 * number, np.random.default_rng(1)), test)
    )  # fmt: skip
    for seed in range(asked.seeds):
        for arm in ARMS:
            table.measure("heads", "3-D ResNet", arm, seed, lambda given=(arm, seed): train_one(*given, left, test, steps=steps))


if __name__ == "__main__":
    main()
