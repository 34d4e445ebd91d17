"""What a person can set about training, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from crossgraft.errors import UnknownNameError, UsageError

OptimizerName = Literal["adamw", "sgd"]
ScheduleName = Literal["cosine", "constant"]
Precision = Literal["32-true", "bf16-mixed", "16-mixed", "64-true"]


@dataclass(frozen=True)
class TrainerSettings:
    """How long, how fast and where a network is trained.

    Attributes:
        epochs: Passes over the training images, at most.
        batch_size: Images of one step, of all processes together. The feed decides; it is here for the record.
        learning_rate: Largest learning rate of the pretrained part, after warm-up.
        head_learning_rate: Learning rate of the head; None: as the rest.
        weight_decay: Decay of weights with two or more dimensions; biases and norms do not decay. AdamW decays decoupled
            from the gradient (Loshchilov & Hutter 2019), SGD adds it to the gradient.
        optimizer: ``adamw`` or ``sgd`` (without Nesterov's look-ahead).
        momentum: Momentum of SGD, in [0, 1).
        warmup_epochs: Epochs of rising learning rate, may be a fraction.
        schedule: ``cosine`` falls to ``final_learning_rate_share``, ``constant`` stays.
        final_learning_rate_share: Learning rate of the last step of a cosine, as a share of the largest.
        layer_decay: Factor of the learning rate from one block to the block before it, in (0, 1].
        accumulate: Parts in which a batch goes through the network to save memory; gradients are those of the whole batch
            (but BatchNorm in train mode sees one part at a time).
        precision: ``32-true``, ``bf16-mixed``, ``16-mixed`` or ``64-true``.
        clip_norm: Largest norm of the gradient of all parameters together; None: not clipped.
        patience: Epochs without a better value of the selection rule after which training stops; None: never.
        min_epochs: Epochs that are trained in any case.
        head_first: Train the head alone until it stops getting better, then everything that the method trains (thesis,
            section 3.4.2).
        head_epochs: Passes of that first phase, at most.
        head_patience: Patience of that first phase.
        keep_factor: Factor of the terms that compare with the starting network; see ``--keep``.
        log_gradient_norms: Whether the norm of the gradient of each building block is kept for each step.
        checkpoint_every_steps: Steps between two checkpoints within an epoch; None: one per epoch.
        seed: Random seed of dropout and everything else that draws numbers in a step.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        num_processes: Processes that share each batch, one a GPU, or on the CPU.

    Raises:
        UsageError: A value has no meaning; the message names it.
    """

    epochs: int = 50
    batch_size: int = 32
    learning_rate: float = 1e-4
    head_learning_rate: float | None = None
    weight_decay: float = 0.05
    optimizer: OptimizerName = "adamw"
    momentum: float = 0.9
    warmup_epochs: float = 5.0
    schedule: ScheduleName = "cosine"
    final_learning_rate_share: float = 0.01
    layer_decay: float = 1.0
    accumulate: int = 1
    precision: Precision = "32-true"
    clip_norm: float | None = None
    patience: int | None = None
    min_epochs: int = 1
    head_first: bool = False
    head_epochs: int = 100
    head_patience: int = 10
    keep_factor: float = field(default=1.0, repr=False)
    log_gradient_norms: bool = field(default=False, repr=False)
    checkpoint_every_steps: int | None = None
    seed: int = 0
    device: str = "auto"
    num_processes: int = 1

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise UnknownNameError(name.replace("_", " "), str(value), choices)
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UsageError(f"{name} must {_range_in_words(float(low), float(high))}, found {value!r}.")
        if self.momentum >= 1:
            raise UsageError(f"momentum must be smaller than 1, found {self.momentum!r}.")
        if self.learning_rate == 0:
            raise UsageError("learning_rate must be larger than 0: at 0 nothing is learned.")
        if self.layer_decay == 0:
            raise UsageError("layer_decay must be larger than 0: at 0 only the head would learn (--method linear).")


def _range_in_words(low: float, high: float) -> str:
    if math.isinf(high):
        return "be larger than 0" if low == _SMALLEST else f"be at least {low:g}"
    return f"lie between {low:g} and {high:g}"


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "optimizer": get_args(OptimizerName),
    "schedule": get_args(ScheduleName),
    "precision": get_args(Precision),
}
_MANY = float("inf")
_SMALLEST = 1e-12
_RANGES: Mapping[str, tuple[float, float]] = {
    "epochs": (1, 10**6),
    "batch_size": (1, 10**6),
    "learning_rate": (0, 1e6),
    "head_learning_rate": (0, 1e6),
    "weight_decay": (0, 1e6),
    "momentum": (0, 1),
    "warmup_epochs": (0, 10**6),
    "final_learning_rate_share": (0, 1),
    "layer_decay": (0, 1),
    "accumulate": (1, 10**6),
    "clip_norm": (_SMALLEST, _MANY),
    "patience": (1, _MANY),
    "min_epochs": (0, 10**6),
    "head_epochs": (1, 10**6),
    "head_patience": (1, _MANY),
    "keep_factor": (_SMALLEST, _MANY),
    "checkpoint_every_steps": (1, _MANY),
    "num_processes": (1, 10**4),
}
