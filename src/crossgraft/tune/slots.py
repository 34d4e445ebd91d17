"""The slots of fine-tuning by the names that a user types."""

from __future__ import annotations

from typing import Any

from crossgraft.choice import option_fields
from crossgraft.losses import LOSSES
from crossgraft.registry import Registry
from crossgraft.tune.augmentations import AUGMENTATIONS
from crossgraft.tune.batch_transforms import BATCH_TRANSFORMS
from crossgraft.tune.feature_transforms import FEATURE_TRANSFORMS
from crossgraft.tune.methods import METHODS
from crossgraft.tune.objectives import OBJECTIVES
from crossgraft.tune.presets import PRESETS
from crossgraft.tune.regularizers import REGULARIZERS
from crossgraft.tune.schedules import SCHEDULES

_SET_ELSEWHERE = ("flip", "multi_label")
"""Options that have a flag of their own, or follow from the data."""


def slots() -> dict[str, Registry[Any]]:
    """Plural of each kind of plug-in → its registry."""
    return {
        "methods": METHODS,
        "objectives": OBJECTIVES,
        "regularizers": REGULARIZERS,
        "batch_transforms": BATCH_TRANSFORMS,
        "feature_transforms": FEATURE_TRANSFORMS,
        "augmentations": AUGMENTATIONS,
        "losses": LOSSES,
        "schedules": SCHEDULES,
        "presets": PRESETS,
    }


def options_in_words(plugin: type[Any]) -> str:
    """The options of a plug-in with their defaults, the first one first: it may stand without its name.

    >>> from crossgraft.losses import Focal
    >>> options_in_words(Focal)
    'gamma=2.0, class_weights=None'
    """
    fields = [field for field in option_fields(plugin) if field.name not in _SET_ELSEWHERE]
    return ", ".join(f"{field.name}={field.default!r}" for field in fields)
