"""What accelerators cannot do, found before it surprises: Apple's has no float64 and lacks some operations."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import torch
from torch import nn

from crossgraft.errors import UsageError


def weights_fingerprint(module: nn.Module) -> str:
    """SHA-256 over names, shapes, types and bytes of the state dict, in the order of the names.

    Moving a model between devices, or storing it as float16 and loading it back as float32, does not change
    what is hashed beyond the rounding itself. Cost: about 0.1 s for 40 million parameters.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name}\x1f{tuple(tensor.shape)}\x1f{tensor.dtype}\x1f".encode())
        values = tensor.detach().to("cpu").contiguous().reshape(-1)
        digest.update(memoryview(values.view(torch.uint8).numpy()))
    return digest.hexdigest()


def structure_fingerprint(module: nn.Module, architecture_key: str) -> str:
    """SHA-256 over what else decides the output: arguments, layers and their settings, a factory's code.

    Two networks can share every weight and still differ: TensorFlow padding and PyTorch padding load from
    the same file.
    """
    digest = hashlib.sha256(f"{architecture_key}\x1f{module!r}".encode())
    if not type(module).__module__.startswith(("timm.", "torch.", "torchvision.")):
        try:
            source_file = inspect.getsourcefile(type(module))
        except (TypeError, OSError):  # a class typed into an interactive session has no file
            source_file = None
        if source_file is not None and Path(source_file).is_file():
            digest.update(Path(source_file).read_bytes())
    return digest.hexdigest()


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
