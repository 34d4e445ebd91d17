"""What is done to an image: one file each, named by the method's published name.

Every augmentation is a function of a batch of images in [0, 1] and a generator: ``Light(flip=False)(images, generator)``.
Other packages add theirs through the entry-point group ``crossgraft.augmentations``.
"""

from __future__ import annotations

from crossgraft.registry import Registry
from crossgraft.tune.augmentations.light import Light as Light
from crossgraft.tune.augmentations.none import NoAugmentation as NoAugmentation
from crossgraft.tune.augmentations.thesis import Thesis as Thesis
from crossgraft.tune.image_protocols import Augmentation as Augmentation
from crossgraft.tune.image_protocols import UnitImages as UnitImages

AUGMENTATIONS: Registry[type[Augmentation]] = Registry("augmentation", group="crossgraft.augmentations", plugin_type=type)
"""Every augmentation that is installed."""

AUGMENTATIONS.add("none", NoAugmentation)
AUGMENTATIONS.add("light", Light)
AUGMENTATIONS.add("thesis", Thesis)
