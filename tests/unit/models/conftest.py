"""Small checkpoints and modules that tests write into a folder of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import nn

TINY = "test_resnet"
NETWORKS = """
from torch import nn


class Tiny(nn.Module):
    def __init__(self, num_classes=3, width=4):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1)
        self.fc = nn.Linear(width, num_classes)

    def forward(self, x):
        return self.fc(self.conv(x).relu().mean(dim=(2, 3)))


def tiny(num_classes=3, width=4):
    return Tiny(num_classes, width)


def not_a_module():
    return 1


answer = 42
"""


def tiny_timm(**kwargs: object) -> nn.Module:
    """The same small ResNet on every call, whatever the global random state."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return timm.create_model(TINY, pretrained=False, **kwargs)


def save_checkpoint(path: Path, state: dict[str, torch.Tensor], **metadata: object) -> Path:
    """A ``.safetensors`` file; values of ``metadata`` other than text are stored as JSON."""
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
    save_file(state, path, metadata=texts or None)
    return path


@pytest.fixture
def write_networks(tmp_path: Path) -> Generator[Callable[[str], Path]]:
    """Write a module of networks under a name of the test's own; forget it afterwards."""
    written: list[str] = []

    def write(name: str, source: str = NETWORKS) -> Path:
        written.append(name)
        path = tmp_path / f"{name}.py"
        path.write_text(source)
        return path

    yield write
    for name in written:
        sys.modules.pop(name, None)
