"""A network that a file describes is built within limits: a few numbers in a header must not fill the memory of a machine."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager

from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from crossgraft.compute import available_memory, rounded_size
from crossgraft.errors import OutOfMemoryError, UsageError
from crossgraft.paths import shortened

MOST_TENSORS = 100_000
"""Parameters and buffers of one network; the largest of timm have fewer than 5,000."""
MOST_VALUE = 1_000_000
"""The largest number among the arguments of an architecture: classes, pixels, channels, layers."""


def refuse_large_numbers(values: object, *, where: str) -> None:
    """Look for numbers that no architecture has, also inside lists and mappings.

    Raises:
        UsageError: There is one; constructors would count up to it, or allocate that much, before they fail.
    """
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        for value in values:
            refuse_large_numbers(value, where=where)
    elif isinstance(values, int | float) and abs(values) > MOST_VALUE:
        raise UsageError(
            f"A number in {where} is {shortened(repr(values))}; no architecture has one above {MOST_VALUE:,}. Correct it."
        )


@contextmanager
def building_limits(name: str) -> Generator[None]:
    """Count the tensors that modules register inside the block, before they are filled with values.

    Args:
        name: Name of the network, for the message.

    Raises:
        OutOfMemoryError: They need more memory than is available.
        UsageError: They are too many.
    """
    free, thread = available_memory(), threading.get_ident()
    num_bytes = num_tensors = 0

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        nonlocal num_bytes, num_tensors
        if tensor is None or threading.get_ident() != thread:
            return
        num_bytes += tensor.numel() * tensor.element_size()
        num_tensors += 1
        if num_bytes > free:
            raise OutOfMemoryError(
                f"The network {name} needs more than {rounded_size(num_bytes)} of memory, but only {rounded_size(free)} is "
                "available. Check its kwargs."
            )
        if num_tensors > MOST_TENSORS:
            raise UsageError(f"The network {name} has more than {MOST_TENSORS:,} tensors. Check its kwargs.")

    hooks = [
        torch_modules.register_module_parameter_registration_hook(count),
        torch_modules.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
