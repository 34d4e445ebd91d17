"""AdamW or SGD over the trained parameters, and its state by parameter name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer

from crossgraft.tune.regularizers._regularizer import Regularizer
from crossgraft.tune.settings import TrainerSettings

_LARGEST = "largest_learning_rate"


class NamedOptimizer:
    """An optimiser that knows its parameters by name.

    Attributes:
        optimizer: torch's.
        parameters: Name of each parameter → the parameter; a regulariser's own are ``<regulariser>/<number>``.
    """

    def __init__(self, optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> None:
        self.optimizer = optimizer
        self.parameters = dict(parameters)

    def set_learning_rate_share(self, share: float) -> None:
        """Give every group this share of its largest learning rate."""
        for group in self.optimizer.param_groups:
            group["lr"] = group[_LARGEST] * share

    @property
    def head_learning_rate(self) -> float:
        """Of the group of the head's weight."""
        weight = self.parameters.get("head.weight")
        of_head = (g for g in self.optimizer.param_groups if any(p is weight for p in g["params"]))
        return float(next(of_head, self.optimizer.param_groups[0])["lr"])

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts as ``<parameter>|<what>``."""
        return {
            f"{name}|{key}": value
            for name, parameter in self.parameters.items()
            for key, value in self.optimizer.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state`` gave."""
        for full_name, value in state.items():
            name, _, key = full_name.rpartition("|")
            parameter = self.parameters[name]
            device = "cpu" if key == "step" else parameter.device  # AdamW counts its steps on the CPU
            self.optimizer.state[parameter][key] = value.to(device).clone()


def make_optimizer(
    trained: Mapping[str, nn.Parameter],
    regularizers: Sequence[Regularizer],
    settings: TrainerSettings,
    scales: Mapping[str, float],
) -> NamedOptimizer:
    """One group for each pair of learning rate and weight decay, in the order of the network.

    Args:
        trained: Trained parameters by name; biases and norms (fewer than two dimensions) do not decay.
        regularizers: May bring parameters of their own.
        settings: Learning rates, decay, optimiser.
        scales: Factor of the learning rate by parameter name; 1 where a name is missing.
    """
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in trained.items():
        decay = settings.weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((_learning_rate(name, settings) * scales.get(name, 1.0), decay), []).append(parameter)
    options: list[dict[str, Any]] = [
        {"params": parameters, "lr": rate, "weight_decay": decay} for (rate, decay), parameters in groups.items()
    ]
    named = dict(trained)
    for regularizer in regularizers:
        count = 0
        for own in regularizer.parameter_groups():
            parameters = list(own["params"])
            options.append(
                {"lr": settings.learning_rate, "weight_decay": settings.weight_decay, **own, "params": parameters}
            )
            for parameter in parameters:
                named[f"{regularizer.name}/{count}"] = parameter
                count += 1
    optimizer = _build(options, settings)
    for group in optimizer.param_groups:
        group[_LARGEST] = group["lr"]
    return NamedOptimizer(optimizer, named)


def _learning_rate(name: str, settings: TrainerSettings) -> float:
    if settings.head_learning_rate is not None and name.startswith("head."):
        return settings.head_learning_rate
    return settings.learning_rate


def _build(groups: list[dict[str, Any]], settings: TrainerSettings) -> Optimizer:
    if settings.optimizer == "sgd":
        return SGD(groups, lr=settings.learning_rate, momentum=settings.momentum)
    return AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8)


def all_finite(parameters: Mapping[str, nn.Parameter]) -> bool:
    """Whether no parameter holds nan or infinity."""
    return all(bool(torch.isfinite(parameter).all()) for parameter in parameters.values())
