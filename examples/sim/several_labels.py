"""ρSIM on images with several labels: what a spot on the skin is, where on the body it is, and of whom.

    python examples/sim/several_labels.py FILES docs/results/sim-other-tasks/several-labels.csv

HAM10000 (a subset of 2 075 images) has three columns whose values are labels here, each of which an image has or has not:
diagnosis, part of the body, sex. A value of fewer than 60 images is no label. 30 % of the lesions are tested. CF1 is the mean of
F1 over the labels, OF1 that of all decisions together, both at a probability of ½; mAP is the mean of average precision over the
labels. The trivial answer is a linear model of the mean and the spread of the three colours.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from arms import ARMS, TRIVIAL, Measured, Table, parameters_of, read_command, sim_of
from PIL import Image
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional

ARCHIVE, COLUMNS, UNKNOWN = "ham10000_subset", ("dx", "localization", "sex"), "unknown"
SIZE, LEAST_IMAGES, TESTED = (64, 48), 60, 0.3
EPOCHS, BATCH = 12, 64


class Part(NamedTuple):
    """(n, 3, height, width) images in 0 … 1, and (n, labels) whether each has each label."""

    images: torch.Tensor
    labels: torch.Tensor

    def colours(self) -> np.ndarray:
        """(n, 6) mean and spread of red, green and blue."""
        return torch.cat([self.images.mean(dim=(2, 3)), self.images.std(dim=(2, 3))], dim=1).numpy()


def read_parts(folder: Path, *, least_images: int) -> tuple[Part, Part]:
    """Training and test; no lesion is in both."""
    with tarfile.open(folder / f"{ARCHIVE}_jpg200x150.tar") as archive:
        rows = pd.read_csv(io.BytesIO(archive.extractfile(f"{ARCHIVE}/metadata.csv").read()))
        files = [archive.extractfile(f"{ARCHIVE}/images/{name}.jpg") for name in rows["image_id"]]
        images = np.stack([np.asarray(Image.open(file).convert("RGB").resize(SIZE, Image.Resampling.BOX)) for file in files])
    marks = pd.get_dummies(rows[list(COLUMNS)])
    kept = [name for name in marks if marks[name].sum() >= least_images and not name.endswith(UNKNOWN)]
    train, test = next(GroupShuffleSplit(1, test_size=TESTED, random_state=0).split(rows, groups=rows["lesion_id"]))
    pictures, labels = torch.from_numpy(images).movedim(3, 1) / 255, torch.from_numpy(marks[kept].to_numpy(np.float32))
    return Part(pictures[train], labels[train]), Part(pictures[test], labels[test])


def scored(labels: torch.Tensor, probabilities: np.ndarray) -> Measured:
    """What Table 13 names for images with several labels."""
    decided = probabilities >= 0.5
    f1 = {name: f1_score(labels, decided, average=kind, zero_division=0) for name, kind in (("CF1", "macro"), ("OF1", "micro"))}
    return {**{name: float(value) for name, value in f1.items()}, "mAP": float(average_precision_score(labels, probabilities))}


def best_trivial(train: Part, test: Part) -> Measured:
    """Linear models of the colours, one for each label."""
    linear = make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())).fit(train.colours(), train.labels)
    return scored(test.labels, np.stack([each[:, 1] for each in linear.predict_proba(test.colours())], axis=1))


class Block(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, taken: int, given: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(taken, given, 3, stride, 1, bias=False), nn.BatchNorm2d(given), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(given, given, 3, 1, 1, bias=False), nn.BatchNorm2d(given))
        self.past = nn.Conv2d(taken, given, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.second(self.first(x)) + self.past(x))


class SmallResNet(nn.Module):
    """One convolution, three blocks, and a logit of each label."""

    def __init__(self, labels: int) -> None:
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.blocks = nn.ModuleList([Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2)])
        self.last = nn.Linear(64, labels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.enter(2 * x - 1)
        for block in self.blocks:
            x = block(x)
        return self.last(x.mean(dim=(2, 3)))


def train_one(arm: str, seed: int, train: Part, test: Part, *, epochs: int) -> Measured:
    """Train a network as one arm has it, on images that are mirrored at random."""
    torch.manual_seed(seed)
    network = SmallResNet(train.labels.shape[1])
    sim = sim_of(arm, network, train.images[:2], seed=seed, blocks=list(network.blocks))
    steps = -(-len(train.images) // BATCH)
    optimizer = torch.optim.AdamW(parameters_of(network, sim), lr=3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=epochs * steps)
    drawn = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for batch in torch.randperm(len(train.images), generator=drawn).split(BATCH):
            axes = [axis for axis in (2, 3) if torch.rand((), generator=drawn) < 0.5]
            logits = network(train.images[batch].flip(axes))
            loss = functional.binary_cross_entropy_with_logits(logits, train.labels[batch]) + sim.loss()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        return scored(test.labels, network(test.images).sigmoid().numpy())


def main() -> None:
    """All seeds and arms."""
    asked = read_command(__doc__)
    table = Table(asked.out)
    train, test = read_parts(asked.files, least_images=1 if asked.smoke else LEAST_IMAGES)
    table.measure("HAM10000", "linear", TRIVIAL, 0, lambda: best_trivial(train, test))
    for seed in range(asked.seeds):
        for arm in ARMS:
            given = (arm, seed, train, test)
            table.measure(
                "HAM10000", "ResNet-8", arm, seed, lambda given=given: train_one(*given, epochs=1 if asked.smoke else EPOCHS)
            )


if __name__ == "__main__":
    main()
