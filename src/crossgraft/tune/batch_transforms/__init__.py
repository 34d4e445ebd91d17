"""What is done to a batch: one file each, named by the method's published name.

Every transform is a function of images, soft targets and a generator: ``Mixup(alpha=0.4)(images, targets, generator)``.
Other packages add theirs through the entry-point group ``crossgraft.batch_transforms``.
"""

from __future__ import annotations

from crossgraft.registry import Registry
from crossgraft.tune.batch_transforms.cutmix import CutMix as CutMix
from crossgraft.tune.batch_transforms.label_smoothing import LabelSmoothing as LabelSmoothing
from crossgraft.tune.batch_transforms.mixup import Mixup as Mixup
from crossgraft.tune.image_protocols import BatchTransform as BatchTransform

BATCH_TRANSFORMS: Registry[type[BatchTransform]] = Registry(
    "batch transform", group="crossgraft.batch_transforms", plugin_type=type
)
"""Every batch transform that is installed."""

BATCH_TRANSFORMS.add("mixup", Mixup)
BATCH_TRANSFORMS.add("cutmix", CutMix)
BATCH_TRANSFORMS.add("label_smoothing", LabelSmoothing)
