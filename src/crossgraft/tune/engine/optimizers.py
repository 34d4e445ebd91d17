"""AdamW or SGD over the trained parameters, and its state by parameter name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.layer_decay import parameter_groups
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.protocols.method import Selection
from crossgraft.tune.protocols.regularizer import Regularizer

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
        """Learning rate of the group of the head's weight."""
        weight = self.parameters.get("head.weight")
        of_head = (g for g in self.optimizer.param_groups if any(p is weight for p in g["params"]))
        return float(next(of_head, self.optimizer.param_groups[0])["lr"])

    def learning_rates(self) -> dict[str, float]:
        """Name of each parameter → its learning rate now."""
        rates = {id(p): float(group["lr"]) for group in self.optimizer.param_groups for p in group["params"]}
        return {name: rates[id(parameter)] for name, parameter in self.parameters.items()}

    def state(self) -> dict[str, Tensor]:
        """Moments and step counts as ``<parameter>|<what>``."""
        return {
            f"{name}|{key}": value
            for name, parameter in self.parameters.items()
            for key, value in self.optimizer.state.get(parameter, {}).items()
            if isinstance(value, Tensor)
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state`` gave.

        Raises:
            KeyError: It is of other parameters, or of another optimiser.
            TypeError: A tensor has another shape than its parameter.
        """
        found: dict[str, dict[str, Tensor]] = {}
        for full_name, value in state.items():
            name, _, key = full_name.rpartition("|")
            found.setdefault(name, {})[key] = value
        for name, values in found.items():
            self._load_parameter(name, self.parameters[name], values)

    def _load_parameter(self, name: str, parameter: nn.Parameter, values: Mapping[str, Tensor]) -> None:
        if set(values) != _KEPT[type(self.optimizer)]:
            raise KeyError(f"{', '.join(sorted(values))} of {name}")
        for key, value in values.items():
            if value.shape != (() if key == "step" else parameter.shape):
                raise TypeError(f"{key} of {name} has the shape {tuple(value.shape)}")
            device = "cpu" if key == "step" else parameter.device  # AdamW counts its steps on the CPU
            self.optimizer.state[parameter][key] = value.to(device).clone()


_MOMENTS = {"step", "exp_avg", "exp_avg_sq"}
_KEPT: dict[type[Optimizer], set[str]] = {AdamW: _MOMENTS, Adam: _MOMENTS, SGD: {"momentum_buffer"}}
"""What each optimiser keeps of a parameter."""


def make_optimizer(
    classifier: Classifier,
    selection: Selection,
    regularizers: Sequence[Regularizer],
    settings: TrainerSettings,
) -> NamedOptimizer:
    """The trained parameters, then the regularisers' own; each group keeps its largest learning rate.

    Args:
        classifier: Its trained parameters are grouped by ``parameter_groups``: layer-wise decay, no decay of vectors.
        selection: What is trained.
        regularizers: May bring parameters of their own; what their groups do not say is as in the settings.
        settings: Learning rates, decay, optimiser.
    """
    groups = parameter_groups(
        classifier,
        selection,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        layer_decay=settings.layer_decay,
        head_learning_rate=settings.head_learning_rate,
    )
    named = {name: parameter for name, parameter in classifier.named_parameters() if name in selection.trained}
    for regularizer in regularizers:
        own: list[nn.Parameter] = []
        for group in regularizer.parameter_groups():
            parameters = list(group["params"])
            groups.append(
                {"lr": settings.learning_rate, "weight_decay": settings.weight_decay, **group, "params": parameters}
            )
            own += parameters
        named |= {f"{regularizer.name}/{number}": parameter for number, parameter in enumerate(own)}
    for group in groups:
        group[_LARGEST] = group["lr"]
    return NamedOptimizer(_build(groups, settings), named)


def _build(groups: list[dict[str, Any]], settings: TrainerSettings) -> Optimizer:
    if settings.optimizer == "sgd":
        return SGD(groups, lr=settings.learning_rate, momentum=settings.momentum)
    return AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8)


def all_finite(parameters: Mapping[str, nn.Parameter]) -> bool:
    """Whether no parameter holds nan or infinity."""
    return all(bool(torch.isfinite(parameter).all()) for parameter in parameters.values())
