"""What a person can set about training, and what is in force, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

from crossgraft.errors import OutOfMemoryError, UnknownNameError, UsageError
from crossgraft.options._option import Options, option, options, options_of
from crossgraft.tune.schedules import SCHEDULES, Schedule

OptimizerName = Literal["adamw", "adam", "sgd"]
Precision = Literal["32-true", "bf16-mixed", "16-mixed", "64-true"]

_MANY = float("inf")
_SMALLEST = 1e-12


@options
class Tuning(Options):
    """Base of the options of a fine-tuning.

    Whichever of them is not at its default has a row in the plan, and another value of one that may change a number is another
    training; no other file has to name it. What a field says as ``in_words``, ``row`` and ``has_row`` changes its row.
    """


def _rates(now: Any) -> str:
    of_head = now.settings.head_learning_rate
    return f"{now.settings.learning_rate:g}" + ("" if of_head is None else f" (head {of_head:g})")


def _optimizer(settings: Any) -> str:
    if settings.optimizer != "sgd":
        return settings.optimizer
    return f"sgd, momentum {settings.momentum:g}{' (Nesterov)' if settings.nesterov else ''}"


def _head_first(now: Any) -> str | None:
    settings = now.settings
    return f"at most {settings.head_epochs} epochs, patience {settings.head_patience}" if settings.head_first else None


@options
class TrainingSteps(Tuning):
    """Steps and learning rates; the trainer has each of them among its settings."""

    group: ClassVar[str] = "Training"

    optimizer: OptimizerName = option(
        "adamw, adam or sgd.", default="adamw", in_protocol=True, in_words=lambda now: _optimizer(now.settings)
    )
    learning_rate: float | None = option(
        "Largest learning rate, after warm-up.",
        default=None,
        default_text="by method and network",
        is_common=True,
        in_protocol=True,
        within=(0, 1e6),
        in_words=_rates,
    )
    head_learning_rate: float | None = option(
        "Largest learning rate of the new head.",
        default=None,
        default_text="the learning rate",
        in_protocol=True,
        within=(0, 1e6),
        has_row=False,
    )
    weight_decay: float | None = option(
        "Decay of weights with two or more dimensions.",
        default=None,
        default_text="0.05; 0 with l2_sp or adam",
        in_protocol=True,
        within=(0, 1e6),
        in_words=lambda now: f"{now.settings.weight_decay:g}",
    )
    momentum: float | None = option(
        "Momentum of SGD.", default=None, default_text="0.9", in_protocol=True, within=(0, 1), has_row=False
    )
    nesterov: bool = option(
        "Momentum of SGD that looks ahead (Nesterov).", default=False, only_if_given=True, in_protocol=True, has_row=False
    )
    dropout: float = option(
        "Probability with which each feature is left out before the head, in training; in [0, 1).",
        default=0.0,
        only_if_given=True,
        in_protocol=True,
        within=(0, 1),
    )
    schedule: str = option(
        "How the learning rate falls: cosine, constant, or in steps: step:at=[100,150],factor=0.1.",
        default="cosine",
        in_protocol=True,
        in_words=lambda now: f"{now.settings.schedule} after {now.settings.warmup_epochs:g} epochs of warm-up",
    )
    epochs: int | None = option(
        "Largest number of passes over the training images.",
        default=None,
        least=1,
        default_text="about 600 steps, 10 to 50 epochs",
        is_common=True,
        in_protocol=True,
        within=(1, 10**6),
        has_row=False,
    )
    warmup_epochs: float | None = option(
        "Epochs of rising learning rate; fractions are allowed.",
        default=None,
        default_text="5, at most a tenth of all",
        in_protocol=True,
        within=(0, 10**6),
        has_row=False,
    )
    batch_size: int | None = option(
        "Images per step, over all devices.",
        default=None,
        least=1,
        default_text="8 to 128, by number of images",
        in_protocol=True,
        within=(1, 10**6),
        has_row=False,
    )
    accumulate: int = option("Number of micro-batches per step, to save memory.", default=1, least=1, within=(1, 10**6))
    layer_decay: float = option(
        "Factor of the learning rate from one block to the block before it, in (0, 1].",
        default=1.0,
        in_protocol=True,
        within=(0, 1),
    )
    clip_norm: float | None = option(
        "Largest norm of the gradient.",
        default=None,
        default_text="no clipping",
        in_protocol=True,
        within=(_SMALLEST, _MANY),
        has_row=False,
    )
    patience: int | None = option(
        "Number of epochs without improvement after which training stops.",
        default=None,
        least=1,
        default_text="all epochs are trained",
        in_protocol=True,
        within=(1, _MANY),
    )
    head_first: bool = option(
        "Train the head alone until it stops improving, then what the method trains.",
        default=False,
        default_text="only below 100 steps beside repsim and hcs with frozen BatchNorm",
        in_words=_head_first,
    )
    head_epochs: int | None = option(
        "Largest number of epochs of the first phase.",
        default=None,
        least=1,
        default_text="100",
        in_protocol=True,
        within=(1, 10**6),
        has_row=False,
    )
    head_patience: int | None = option(
        "Patience of the first phase, in epochs.",
        default=None,
        least=1,
        default_text="10",
        in_protocol=True,
        within=(1, _MANY),
        has_row=False,
    )
    precision: str = option("32, bf16, 16 (GPU) or 64.", default="32", in_words=lambda now: now.settings.precision)


@dataclass(frozen=True, kw_only=True)
class TrainerSettings(TrainingSteps):
    """How long, how fast and where a network is trained: the options, with a value for each that was left open.

    Attributes:
        epochs: Passes over the training images, at most.
        batch_size: Images of one step, of all processes together. The feed decides; it is here for the record.
        learning_rate: Largest learning rate of the pretrained part, after warm-up; the head's is the same where it has none.
        weight_decay: Decay of weights with two or more dimensions; biases and norms do not decay. AdamW decays decoupled
            from the gradient (Loshchilov & Hutter 2019), Adam and SGD add it to the gradient.
        momentum: Momentum of SGD, in [0, 1).
        warmup_epochs: Epochs of rising learning rate, may be a fraction.
        accumulate: Parts in which a batch goes through the network to save memory; gradients are those of the whole batch
            (but BatchNorm in train mode sees one part at a time).
        precision: ``32-true``, ``bf16-mixed``, ``16-mixed`` or ``64-true``.
        min_epochs: Epochs that are trained in any case.
        head_epochs: Passes of the first phase, in which the head is trained alone (thesis, section 3.4.2), at most.
        head_patience: Patience of that first phase.
        keep_factor: Factor of the terms that compare with the starting network; see ``--keep``.
        log_gradient_norms: Whether the norm of the gradient of each building block is kept for each step.
        checkpoint_every_steps: Steps between two checkpoints within an epoch; None: one per epoch.
        look_every_steps: Steps after which their terms are looked at; None: 1 on the CPU, where nobody waits for them, else 16.
        seed: Random seed of dropout and everything else that draws numbers in a step.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        num_processes: Processes that share each batch, one a GPU, or on the CPU.

    Raises:
        UsageError: A value has no meaning; the message names it.
    """

    epochs: int = 50
    batch_size: int = 32
    learning_rate: float = 1e-4
    weight_decay: float = 0.05
    momentum: float = 0.9
    warmup_epochs: float = 5.0
    precision: Precision = "32-true"
    min_epochs: int = 1
    head_epochs: int = 100
    head_patience: int = 10
    keep_factor: float = 1.0
    log_gradient_norms: bool = False
    checkpoint_every_steps: int | None = None
    look_every_steps: int | None = None
    seed: int = 0
    device: str = "auto"
    num_processes: int = 1

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise UnknownNameError(name.replace("_", " "), str(value), choices)
        ranges = {name: within for name, each in options_of(TrainingSteps).items() if (within := each.about.within) is not None}
        for name, (low, high) in {**ranges, **_RANGES}.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise UsageError(f"{name} must {_range_in_words(float(low), float(high))}, found {value!r}.")
        schedule_of(self.schedule)
        if self.dropout >= 1:
            raise UsageError(f"dropout must be smaller than 1, found {self.dropout!r}: at 1 the head would see nothing.")
        if self.momentum >= 1:
            raise UsageError(f"momentum must be smaller than 1, found {self.momentum!r}.")
        if self.learning_rate == 0:
            raise UsageError("learning_rate must be larger than 0: at 0 nothing is learned.")
        if self.layer_decay == 0:
            raise UsageError("layer_decay must be larger than 0: at 0 only the head would learn (--method linear).")

    @property
    def final_learning_rate_share(self) -> float:
        """Learning rate of the last step of a cosine, as a share of the largest; a part of the keys of finished trainings."""
        return getattr(schedule_of(self.schedule), "final_share", 0.01)

    @property
    def no_memory(self) -> OutOfMemoryError:
        """The error for a step that does not fit."""
        return OutOfMemoryError(
            f"One step of {self.batch_size} images does not fit into the memory of {self.device}. Use a smaller "
            "--batch-size, a smaller --image-size, or cut batches into micro-batches with --accumulate."
        )

    @property
    def decisive(self) -> dict[str, object]:
        """Value of each setting that decides the result; of later ones where they are not at their default.

        So a training of a version that did not have them goes on.
        """
        first = {name: getattr(self, name) for name in FIRST_SETTINGS if name not in _MACHINE}
        later = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in {*_MACHINE, *FIRST_SETTINGS}}
        defaults = {each.name: each.default for each in fields(self)}
        return first | {name: value for name, value in later.items() if value != defaults[name]}

    @property
    def first_in_words(self) -> str:
        """The first settings and their values, the same on any machine; a part of the keys of finished trainings."""
        of_any = replace(self, **_MACHINE)
        return f"TrainerSettings({', '.join(f'{name}={getattr(of_any, name)!r}' for name in FIRST_SETTINGS)})"


def schedule_of(text: str) -> Schedule:
    """The schedule of these words.

    Raises:
        UnknownNameError: No schedule has that name.
        UsageError: An option of it is wrong.
    """
    from crossgraft.choice import choose  # which imports what a page of help can do without

    return choose(SCHEDULES, text)


def _range_in_words(low: float, high: float) -> str:
    if math.isinf(high):
        return "be larger than 0" if low == _SMALLEST else f"be at least {low:g}"
    return f"lie between {low:g} and {high:g}"


_CHOICES: Mapping[str, tuple[str, ...]] = {"optimizer": get_args(OptimizerName), "precision": get_args(Precision)}
_RANGES: Mapping[str, tuple[float, float]] = {
    "min_epochs": (0, 10**6),
    "keep_factor": (_SMALLEST, _MANY),
    "checkpoint_every_steps": (1, _MANY),
    "look_every_steps": (1, _MANY),
    "num_processes": (1, 10**4),
}
"""Ranges of what is no option."""

_MACHINE: Mapping[str, Any] = {"device": "cpu", "num_processes": 1, "checkpoint_every_steps": None, "look_every_steps": None}
"""Where a run computes, and how often it saves and looks, is not meant to change a number."""

FIRST_SETTINGS = (
    "epochs", "batch_size", "learning_rate", "head_learning_rate", "weight_decay", "optimizer", "momentum", "warmup_epochs",
    "schedule", "final_learning_rate_share", "layer_decay", "accumulate", "precision", "clip_norm", "patience", "min_epochs",
    "head_first", "head_epochs", "head_patience", "checkpoint_every_steps", "seed", "device", "num_processes",
)  # fmt: skip
"""Settings that keys of trainings and checkpoints have named from the beginning, in the order of the keys. The list is closed:
what was added since is named where it is not at its default."""
