"""Weights of a finished training, read when they are needed."""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from crossgraft.errors import DataError


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file.

    Raises:
        DataError: The file is gone or damaged.
    """
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"Cannot read the weights {path}: {error}. Use --overwrite to train again.") from error
