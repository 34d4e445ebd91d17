"""What is done to feature maps while training: one file each, named by the method's published name.

Other packages add theirs through the entry-point group ``crossgraft.feature_transforms``.
"""

from __future__ import annotations

from typing import Any

from crossgraft.registry import Registry
from crossgraft.tune.feature_transforms.mixstyle import MixStyle as MixStyle
from crossgraft.tune.protocols import FeatureTransform as FeatureTransform
from crossgraft.tune.protocols import TransformStart as TransformStart

FEATURE_TRANSFORMS: Registry[type[Any]] = Registry("feature transform", group="crossgraft.feature_transforms", plugin_type=type)
"""Every feature transform that is installed: the classes, whose fields are their options."""
FEATURE_TRANSFORMS.add(MixStyle.name, MixStyle)
