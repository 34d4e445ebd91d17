"""How a network is built and how it was pretrained, in a word each (Figure 1 of ITM compares rankings by both)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from torch import nn

from crossgraft.models import ModelSpec

_ATTENTION = re.compile(r"attention|attn", re.IGNORECASE)
_OF_CHANNELS = re.compile(r"channel|spatial|eca|cbam|squeeze|pool", re.IGNORECASE)
"""Attention of other kinds: it weights channels or a whole map, as in convolutional networks."""
_FEWEST_CONVOLUTIONS = 4
"""A stem of a transformer has fewer that look at neighbours."""

_WAYS = (  # the first that fits; \b and _ part the words of a tag
    ("masked images", r"mae|simmim|beit|beitv2|mim|ijepa|eva|eva02"),
    ("instance discrimination", r"dino|dinov2|dinov3|moco|mocov3|simclr|swav|byol|ssl|swsl|barlow"),
    ("images and text", r"clip|openai|laion\w*|siglip\w*|webli|datacomp\w*|dfn\w*|metaclip\w*"),
)
UNKNOWN = "not said"


def architecture_kind(module: nn.Module) -> str:
    """Whether places of an image meet by attention, by convolutions, or by both, as the layers tell.

    >>> architecture_kind(nn.Sequential(*(nn.Conv2d(3, 3, 3) for _ in range(4))))
    'convolutional'
    """
    classes = {type(layer).__name__ for layer in module.modules()}
    attends = any(_ATTENTION.search(name) and not _OF_CHANNELS.search(name) for name in classes)
    convolutions = [layer for layer in module.modules() if isinstance(layer, nn.Conv2d) and max(layer.kernel_size) > 1]
    convolves = len(convolutions) >= _FEWEST_CONVOLUTIONS
    if attends:
        return "attention and convolutions" if convolves else "transformer"
    return "convolutional" if convolutions else "other"


def pretraining_kind(spec: ModelSpec, source: str, module: nn.Module) -> str:
    """What the zoo says, else what the tag of timm's weights tells; ``not said`` for other files and functions."""
    if spec.pretraining is not None:
        return spec.pretraining
    if spec.has_checkpoint or source not in ("timm", "torchvision"):
        return UNKNOWN
    config = cast("Mapping[str, Any]", getattr(module, "pretrained_cfg", {}))
    return pretraining_of_tag(str(config.get("tag") or ""))


def pretraining_of_tag(tag: str) -> str:
    """The way of pretraining that the tag of weights names; labels alone where it names none.

    >>> [pretraining_of_tag(tag) for tag in ("mae", "lvd142m.dinov2", "openai_ft_in1k", "a1_in1k", "")]
    ['masked images', 'instance discrimination', 'images and text', 'labels', 'labels']
    """
    words = re.split(r"[._-]", tag.lower())
    return next((way for way, names in _WAYS if any(re.fullmatch(names, word) for word in words)), "labels")
