"""Classifiers of three families that take 32 pixels and train in no time; built once, copied for every test."""

import copy
from functools import cache

import torch
from timm.models import ConvNeXt, VisionTransformer
from torch import nn

from crossgraft.models.backbone import Backbone
from crossgraft.models.classifier import make_classifier
from crossgraft.types import Preprocessing

SIZE = 32


class SmallCnn(nn.Module):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 3, 2, bias=False)  # in front of a BatchNorm a bias has no gradient
        self.norm = nn.BatchNorm2d(6)
        self.block = nn.Conv2d(6, 8, 3, 2)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(8, 5)

    def forward(self, images):
        maps = torch.relu(self.block(torch.relu(self.norm(self.stem(images)))))
        return self.fc(self.drop(maps.mean((2, 3))))


def _build(name):
    if name == "vit":
        return VisionTransformer(
            img_size=SIZE, patch_size=16, embed_dim=16, depth=3, num_heads=2, num_classes=5, global_pool="token"
        )
    if name == "convnext":
        return ConvNeXt(depths=(1, 1, 1, 1), dims=(8, 8, 16, 16), ls_init_value=1.0, num_classes=5)
    return SmallCnn(dropout=0.5 if name == "dropout" else 0.0)


def wrap(module, size=SIZE, num_outputs=3):
    facts = {"name": "own", "architecture": "own", "source": "factory", "family": "own"}
    return make_classifier(Backbone(module, preprocessing=Preprocessing(size, size), **facts), num_outputs, seed=0)


@cache
def _classifier(name):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return wrap(_build(name))


def small_classifier(name):
    """``cnn`` (with BatchNorm), ``dropout`` (the same with dropout), ``vit`` or ``convnext``; random weights."""
    return copy.deepcopy(_classifier(name))
