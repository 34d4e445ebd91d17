"""Square linear heads without bias: how they start, and what is checked about their training."""

from __future__ import annotations

import math
from numbers import Integral, Real

import torch
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.fewshot.heads._cosine import Weights

IDENTITY, RANDOM = "identity", "random"


def starting_weights(init: str, like: Tensor, generator: torch.Generator) -> Weights:
    """W (d, d): the identity, or independent normal numbers of variance 1/d, which keep lengths on average."""
    width = like.shape[1]
    if init == IDENTITY:
        return torch.eye(width, dtype=like.dtype)
    return (torch.randn(width, width, generator=generator, dtype=torch.float64) / math.sqrt(width)).to(like.dtype)


def check_number(name: str, head: str, value: object, *, least: float, above: bool = False) -> None:
    """Refuse what is not a finite number of at least ``least``, or above it."""
    number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    if not math.isfinite(number) or number < least or (above and number == least):
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        raise UsageError(f"{name} of {head} must be a number {bound}, got {value!r}.")


def check_count(name: str, head: str, value: object) -> None:
    """Refuse what is not a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise UsageError(f"{name} of {head} must be a whole number of at least 0, got {value!r}.")


def check_seed(head: str, value: object) -> None:
    """Refuse what is not a whole number between 0 and 2**63 - 1; numpy's whole numbers are some."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < 2**63:
        raise UsageError(f"seed of {head} must be a whole number between 0 and 2**63 - 1, got {value!r}.")
