"""What the name of a network says: architecture, family, ImageNet top-1 and size."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import numpy as np

from crossgraft.models.spec import TORCHVISION_PREFIX, family_of
from crossgraft.rank.published.tables import imagenet_results

TOP1_CENTRE_PERCENT, TOP1_UNIT_PERCENT = 80.0, 5.0
SIZE_CENTRE_MILLIONS = 25.0


class Described(NamedTuple):
    """What the model takes from the name of a network."""

    name: str
    architecture: str
    family: str
    top1: float
    size: float
    is_known_to_imagenet: bool


@cache
def described(name: str) -> Described:
    """Architecture, family, top-1 and size that a name stands for.

    A name without a tag has the ImageNet result of its architecture's best-known weights only where there is one. The name of a
    network of the hub is free text; its family is the first word of it that is one of the families with an ImageNet result.
    """
    architecture = name.removeprefix(TORCHVISION_PREFIX).rpartition("/")[2].partition(".")[0]
    result = imagenet_results().get(name) or imagenet_results().get(f"{TORCHVISION_PREFIX}{name}")
    if result is None:
        words = re.split(r"[^a-z0-9]+", architecture.lower())
        family = next((word for word in words if word in _families()), family_of(architecture))
        return Described(name, architecture, family, 0.0, 0.0, False)
    top1 = (result.top1_percent - TOP1_CENTRE_PERCENT) / TOP1_UNIT_PERCENT
    size = float(np.log10(result.parameters_millions / SIZE_CENTRE_MILLIONS))
    return Described(name, architecture, family_of(architecture), top1, size, True)


@cache
def _families() -> frozenset[str]:
    return frozenset(family_of(name) for name in imagenet_results())
