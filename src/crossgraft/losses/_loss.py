"""What a loss is, and how its weights are written and counted."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import DataError, UsageError
from crossgraft.tasks import Task, task_named
from crossgraft.types import TaskName


def activate(logits: Float[Tensor, "batch num_classes"], task: Task) -> Float[Tensor, "batch num_classes"]:
    """Softmax over the classes, or the sigmoid of each label, in the number type of the logits."""
    return logits.softmax(dim=1) if task.activation == "softmax" else logits.sigmoid()


Logits = Float[Tensor, "batch num_classes"]
LossTargets = Float[Tensor, "batch num_classes"]
PerImageLoss = Float[Tensor, " batch"]
Weights = str | tuple[float, ...] | None
"""``None``: all 1; ``"balanced"``: counted from the training targets; ``"1 2.5 1"`` or numbers: given, one per class."""


@runtime_checkable
class Loss(Protocol):
    """One loss; a frozen dataclass whose fields are its options.

    A class that inherits from this one needs no more than its name, title, citation, tasks, options and ``__call__``.

    Attributes:
        name: Name on the command line and in tables.
        title: Title in print.
        citation: Publication that describes it.
        tasks: The kinds of targets that it has a meaning for.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    tasks: ClassVar[tuple[TaskName, ...]]

    def resolve(self, targets: LossTargets, *, task: TaskName) -> Loss:
        """The same loss with everything filled in that depends on the training targets.

        Args:
            targets: All training targets (n, C): one-hot, or 0/1 for several labels per image.
            task: Kind of the targets.

        Raises:
            UsageError: The loss has no meaning for the task, or the number of given weights is not C.
            DataError: Balanced weights are asked for and a class has no training image.
        """
        check_task(self, task)
        return self

    @abstractmethod
    def __call__(self, logits: Logits, targets: LossTargets) -> PerImageLoss:
        """Loss of each image in the dtype of the logits; the trainer takes the mean over the images of the batch.

        Args:
            logits: (b, C), before softmax or sigmoid.
            targets: (b, C): probabilities of classes that sum to 1, or of every label in [0, 1]; soft after mixing.
        """
        ...


@dataclass(frozen=True)
class WeighsClasses(Loss):
    """What losses of one class per image share that weight an image by its class.

    Args:
        class_weights: ``balanced`` is n / (C · n_c) as in scikit-learn, or one positive number per class.

    Raises:
        UsageError: A weight is not a positive number.
    """

    tasks: ClassVar[tuple[TaskName, ...]] = ("multi-class", "binary")

    class_weights: Weights = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_weights", parsed_weights(self.class_weights, self.name))

    def resolve(self, targets: LossTargets, *, task: TaskName) -> Loss:
        """With balanced weights counted from the training targets; errors as in ``Loss.resolve``."""
        check_task(self, task)
        return replace(self, class_weights=class_weights(self.class_weights, targets, self.name))


def check_task(loss: Loss, task: TaskName) -> None:
    """Refuse a task that the loss has no meaning for."""
    if task not in loss.tasks:
        raise UsageError(
            f"The loss {loss.name} is for {' and '.join(loss.tasks)} targets; these are {task}. "
            f"Use {task_named(task).usual_loss} or focal."
        )


def parsed_weights(weights: Weights, owner: str) -> Weights:
    """Weights as a tuple of positive numbers, ``"balanced"`` or None.

    Raises:
        UsageError: Not a number, not positive, or another word than balanced.
    """
    if weights is None or weights == "balanced":
        return weights
    try:
        numbers = tuple(float(weight) for weight in (weights.split() if isinstance(weights, str) else weights))
    except ValueError:
        raise UsageError(
            f"The weights of {owner} are {weights!r}; write balanced, or one positive number per class: '1 2.5 1'."
        ) from None
    if not numbers or not all(0 < number < float("inf") for number in numbers):
        raise UsageError(f"The weights of {owner} must be positive and finite, one per class; they are {numbers}.")
    return numbers


def counted_weights(
    weights: Weights, counts: Float[Tensor, " num_classes"], numerators: Float[Tensor, " num_classes"], owner: str
) -> Weights:
    """Given weights with their number checked, or balanced ones: numerators / counts of each class.

    Raises:
        UsageError: The number of given weights differs from the number of classes.
        DataError: Balanced weights, and a class has no training image.
    """
    if weights is None:
        return None
    if isinstance(weights, tuple):
        if len(weights) != len(counts):
            raise UsageError(f"{owner} has {len(weights)} weights for {len(counts)} classes; give one per class.")
        return weights
    empty = [str(index) for index in torch.nonzero((counts == 0) | (numerators == 0)).flatten().tolist()]
    if empty:
        raise DataError(
            f"Balanced weights of {owner} need training images with and without every class; column {', '.join(empty)} of "
            "the targets has not both. Take the class out, split again, or give the weights as numbers."
        )
    return tuple((numerators / counts).tolist())


def weight_tensor(weights: Weights, like: Logits, owner: str) -> Float[Tensor, " num_classes"] | None:
    """Resolved weights beside the logits.

    Raises:
        UsageError: Balanced weights were never counted, or their number is not that of the classes.
    """
    if weights is None:
        return None
    if isinstance(weights, str):
        raise UsageError(f"The balanced weights of {owner} are not counted yet; call resolve with the training targets.")
    if len(weights) != like.shape[1]:
        raise UsageError(f"{owner} has {len(weights)} weights for {like.shape[1]} classes; give one per class.")
    return torch.tensor(weights, dtype=like.dtype, device=like.device)


def class_weights(weights: Weights, targets: LossTargets, owner: str) -> Weights:
    """Balanced as in scikit-learn: n / (C · n_c), so that the mean weight of the training images is 1."""
    counts = targets.double().sum(dim=0)
    numerators = torch.full_like(counts, len(targets) / targets.shape[1])
    return counted_weights(weights, counts, numerators, owner)


def positive_weights(weights: Weights, targets: LossTargets, owner: str) -> Weights:
    """Balanced: images without the label / images with it, so that both sides weigh the same."""
    counts = targets.double().sum(dim=0)
    return counted_weights(weights, counts, len(targets) - counts, owner)
