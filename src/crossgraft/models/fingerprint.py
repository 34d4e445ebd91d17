"""What makes one backbone's numbers: its weights and its structure, each as a short hash."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path

import torch
from torch import nn


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
