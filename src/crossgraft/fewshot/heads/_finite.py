"""What heads refuse because it is no finite number, features, losses and logits; and the warning of a loss that rose."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from crossgraft.errors import CrossgraftWarning, DataError, DivergedError

NOTABLE_RISE = 0.01
"""In units of the loss, a mean cross-entropy: less is noise of a training that had nothing to learn."""


def refuse_rows(rows: Tensor) -> None:
    """Refuse features with NaN, an infinite value, or a length that overflows their number type.

    Args:
        rows: (n, d).

    Raises:
        DataError: The message names the first such row.
    """
    lengths = torch.linalg.vector_norm(rows, dim=1)
    if bool(lengths.isfinite().all()):
        return
    refuse_values(rows)
    first = int((~lengths.isfinite()).nonzero()[0])
    kind = str(rows.dtype).removeprefix("torch.")
    raise DataError(
        f"Row {first} of the features is so long that its length overflows {kind}: its largest value is "
        f"{float(rows[first].abs().max()):.3g}. Divide all features by one number, or pass them as float64."
    )


def refuse_values(values: Tensor, *, name: str = "Row") -> None:
    """Refuse NaN and infinite values.

    Args:
        values: (n, …).
        name: What one of the n is called.

    Raises:
        DataError: The message names the first of the n that holds one.
    """
    finite = values.isfinite().flatten(1).all(dim=1)
    bad = (~finite).nonzero()[:, 0]
    if len(bad):
        raise DataError(
            f"{name} {int(bad[0])} holds NaN or infinite (inf) values, the first of {len(bad)} of {len(values)}. Leave these "
            "out, or find where the values come from."
        )


def refuse_losses(head: str, losses: Sequence[float]) -> None:
    """Refuse a training that left the finite numbers.

    Args:
        head: Name of the head.
        losses: The loss before each step.

    Raises:
        DivergedError: The message names the first step without a finite loss.
    """
    first = next((number for number, loss in enumerate(losses, start=1) if not math.isfinite(loss)), None)
    if first == 1:
        raise DivergedError(
            f"The loss of {head} is not finite before anything was learned: the features are too large. Scale them."
        )
    if first is not None:
        raise DivergedError(
            f"The training of {head} diverged: its loss is not finite before step {first}. Lower "
            "learning_rate, or scale the features."
        )


def warn_of_rise(head: str, losses: Sequence[float]) -> None:
    """Tell of a training that ended with a larger loss on its own images than it began with.

    Args:
        head: Name of the head.
        losses: The loss before each step.
    """
    if losses and losses[-1] > losses[0] + NOTABLE_RISE:
        warnings.warn(
            f"The loss of {head} on the support set ended above where it began: the learning rate is too large for this "
            "network and these images. Lower learning_rate.",
            CrossgraftWarning,
            stacklevel=3,
        )


def refuse_logits(head: str, logits: Tensor, *, is_trained: bool) -> None:
    """Refuse logits from which no class follows.

    Args:
        head: Name of the head.
        logits: (m, C).
        is_trained: Whether the head has a learning rate.

    Raises:
        DivergedError: The message names the first row.
    """
    bad = (~logits.isfinite().all(dim=1)).nonzero()[:, 0]
    if len(bad):
        why = "its training diverged, or the features are" if is_trained else "the features are"
        raise DivergedError(
            f"{head} gives no finite numbers for {len(bad)} of {len(logits)} queries (the first: row {int(bad[0])}): {why} too "
            f"large. {'Lower learning_rate, or scale' if is_trained else 'Scale'} the features."
        )
