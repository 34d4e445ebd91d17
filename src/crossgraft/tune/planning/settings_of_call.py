"""The trainer's settings from the arguments of ``fine_tune``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crossgraft.compute import resolve_device
from crossgraft.errors import UnknownNameError
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.defaults import choose_settings

PRECISIONS = {"32": "32-true", "64": "64-true", "bf16": "bf16-mixed", "16": "16-mixed"}
"""Short names of number types."""

_OF_TRAINER = (
    "epochs", "batch_size", "learning_rate", "head_learning_rate", "weight_decay", "optimizer", "momentum",
    "warmup_epochs", "schedule", "layer_decay", "accumulate", "clip_norm", "patience", "head_first", "head_epochs",
    "head_patience", "seed",
)  # fmt: skip
"""Arguments that are settings of the trainer under the same name."""


def settings_of_call(
    call: Mapping[str, Any], plugins: Plugins, *, num_train: int, num_parameters: int
) -> TrainerSettings:
    """What was given, and a choice for what was left open.

    Raises:
        UnknownNameError: No number type has that name.
        UsageError: A value has no meaning, or the device is not there.
    """
    given = {name: call[name] for name in _OF_TRAINER}
    precision = str(call["precision"])
    if precision not in PRECISIONS and precision not in PRECISIONS.values():
        raise UnknownNameError("precision", precision, PRECISIONS)
    given |= {
        "precision": PRECISIONS.get(precision, precision),
        "device": resolve_device(call["device"]),
        "num_processes": call["devices"],
        "checkpoint_every_steps": call["checkpoint_every"],
    }
    return choose_settings(given, plugins, num_train=num_train, num_parameters=num_parameters)
