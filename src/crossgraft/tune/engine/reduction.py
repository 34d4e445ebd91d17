"""A sum over processes that gradients go through: statistics of the whole batch, exact whatever the shares."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed


class _SumOverProcesses(torch.autograd.Function):
    """y = Σ_r x_r in every process, so ∂L/∂x_r = Σ_s ∂L_s/∂y: the gradients of all processes add up as well.

    Where every process has the same loss, this is the number of processes times its gradient, and the mean over processes
    that parallel training takes makes that the gradient of one process with the whole batch, however uneven the shares.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return _summed(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return _summed(gradients[0])


def sum_over_processes(tensor: Tensor) -> Tensor:
    """Σ over all processes, in the graph; the tensor itself where there is only one process."""
    if not (distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1):
        return tensor
    return _SumOverProcesses.apply(tensor)  # pyright: ignore[reportReturnType]


def _summed(tensor: Tensor) -> Tensor:
    total = tensor.contiguous().clone()
    distributed.all_reduce(total)
    return total
