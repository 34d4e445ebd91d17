"""Tensors as the bytes of a ``.safetensors`` file, the same for the same content."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

import safetensors.torch
from torch import Tensor

_LENGTH = struct.Struct("<Q")


def tensor_bytes(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """A file of safetensors; the library alone writes metadata of several keys in another order in each process.

    Args:
        tensors: On the CPU and contiguous.
        metadata: Kept in its order.

    Cost: twice the size of the file in memory.
    """
    content = safetensors.torch.save(dict(tensors), metadata=dict(metadata))
    start = _LENGTH.size + _LENGTH.unpack_from(content)[0]
    header = {**json.loads(content[_LENGTH.size : start]), "__metadata__": dict(metadata)}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _LENGTH.size)  # tensors begin at a multiple of 8 bytes
    return b"".join((_LENGTH.pack(len(text)), text, memoryview(content)[start:]))
