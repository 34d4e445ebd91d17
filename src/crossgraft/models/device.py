"""What accelerators cannot do, found before it surprises: Apple's has no float64 and lacks some operations."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn

from crossgraft.errors import UsageError


def move_to_device(module: nn.Module, device: str) -> nn.Module:
    """Move ``module``; for Apple's accelerator, float64 weights become float32 first, because it has no float64."""
    if device.startswith("mps"):
        for tensor in chain(module.parameters(), module.buffers()):
            if tensor.dtype == torch.float64:
                tensor.data = tensor.data.float()
    return module.to(device)


@contextmanager
def explain_missing_operations(model: str, device: str) -> Generator[None]:
    """Name what to do where torch has no such operation for ``device``.

    Raises:
        UsageError: Instead of torch's NotImplementedError.
    """
    try:
        yield
    except NotImplementedError as error:
        if device.startswith("cpu"):
            raise
        fallback = ", or set the environment variable PYTORCH_ENABLE_MPS_FALLBACK=1" if device.startswith("mps") else ""
        reason = " ".join(str(error).split()).partition(". ")[0].rstrip(".")
        raise UsageError(f"{model} does not run on {device}: {reason}. Use --device cpu{fallback}.") from error
