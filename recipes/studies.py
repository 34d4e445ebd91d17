"""What the studies of fine-tuning share: sets, networks, and how differences between methods are told."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy import stats

from crossgraft.data.dataset import Dataset, dataset_from_arrays
from crossgraft.models import ModelSpec, read_zoo
from crossgraft.seeding import generator

EXAMPLES = Path(__file__).parents[1] / "examples" / "own_models"
MODELS = ("mobilenetv1_050 · ImageNet", "mobilenetv2_035 · ImageNet")
SEEDS = (0, 1, 2)


class Target(NamedTuple):
    """One labelled set with its own splits.

    Attributes:
        name: For files.
        title: For people.
        file: In the folder of data.
        options: Of ``fine_tune``.
        opened: Reads it from that folder, where it is more than a file.
    """

    name: str
    title: str
    file: str
    options: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    opened: Callable[[Path], Dataset] | None = None


MEDICAL_TARGETS = (
    Target("breastmnist", "BreastMNIST", "breastmnist.npz"),
    Target("pneumoniamnist", "PneumoniaMNIST", "pneumoniamnist.npz", {"per_class": 300}),
    Target("retinamnist", "RetinaMNIST", "retinamnist.npz", {"limit": 1450}),
)
"""Cut to at most about 1000 training images, so that a study of many trainings ends on a small machine."""
SMOKE_TARGETS = (Target("noise", "Noise", ""),)


class Difference(NamedTuple):
    """Mean difference between two methods over pairs of set and network."""

    mean: float
    low: float
    high: float
    ahead: int
    pairs: int


def difference_of(gaps: Sequence[float]) -> Difference | None:
    """Mean of paired differences with a 95 % interval (Student's t); None of fewer than two."""
    if len(gaps) < 2:
        return None
    mean, half = statistics.fmean(gaps), half_width(gaps)
    return Difference(mean, mean - half, mean + half, sum(gap > 0 for gap in gaps), len(gaps))


def half_width(values: Sequence[float]) -> float:
    """Of the 95 % interval of a mean (Student's t), for two values or more."""
    return float(stats.t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


def verdict(found: Difference) -> str:
    """Does the ordering hold?"""
    ahead = f"ahead in {found.ahead} of {found.pairs} pairs"
    if found.low > 0:
        return f"holds, {ahead}, and the interval of the mean difference excludes 0"
    if found.high < 0:
        return f"the opposite shows, {ahead}, and the interval of the mean difference excludes 0"
    return f"not decided, {ahead}; the interval of the mean difference contains 0"


def device_name(device: str) -> str:
    """Of a GPU of NVIDIA its product name."""
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


def mobilenets(weights_dir: Path) -> list[ModelSpec]:
    """The two small ones with ImageNet weights."""
    specs = read_zoo(EXAMPLES / "mobilenets.yaml", weights_dir=weights_dir, allow_code=EXAMPLES)
    return [spec for spec in specs if spec.name in MODELS]


def smoke_specs() -> list[ModelSpec]:
    """A small network without any file, as its factory builds it."""
    said = {"input_size": [3, 16, 16], "mean": [0.5] * 3, "std": [0.5] * 3}
    return [ModelSpec("resnet20 · as built", "cifar_resnet:resnet20", preprocessing=said, folder=EXAMPLES)]


def noise(name: str) -> Dataset:
    rng = generator(0, name)
    images = rng.integers(0, 256, (60, 28, 28), dtype=np.uint8)
    return dataset_from_arrays(images, np.arange(60) % 2, name=name)


def short(spec: ModelSpec) -> str:
    return spec.name.partition(" ")[0]
