"""What accelerators cannot do, found before it surprises: Apple's has no float64 and lacks some operations; others get lost."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain
from typing import Literal

import torch
from torch import nn

from crossgraft.compute import is_out_of_memory
from crossgraft.errors import DeviceLostError, UnknownNameError, UsageError

Precision = Literal["32", "bf16"]
_PRECISIONS = ("auto", "32", "bf16")


def move_to_device(module: nn.Module, device: str) -> nn.Module:
    """Move ``module``; for Apple's accelerator, float64 weights become float32 first, because it has no float64.

    Raises:
        DeviceLostError: The accelerator failed.
    """
    if device.startswith("mps"):
        for tensor in chain(module.parameters(), module.buffers()):
            if tensor.dtype == torch.float64:
                tensor.data = tensor.data.float()
    with explain_lost_device(device):
        return module.to(device)


def choose_precision(name: str, device: str) -> Precision:
    """The number type in which networks look.

    Args:
        name: 32, bf16 or auto. Auto is 32 on every device, until it was measured on a card that scores in bf16 differ by less
            than a tenth of their interval.
        device: As torch writes it.

    Raises:
        UnknownNameError: Another name.
        UsageError: The device has no bf16.
    """
    if name not in _PRECISIONS:
        raise UnknownNameError("precision", name, _PRECISIONS)
    if name == "bf16" and device.startswith("cuda"):
        with torch.cuda.device(device):
            has_it = torch.cuda.is_bf16_supported(including_emulation=False)
        if not has_it:
            card = torch.cuda.get_device_name(device)
            raise UsageError(f"The GPU {device} ({card}) has no bf16. Leave --precision out, or use --precision 32.")
    return "bf16" if name == "bf16" else "32"


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


@contextmanager
def explain_lost_device(device: str) -> Generator[None]:
    """Say what to do where the driver gives up: the card fell off the bus, was reset, or another program took it down.

    Raises:
        DeviceLostError: Instead of torch's error, which comes at whatever is asked of the device next.
    """
    try:
        yield
    except RuntimeError as error:
        text = " ".join(str(error).split())
        if (
            isinstance(error, DeviceLostError)
            or device.startswith("cpu")
            or is_out_of_memory(error)
            or not any(sign in text for sign in _LOST)
        ):
            raise
        reason = text.partition(". ")[0].partition(" CUDA kernel errors")[0].rstrip(".")
        raise DeviceLostError(
            f"The device {device} failed in mid-run: {reason}. What was finished is kept: the same command goes on from there, "
            "once the device works again, or now with --device cpu."
        ) from error


_LOST = ("CUDA error", "HIP error", "cuDNN error", "CUBLAS_STATUS", "CUDNN_STATUS", "MPS backend")
