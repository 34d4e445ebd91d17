"""A folder to work in, with coloured squares as images and a zoo of two tiny networks."""

import textwrap
from dataclasses import dataclass

import numpy as np
import pytest
from PIL import Image

from crossgraft.cli.main import main

TINY_MODELS = '''
import torch
from torch import nn


class Tiny(nn.Module):
    """Two convolutions and a head: what a user's own model looks like."""

    num_features = 8

    def __init__(self, width: int = 8, num_classes: int = 5) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, width, 3, 2), nn.ReLU())
        self.head = nn.Linear(width, num_classes)
        self.num_features = width

    def forward_features(self, images):
        return self.body(images)

    def forward_head(self, feature_map, pre_logits: bool = False):
        pooled = feature_map.mean((2, 3))
        return pooled if pre_logits else self.head(pooled)

    def forward(self, images):
        return self.forward_head(self.forward_features(images))


def tiny(width: int = 8) -> nn.Module:
    model = Tiny(width)
    model.pretrained_cfg = {"input_size": (3, 16, 16), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    return model


def broken(width: int = 8) -> nn.Module:
    model = tiny(width)
    with torch.no_grad():
        model.body[2].bias.fill_(float("nan"))
    return model
'''

ZOO = """
- {name: narrow, source: "tiny_models:tiny", weights: narrow.safetensors, family: tiny}
- {name: wide, source: "tiny_models:tiny", weights: wide.safetensors, kwargs: {width: 12}, family: tiny}
"""


@dataclass
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The current folder: `images/` (two classes of 12), `zoo.yaml`, `tiny_models.py`, weights."""
    import sys

    import torch
    from safetensors.torch import save_file

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)
    (tmp_path / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
    (tmp_path / "zoo.yaml").write_text(ZOO)
    import tiny_models

    for name, width in (("narrow", 8), ("wide", 12)):
        with torch.random.fork_rng():
            torch.manual_seed(width)
            save_file(tiny_models.tiny(width).state_dict(), tmp_path / f"{name}.safetensors")
    make_images(tmp_path / "images", {"benign": 12, "malignant": 12})
    yield tmp_path
    sys.modules.pop("tiny_models", None)


def make_images(folder, counts, *, size=16):
    """Noisy squares, brighter from class to class."""
    rng = np.random.default_rng(0)
    for level, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            pixels = rng.integers(0, 120, size=(size, size, 3)) + 40 * level
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{i:02d}.png")


@pytest.fixture
def crossgraft(capsys):
    """Run a command in this process: `crossgraft("rank", "images")`."""

    def run(*arguments) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run
