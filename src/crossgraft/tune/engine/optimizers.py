"""AdamW, Adam or SGD over the trained parameters, and its state by parameter name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.settings import TrainerSettings, schedule_of
from crossgraft.tune.protocols import Regularizer, Selection
from crossgraft.tune.schedules import Schedule, Steps


def parameter_groups(
    classifier: Classifier,
    selection: Selection,
    *,
    learning_rate: float,
    weight_decay: float,
    layer_decay: float = 1.0,
    head_learning_rate: float | None = None,
) -> list[dict[str, Any]]:
    """Sort the trained parameters into groups, deepest last.

    No weight decay acts on vectors and scalars (biases, norms) and on what the network itself excepts (timm's
    ``no_weight_decay``: positions, class tokens). A layer learns at ``learning_rate · decay^(deepest − depth)``, where the
    depth counts building blocks, what follows the last block goes with it and the head is deepest, as timm does it.

    Args:
        classifier: Its blocks give the depths.
        selection: Only what it trains is in a group, each parameter once.
        learning_rate: Learning rate of all layers without ``layer_decay``, of the head with it.
        weight_decay: Weight decay of matrices and kernels.
        layer_decay: Factor from one block to the one in front of it, in (0, 1]; 1: all layers learn alike.
        head_learning_rate: Learning rate of the head; ``learning_rate`` if None.

    Returns:
        Groups with ``params``, ``lr``, ``weight_decay``, and for people ``name`` (``depth 3, no decay``) and ``names``
        (of the parameters).

    Raises:
        UsageError: ``layer_decay`` is not in (0, 1].

    Reference: Clark, Luong, Le, Manning: ELECTRA, ICLR 2020, appendix B, for the decay over layers.
    """
    if not 0 < layer_decay <= 1:
        raise UsageError(f"The layer decay must be above 0 and at most 1, found {layer_decay}.")
    depths = classifier.depths()
    deepest = len(classifier.blocks) + 1
    excepted = _without_decay(classifier)
    groups: dict[tuple[int, bool, bool], dict[str, Any]] = {}
    for name, parameter in classifier.named_parameters():
        if name not in selection.trained:
            continue
        is_head = name.startswith("head.")
        decays = _decays(name, parameter, excepted)
        depth = deepest if layer_decay == 1 or is_head else min(depths[name], deepest - 1)
        base = head_learning_rate if is_head and head_learning_rate is not None else learning_rate
        group = groups.setdefault(
            (depth, is_head, decays),
            {
                "params": [],
                "lr": base * layer_decay ** (deepest - depth),
                "weight_decay": weight_decay if decays else 0.0,
                "name": ("head" if is_head else f"depth {depth}" if layer_decay < 1 else "body")
                + ("" if decays else ", no decay"),
                "names": [],
            },
        )
        group["params"].append(parameter)
        group["names"].append(name)
    return [groups[key] for key in sorted(groups)]


def _decays(name: str, parameter: nn.Parameter, excepted: Collection[str]) -> bool:
    return parameter.ndim > 1 and not name.endswith(".bias") and name not in excepted


def _without_decay(classifier: Classifier) -> set[str]:
    """What the network's author excepts, in timm's words."""
    excepted = getattr(classifier.body, "no_weight_decay", None)
    return {f"body.{name}" for name in cast("Collection[str]", excepted())} if callable(excepted) else set()


_ROUNDING = 1e-9


@dataclass(frozen=True)
class ScheduledRate:
    """Share of the largest learning rate at each step of a training.

    Warm-up, step ``t`` of ``w``: ``(t + 1) / (w + 1)``: above 0 from the first step on, and 1 is reached at ``t = w``, from
    which the schedule says it.

    Attributes:
        schedule: What follows warm-up.
        steps: Length of the training and of its warm-up.
    """

    schedule: Schedule
    steps: Steps

    def share(self, step: int) -> float:
        """Share at ``step``, counted from 0.

        Raises:
            UsageError: The schedule gives no share.

        >>> from crossgraft.tune.schedules import Cosine
        >>> rate = ScheduledRate(Cosine(0.0), Steps(total=5, warmup=2, per_epoch=5))
        >>> [round(rate.share(step), 3) for step in range(5)]
        [0.333, 0.667, 1.0, 0.5, 0.0]
        """
        if step < self.steps.warmup:
            return (step + 1) / (self.steps.warmup + 1)
        share = cast("object", self.schedule.share(step, self.steps))
        if not isinstance(share, int | float) or not -_ROUNDING <= share <= 1 + _ROUNDING:
            name = self.schedule.name
            raise UsageError(
                f"The schedule {name} gave {share!r} at step {step}, not a share in [0, 1]. Mend it, or choose another."
            )
        return share


def scheduled_rate(settings: TrainerSettings, steps_per_epoch: int) -> ScheduledRate:
    """The learning rate of a training with these settings; warm-up that would fill it all is cut to half of the steps."""
    total = steps_per_epoch * settings.epochs
    warmup = min(round(settings.warmup_epochs * steps_per_epoch), total // 2)
    return ScheduledRate(schedule_of(settings.schedule), Steps(total, warmup, steps_per_epoch))


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

    def restart(self) -> None:
        """Forget moments and step counts."""
        self.optimizer.state.clear()

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
        states: dict[str, dict[str, Tensor]] = {}
        for full_name, value in state.items():
            name, _, key = full_name.rpartition("|")
            states.setdefault(name, {})[key] = value
        for name, values in states.items():
            self._load_parameter(name, self.parameters[name], values)

    def _load_parameter(self, name: str, parameter: nn.Parameter, values: Mapping[str, Tensor]) -> None:
        if set(values) != _KEPT[type(self.optimizer)]:
            raise KeyError(f"{', '.join(sorted(values))} of {name}")
        for key, value in values.items():
            if value.shape != (() if key == "step" else parameter.shape):
                raise TypeError(f"{key} of {name} has the shape {tuple(value.shape)}")
            # AdamW counts its steps on the CPU, unless one operation of the GPU does all of its step
            device = "cpu" if key == "step" and not self.optimizer.defaults.get("fused") else parameter.device
            self.optimizer.state[parameter][key] = value.to(device).clone()


_MOMENTS = {"step", "exp_avg", "exp_avg_sq"}
_KEPT: dict[type[Optimizer], set[str]] = {AdamW: _MOMENTS, Adam: _MOMENTS, SGD: {"momentum_buffer"}}
"""What each optimiser keeps of a parameter."""


def make_optimizer(
    classifier: Classifier, selection: Selection, regularizers: Sequence[Regularizer], settings: TrainerSettings
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
            groups.append({"lr": settings.learning_rate, "weight_decay": settings.weight_decay, **group, "params": parameters})
            own += parameters
        named |= {f"{regularizer.name}/{number}": parameter for number, parameter in enumerate(own)}
    for group in groups:
        group[_LARGEST] = group["lr"]
    return NamedOptimizer(_build(groups, settings), named)


def _build(groups: list[dict[str, Any]], settings: TrainerSettings) -> Optimizer:
    # None: as torch does without being asked. On a CPU it rounds otherwise, and float16's scaler cannot clip beside it.
    on_gpu = all(parameter.is_cuda for group in groups for parameter in group["params"])
    fused = True if on_gpu and settings.precision != "16-mixed" else None
    if settings.optimizer == "sgd":
        momentum, nesterov = settings.momentum, settings.nesterov
        return SGD(groups, lr=settings.learning_rate, momentum=momentum, nesterov=nesterov, fused=fused)
    kind = Adam if settings.optimizer == "adam" else AdamW
    return kind(groups, lr=settings.learning_rate, betas=(0.9, 0.999), eps=1e-8, fused=fused)


def all_finite(parameters: Mapping[str, nn.Parameter]) -> bool:
    """Whether no parameter holds nan or infinity; asks the device once."""
    return not parameters or bool(torch.stack([torch.isfinite(parameter).all() for parameter in parameters.values()]).all())
