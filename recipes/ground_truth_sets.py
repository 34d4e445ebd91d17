"""The sets of the trained table: at most 100 training images of each class, and parts that share no image and no group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from fewshot_sets import brain, busi, ham10000, medical_mnist, omniglot
from fewshot_student import cifar_train
from PIL import Image
from studies import noise

from crossgraft.data import Dataset, dataset_from_arrays, limit_rows, make_split
from crossgraft.data.splits import PARTS

MOST_VAL, MOST_TEST = 160, 400
SHARES = {"train": 0.55, "val": 0.15, "test": 0.3}
LEAST_SIDE = 96
"""Larger pictures are made smaller once, to this length of their shorter side: no network gets more than 64 pixels."""


class TargetSet(NamedTuple):
    """One labelled set.

    Attributes:
        name: For files.
        title: For people.
        opened: Reads all of it from the folder of data, with its splits where it has some.
        per_class: Largest number of training images of each class.
        group: Sets of one group have images in common.
        unfit: Pretraining data, as zoo files say it, that have images or classes of this set.
    """

    name: str
    title: str
    opened: Callable[[Path], Dataset]
    per_class: int = 100
    group: str = ""
    unfit: tuple[str, ...] = ()


def medmnist(name: str) -> Callable[[Path], Dataset]:
    """A set of MedMNIST with its own splits."""

    def opened(folder: Path) -> Dataset:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as stored:
            images, labels = (np.concatenate([stored[f"{part}_{what}"] for part in PARTS]) for what in ("images", "labels"))
            sizes = [len(stored[f"{part}_labels"]) for part in PARTS]
        whole = dataset_from_arrays(images, labels.ravel(), name=name)
        return replace(whole, splits=np.repeat(PARTS, sizes), split_method="as published")

    return opened


def greek(folder: Path) -> Dataset:
    """The 24 characters of one alphabet of Omniglot, 20 drawings each."""
    images = omniglot(folder)
    return images.dataset.take(np.asarray(images.superclasses) == "Greek")


def parts_of(target: TargetSet, folder: Path) -> Dataset:
    """The images that trainings of this set see, each with its part; the same for all networks and seeds.

    An image of val or test that is also in an earlier part of test, val, train is left out of the later one.
    """
    whole = target.opened(folder)
    groups, targets = whole.groups, whole.targets
    parts = make_split(targets, groups, fractions=SHARES, seed=0).part_names() if whole.splits is None else whole.splits
    rows = np.flatnonzero(first_of_each(whole, parts))
    kept = np.sort(np.concatenate([_chosen(targets, rows[parts[rows] == part], part, target) for part in PARTS]))
    images = [smaller(whole.read(row)) for row in kept]
    labels = np.asarray(whole.class_names)[targets[kept]]
    found = dataset_from_arrays(images, labels, groups=None if groups is None else groups[kept], name=target.name)
    how = "as published" if whole.splits is not None else "drawn once"
    return replace(found, splits=parts[kept], split_method=f"{how}, at most {target.per_class} training images a class")


def first_of_each(whole: Dataset, parts: np.ndarray) -> np.ndarray:
    """(n,) is no image of test, nor of val before it for train, the same pixel by pixel?"""
    seen: set[bytes] = set()
    first = np.zeros(len(whole), dtype=bool)
    for part in reversed(PARTS):
        pixels = {row: whole.read(row).tobytes() for row in np.flatnonzero(parts == part)}
        for row, content in pixels.items():
            first[row] = content not in seen
        seen |= set(pixels.values())
    return first


def _chosen(targets: np.ndarray, rows: np.ndarray, part: str, target: TargetSet) -> np.ndarray:
    """Training images of each class; of val and test as many as decide and measure in seconds."""
    if part == "train":
        classes = [rows[targets[rows] == each] for each in np.unique(targets[rows])]
        return np.concatenate([_spread(each, target.per_class) for each in classes])
    most = MOST_VAL if part == "val" else MOST_TEST
    return rows if len(rows) <= most else rows[limit_rows(targets[rows], most, seed=0)]


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most so many rows, at equal distances: sets are sorted by nothing that they are asked about within a class."""
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).round().astype(int)]


def smaller(image: np.ndarray) -> np.ndarray:
    """Bring the shorter side to ``LEAST_SIDE`` where it is longer."""
    factor = LEAST_SIDE / min(image.shape[:2])
    if factor >= 1:
        return image
    size = [round(side * factor) for side in image.shape[1::-1]]
    picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    return np.asarray(picture.resize(size, Image.Resampling.BOX))


def smoke_noise(_: Path) -> Dataset:
    """60 images of nothing."""
    return noise("noise")


SETS: Sequence[TargetSet] = (
    TargetSet("breastmnist", "BreastMNIST", medmnist("breastmnist"), group="breast ultrasound"),
    TargetSet("brain_mri", "Brain MRI, by look", brain),
    TargetSet("retinamnist", "RetinaMNIST", medmnist("retinamnist")),
    TargetSet("omniglot_greek", "Omniglot, Greek", greek, unfit=("Omniglot",)),
    TargetSet("busi", "BUSI, by look", lambda folder: busi(folder).dataset, group="breast ultrasound"),
    TargetSet("pneumoniamnist", "PneumoniaMNIST", medmnist("pneumoniamnist"), unfit=("PneumoniaMNIST",)),
    TargetSet("ham10000", "HAM10000, by lesion", lambda folder: ham10000(folder).dataset),
    TargetSet("medical_mnist", "Medical MNIST", lambda folder: medical_mnist(folder).dataset, per_class=20),
    TargetSet("cifar10", "CIFAR-10", cifar_train, per_class=40, unfit=("CIFAR-10",)),
)
"""In the order in which they are trained. Medical MNIST, which is easy, and CIFAR-10, with its ten classes, have fewer images."""
SMOKE_SETS: Sequence[TargetSet] = (TargetSet("noise", "Noise", smoke_noise, per_class=20),)
