"""Two small backbones for 8×8 grey images: a convolutional network and a vision transformer.

They speak timm's words (``forward_features``, ``forward_head``, ``num_features``, ``reset_classifier``), so
that a zoo file can name them as factories: ``crossgraft.demo.toy_models:toy_cnn``. Their sizes are chosen so
that pretraining one takes about two seconds of one core; they are toys, and nothing measured on them says how
real backbones behave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from crossgraft.types import Preprocessing

IMAGE_PIXELS = 8
PREPROCESSING = Preprocessing(IMAGE_PIXELS, IMAGE_PIXELS, channels=1, mean=(0.5,), std=(0.5,), resize_policy="squash")
"""How images become inputs, in pretraining, ranking and fine-tuning alike."""


class ToyBackbone(nn.Module, ABC):
    """What both toy networks share: pooled features and a linear head.

    Args:
        num_features: Length of the penultimate features.
        num_classes: Outputs of the head; 0 leaves the head out.
    """

    default_cfg: dict[str, object]

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.num_features = num_features
        self.default_cfg = {
            "input_size": (PREPROCESSING.channels, PREPROCESSING.height_pixels, PREPROCESSING.width_pixels),
            "mean": PREPROCESSING.mean,
            "std": PREPROCESSING.std,
            "interpolation": PREPROCESSING.interpolation,
            "crop_pct": PREPROCESSING.crop_fraction,
            "resize_policy": PREPROCESSING.resize_policy,
        }
        self.reset_classifier(num_classes)

    def reset_classifier(self, num_classes: int) -> None:
        """Replace the head by a fresh one with ``num_classes`` outputs."""
        self.num_classes = num_classes
        self.fc = nn.Linear(self.num_features, num_classes) if num_classes > 0 else nn.Identity()

    def get_classifier(self) -> nn.Module:
        """The head."""
        return self.fc

    @abstractmethod
    def forward_features(self, x: Tensor) -> Tensor:
        """Features with their spatial (or token) axes."""

    @abstractmethod
    def pool(self, features: Tensor) -> Tensor:
        """Reduce ``forward_features`` to one vector an image."""

    def forward_head(self, x: Tensor, pre_logits: bool = False) -> Tensor:
        """Pool ``forward_features`` and, unless ``pre_logits``, apply the head."""
        pooled = self.pool(x)
        return pooled if pre_logits else self.fc(pooled)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (num_samples, num_classes) of images (num_samples, 1, 8, 8)."""
        return self.forward_head(self.forward_features(x))


class ToyCnn(ToyBackbone):
    """Four 3×3 convolutions with batch normalisation, two with stride 2, then the mean over positions."""

    def __init__(self, num_classes: int = 0, *, width: int = 24) -> None:
        super().__init__(4 * width, num_classes)
        self.stem = _convolution(1, width, stride=1)
        self.stage1 = _convolution(width, 2 * width, stride=2)
        self.stage2 = _convolution(2 * width, 2 * width, stride=1)
        self.stage3 = _convolution(2 * width, 4 * width, stride=2)

    def forward_features(self, x: Tensor) -> Tensor:
        """Feature maps (num_samples, num_features, 2, 2)."""
        return self.stage3(self.stage2(self.stage1(self.stem(x))))

    def pool(self, features: Tensor) -> Tensor:
        """Mean over positions."""
        return features.mean(dim=(2, 3))


class ToyViT(ToyBackbone):
    """Sixteen patches of 2×2 pixels, learned positions, pre-norm blocks, then the mean over tokens."""

    def __init__(
        self, num_classes: int = 0, *, width: int = 48, depth: int = 2, num_heads: int = 4, patch_pixels: int = 2
    ) -> None:
        super().__init__(width, num_classes)
        num_patches = (IMAGE_PIXELS // patch_pixels) ** 2
        self.patch_embed = nn.Conv2d(1, width, patch_pixels, stride=patch_pixels)
        self.pos_embed = nn.Parameter(0.2 * torch.randn(1, num_patches, width))
        self.blocks = nn.Sequential(*(_TransformerBlock(width, num_heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)

    def forward_features(self, x: Tensor) -> Tensor:
        """Tokens (num_samples, 16, num_features)."""
        tokens = self.patch_embed(x).flatten(2).transpose(1, 2) + self.pos_embed
        return self.norm(self.blocks(tokens))

    def pool(self, features: Tensor) -> Tensor:
        """Mean over tokens."""
        return features.mean(dim=1)


class _TransformerBlock(nn.Module):
    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self._attend(self.norm1(tokens))
        return tokens + self.mlp(self.norm2(tokens))

    def _attend(self, tokens: Tensor) -> Tensor:
        samples, length, width = tokens.shape
        heads = self.qkv(tokens).view(samples, length, 3, self.num_heads, width // self.num_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = scaled_dot_product_attention(query, key, value)
        return self.proj(mixed.transpose(1, 2).reshape(samples, length, width))


def _convolution(in_channels: int, out_channels: int, *, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU()
    )


def toy_cnn(num_classes: int = 0, *, width: int = 24) -> ToyCnn:
    """The toy CNN (about 73 000 parameters)."""
    return ToyCnn(num_classes, width=width)


def toy_vit(num_classes: int = 0, *, width: int = 48, depth: int = 2) -> ToyViT:
    """The toy ViT (about 39 000 parameters)."""
    return ToyViT(num_classes, width=width, depth=depth)


class _ToyFactory(Protocol):
    def __call__(self, num_classes: int = 0) -> ToyBackbone: ...


TOY_MODELS: Mapping[str, _ToyFactory] = {"toy_cnn": toy_cnn, "toy_vit": toy_vit}
