"""What the user left open about training, chosen by method, size of the network and number of images."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from crossgraft.compute import resolve_device
from crossgraft.errors import UnknownNameError
from crossgraft.options._option import options_of
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.protocols.method import AddsAdapters

STEPS_IN_ALL = 600
"""Epochs are chosen so that about this many steps are made …"""
FEWEST_EPOCHS, MOST_EPOCHS = 10, 50
"""… within these bounds; 50 is what the thesis and RepSim (appendix A) train."""

WARMUP_EPOCHS = 5.0
WARMUP_SHARE = 0.1
"""Warm-up is 5 epochs, but at most a tenth of all."""

_BATCH_SIZES = ((64, 8), (256, 16), (2000, 32), (10_000, 64))
_LARGEST_BATCH = 128

_SMALL_NETWORK, _LARGE_NETWORK = 10_000_000, 50_000_000
_ADAMW_RATES = {"head": 3e-3, "scratch": 1e-3, "small": 1e-3, "medium": 3e-4, "large": 1e-4, "adapter": 1e-3}
_SGD_FACTOR = 10.0
"""SGD needs steps about this much larger than AdamW, which divides by the size of the gradient."""

PRECISIONS = {"32": "32-true", "64": "64-true", "bf16": "bf16-mixed", "16": "16-mixed"}
"""Short names of number types."""


def trainer_settings(options: TuneOptions, plugins: Plugins, *, num_train: int, num_parameters: int) -> TrainerSettings:
    """What was given, and a choice for what was left open.

    Raises:
        UnknownNameError: No number type has that name.
        UsageError: A value has no meaning, or the device is not there.
    """
    known = options_of(type(options))
    given = {
        each.name: getattr(options, each.name) for each in dataclasses.fields(TrainerSettings) if each.name in known
    }
    precision = str(options.precision)
    if precision not in PRECISIONS and precision not in PRECISIONS.values():
        raise UnknownNameError("precision", precision, PRECISIONS)
    given |= {
        "precision": PRECISIONS.get(precision, precision),
        "device": resolve_device(options.device),
        "num_processes": options.devices,
        "checkpoint_every_steps": options.checkpoint_every,
    }
    return choose_settings(given, plugins, num_train=num_train, num_parameters=num_parameters)


def choose_settings(
    given: Mapping[str, Any], plugins: Plugins, *, num_train: int, num_parameters: int
) -> TrainerSettings:
    """Settings of the trainer: what was given, and for the rest (None or absent) defaults that suit.

    - ``batch_size``: 8 below 64 training images, 16 below 256, 32 below 2000, 64 below 10 000, then 128.
    - ``epochs``: about 600 steps in all, but 10 to 50 epochs. A CPU makes 600 steps of a MobileNet at 64 pixels in minutes.
    - ``learning_rate`` of AdamW: 3e-3 for the head alone, 1e-3 from scratch, for adapters and for networks below 10 million
      parameters, 3e-4 below 50 million, 1e-4 above; ten times that for SGD.
    - ``weight_decay``: 0.05; 0 beside L2-SP, which is a decay of its own (toward the pretrained weights).
    - ``warmup_epochs``: 5, at most a tenth of the epochs. The learning rate then falls along a cosine.

    Raises:
        UsageError: A value has no meaning.
    """
    values = {name: value for name, value in given.items() if value is not None}
    batch_size = values.setdefault("batch_size", _batch_size(num_train))
    epochs = values.setdefault("epochs", _epochs(num_train, batch_size))
    values.setdefault("learning_rate", _learning_rate(plugins, num_parameters, str(values.get("optimizer", "adamw"))))
    values.setdefault(
        "weight_decay", 0.0 if any(getattr(each, "decays_weights", False) for each in plugins.regularizers) else 0.05
    )
    values.setdefault("warmup_epochs", warmup_epochs(epochs))
    return TrainerSettings(**values)


def warmup_epochs(epochs: int) -> float:
    """Default of the warm-up for a training of so many epochs."""
    return min(WARMUP_EPOCHS, WARMUP_SHARE * epochs)


def _batch_size(num_train: int) -> int:
    return next((size for below, size in _BATCH_SIZES if num_train < below), _LARGEST_BATCH)


def _epochs(num_train: int, batch_size: int) -> int:
    wanted = round(STEPS_IN_ALL / math.ceil(num_train / max(1, batch_size)))
    return min(max(wanted, FEWEST_EPOCHS), MOST_EPOCHS)


def _learning_rate(plugins: Plugins, num_parameters: int, optimizer: str) -> float:
    if plugins.method.features_are_fixed:
        kind = "head"
    elif plugins.method.starts_from_scratch:
        kind = "scratch"
    elif isinstance(plugins.method, AddsAdapters):
        kind = "adapter"
    elif num_parameters < _SMALL_NETWORK:
        kind = "small"
    else:
        kind = "medium" if num_parameters < _LARGE_NETWORK else "large"
    return _ADAMW_RATES[kind] * (_SGD_FACTOR if optimizer == "sgd" else 1)
