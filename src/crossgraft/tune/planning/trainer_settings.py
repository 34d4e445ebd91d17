"""The trainer's settings from the options of ``fine_tune``."""

from __future__ import annotations

import dataclasses

from crossgraft.compute import resolve_device
from crossgraft.errors import UnknownNameError
from crossgraft.options import TuneOptions, options_of
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.defaults import choose_settings

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
