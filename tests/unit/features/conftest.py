"""A data set of few pixels, a backbone of few weights, and shards of few rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from crossgraft.features import store
from crossgraft.models import Backbone
from crossgraft.types import Preprocessing

ROWS = 8


class Images:
    """Random images in memory; counts how often each is read."""

    def __init__(self, number: int = 20, *, seed: int = 0) -> None:
        self.pixels = np.random.default_rng(seed).integers(0, 256, (number, 6, 6, 3), dtype=np.uint8)
        self.fingerprint = f"images {number} {seed}"
        self.reads: list[int] = []

    def __len__(self) -> int:
        return len(self.pixels)

    def read(self, index: int) -> np.ndarray:
        self.reads.append(index)
        return self.pixels[index]

    def image_name(self, index: int) -> str:
        return f"image_{index}.png"


class Net(nn.Module):
    """Two layers; ``largest_batch`` plays a small memory, ``calls`` counts forward passes by batch size."""

    def __init__(self, num_classes: int = 3) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.body = nn.Conv2d(3, 5, 3)
            self.fc = nn.Linear(5, num_classes) if num_classes else nn.Identity()
        self.largest_batch = 10**9
        self.calls: list[int] = []

    def forward_features(self, images: torch.Tensor) -> torch.Tensor:
        if len(images) > self.largest_batch:
            raise self.memory_error()
        self.calls.append(len(images))
        return self.body(images).tanh().mean((2, 3))

    def memory_error(self) -> Exception:
        return torch.OutOfMemoryError("CUDA out of memory.")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.fc(self.forward_features(images))


def make_backbone(module: nn.Module | None = None, *, name: str = "net") -> Backbone:
    module = module or Net()
    backbone = Backbone(
        module,
        name=name,
        architecture="net",
        source="factory",
        family="net",
        preprocessing=Preprocessing(height_pixels=6, width_pixels=6),
    )
    if isinstance(module, Net):
        module.calls.clear()
    return backbone


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three shards for twenty images."""
    monkeypatch.setattr(store, "ROWS_PER_SHARD", ROWS)
    monkeypatch.setattr("crossgraft.features.extract.ROWS_PER_SHARD", ROWS)


def only_folder(cache: Path) -> Path:
    """The folder of the one key in ``cache``."""
    (folder,) = {path.parent for path in cache.rglob("*") if path.is_file()}
    return folder
