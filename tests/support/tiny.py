"""Images and networks of a user who has little of both."""

import textwrap

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

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

NORMED_MODELS = '''
import torch
from torch import nn


class Normed(nn.Module):
    """Two convolutions with a BatchNorm each, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU())
        self.block = nn.Sequential(nn.Conv2d(4, 8, 3, 2), nn.BatchNorm2d(8))
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(8, 5)

    def forward(self, images):
        return self.head(self.pool(self.block(self.stem(images))))


def normed() -> nn.Module:
    """The same weights every time, and statistics as after a training on other images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Normed()
    with torch.no_grad():
        for norm in (model.stem[1], model.block[1]):
            norm.running_mean.add_(0.1)
            norm.running_var.mul_(0.5)
            norm.num_batches_tracked.add_(9)
    model.pretrained_cfg = {"input_size": (3, 16, 16), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
    return model
'''

ZOO = """
- {name: narrow, source: "tiny_models:tiny", weights: narrow.safetensors, family: tiny}
- {name: wide, source: "tiny_models:tiny", weights: wide.safetensors, kwargs: {width: 12}, family: tiny}
"""


def make_images(folder, counts, *, size=16):
    """Noisy squares, brighter from class to class."""
    rng = np.random.default_rng(0)
    for level, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for i in range(count):
            pixels = rng.integers(0, 120, size=(size, size, 3)) + 40 * level
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{i:02d}.png")


def make_workspace(folder):
    """`images/` (two classes of 12), `tiny_models.py`, and `zoo.yaml` of two networks with weights beside it."""
    (folder / "tiny_models.py").write_text(textwrap.dedent(TINY_MODELS))
    (folder / "zoo.yaml").write_text(ZOO)
    for name, width in (("narrow", 8), ("wide", 12)):
        save_file(tiny_weights(width), folder / f"{name}.safetensors")
    make_images(folder / "images", {"benign": 12, "malignant": 12})


def tiny_weights(width):
    """Of a network that nobody has imported."""
    names: dict = {}
    exec(TINY_MODELS, names)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(width)
        return names["tiny"](width).state_dict()
