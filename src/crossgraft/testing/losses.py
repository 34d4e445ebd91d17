"""What every loss promises."""

from __future__ import annotations

import torch
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.losses import Loss
from crossgraft.seeding import torch_generator
from crossgraft.tasks import TASKS, task_named
from crossgraft.testing.promises import Contract, declares_its_facts, is_written_and_read_again, keep_all, promise, require
from crossgraft.types import TaskName

_ROUNDING = 1e-12
"""Relative difference that rounding may make in float64."""
_SURE = 100.0
"""A logit of which float64 cannot tell the probability from 0 or 1."""


@promise
def gives_one_value_an_image(loss: Loss) -> None:
    """B images give b finite values in the number type of the logits; none of them is negative."""
    for task in loss.tasks:
        logits, targets = _batch(task)
        losses = loss.resolve(targets, task=task)(logits, targets)
        require(losses.shape == logits.shape[:1], loss, f"logits {tuple(logits.shape)} give {tuple(losses.shape)}")
        require(losses.dtype == logits.dtype, loss, f"logits in {logits.dtype} give {losses.dtype}")
        values = losses.tolist()
        require(bool((losses.isfinite() & (losses >= 0)).all()), loss, f"{task} targets give {values}")


@promise
def has_a_finite_gradient(loss: Loss) -> None:
    """Also where the model is very sure, right or wrong; and where it is wrong the gradient is not zero."""
    for task in loss.tasks:
        logits, targets = _batch(task)
        resolved = loss.resolve(targets, task=task)
        for where, sign in (("right", 1), ("wrong", -1)):
            sure = (sign * _SURE * (2 * targets - 1)).requires_grad_()
            value = resolved(sure, targets).sum()
            (gradient,) = torch.autograd.grad(value, sure)
            finite = bool(value.isfinite() and gradient.isfinite().all())
            require(finite, loss, f"where a model is sure and {where}, value or gradient are not finite ({task})")
        (gradient,) = torch.autograd.grad(resolved(logits.requires_grad_(), targets).sum(), logits)
        require(bool(gradient.any()), loss, f"its gradient is zero ({task})")


@promise
def adds_up_over_parts(loss: Loss) -> None:
    """An image counts the same whichever others share its batch, so accumulated and shared batches give the whole one."""
    for task in loss.tasks:
        logits, targets = _batch(task)
        resolved = loss.resolve(targets, task=task)
        whole = resolved(logits, targets)
        parts = torch.cat([resolved(logits[rows], targets[rows]) for rows in (slice(0, 1), slice(1, 4), slice(4, None))])
        close = torch.allclose(whole, parts, rtol=_ROUNDING, atol=_ROUNDING)
        require(close, loss, f"the whole batch gives {whole.tolist()}, its parts {parts.tolist()} ({task})")


@promise
def refuses_other_tasks(loss: Loss) -> None:
    """``resolve`` raises ``UsageError`` for targets that it has no meaning for."""
    require(bool(loss.tasks), loss, "it names no task")
    for task in TASKS.values():
        if task.name in loss.tasks:
            continue
        try:
            loss.resolve(_batch(task.name)[1], task=task.name)
        except UsageError:
            continue
        require(False, loss, f"it takes {task} targets, which are not among its tasks")


LOSS_CONTRACTS: tuple[Contract, ...] = (
    declares_its_facts,
    is_written_and_read_again,
    gives_one_value_an_image,
    has_a_finite_gradient,
    adds_up_over_parts,
    refuses_other_tasks,
)
"""All promises of a loss."""


def check_loss(loss: Loss) -> None:
    """Check all promises of one loss.

    Args:
        loss: Loss with its options.

    Raises:
        ContractError: The first promise that is broken, or the kind of plug-in that it is not.
    """
    keep_all(LOSS_CONTRACTS, loss, Loss)


def _batch(name: TaskName) -> tuple[Tensor, Tensor]:
    """Logits and targets of seven images in float64, every class with and without images."""
    random = torch_generator(0, "example logits")
    task = task_named(name)
    num_classes = 2 if task.is_question else 3
    logits = 2 * torch.randn(7, num_classes, generator=random, dtype=torch.float64)
    numbers = torch.arange(7)
    if task.partitions:
        return logits, torch.eye(num_classes, dtype=torch.float64)[numbers % num_classes]
    return logits, torch.stack([numbers % 2, numbers % 3 == 0, numbers > 3], dim=1).double()
