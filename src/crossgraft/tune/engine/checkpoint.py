"""A checkpoint is one file that is there whole or not at all: tensors, and in its header everything else as JSON.

The file is written under another name, flushed to the disk and renamed, so that a kill at any point leaves the checkpoint
before it. It is safetensors: reading one runs no code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from crossgraft.errors import OtherRunError, RunDirectoryError
from crossgraft.storage.atomic import remove_if_free, write_atomically

FILE_NAME = "checkpoint.safetensors"
FORMAT_VERSION = 1


class Checkpoint(NamedTuple):
    """What a run needs to go on.

    Attributes:
        configuration: What decides the result; a run with another one is refused.
        position: Where the run is: phase, epoch, step, sums, counters, history.
        tensors: Weights, buffers, optimiser, regularisers, best weights, by name.
    """

    configuration: Mapping[str, Any]
    position: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> Path:
    """Replace the checkpoint in ``folder`` in one atomic step. Memory: once the size of the file, beside the tensors.

    Raises:
        StorageError: Disk full, no permission …; the checkpoint before stays.
    """
    tensors = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in checkpoint.tensors.items()}
    header = {"format_version": FORMAT_VERSION, "configuration": checkpoint.configuration, "position": checkpoint.position}
    text = json.dumps(header)
    metadata = {"state": text, "sha256": _digest(text, tensors)}
    return write_atomically(folder / FILE_NAME, save(tensors, metadata=metadata))


def read_checkpoint(folder: Path, configuration: Mapping[str, Any]) -> Checkpoint | None:
    """The checkpoint in ``folder``, on the CPU; None where there is none.

    What a killed run left half-written is removed. Only one run at a time may use the folder.

    Raises:
        OtherRunError: It belongs to another configuration; the message names what differs.
        RunDirectoryError: The file is damaged, or of another version of crossgraft.
    """
    for leftover in folder.glob(f".{FILE_NAME}.*"):
        remove_if_free(leftover)
    path = folder / FILE_NAME
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        text = metadata["state"]
        if metadata["sha256"] != _digest(text, tensors):
            raise ValueError("the checksum differs")
        header = json.loads(text)
        version, stored, position = (header[key] for key in ("format_version", "configuration", "position"))
        if not (isinstance(stored, dict) and isinstance(position, dict)):
            raise ValueError("its header is no description of a run")
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError, OSError) as error:
        raise RunDirectoryError(
            f"The checkpoint {path.name} in {folder.name} is damaged ({error}). Start again with --overwrite."
        ) from error
    if version != FORMAT_VERSION:
        raise RunDirectoryError(f"{path.name} is of another version of crossgraft. Start again with --overwrite.")
    _refuse_other_configuration(stored, json.loads(json.dumps(configuration)))
    return Checkpoint(stored, position, tensors)


def damaged_checkpoint(reason: str) -> RunDirectoryError:
    """The error for what is whole, but no state of this training; a checksum finds damage, and no forgery."""
    return RunDirectoryError(f"The checkpoint {FILE_NAME} is damaged ({reason}). Start again with --overwrite.")


def _refuse_other_configuration(stored: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    different = [
        f"{key} was {stored.get(key)!r} and is now {asked.get(key)!r}"
        for key in sorted(stored.keys() | asked.keys())
        if stored.get(key) != asked.get(key)
    ]
    if different:
        raise OtherRunError(
            f"The checkpoint belongs to another run: {'; '.join(different)}. Use the same settings, another folder "
            "(--out), or --overwrite."
        )


def _digest(text: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(text.encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name}\x1f{tuple(tensor.shape)}\x1f{tensor.dtype}\x1f".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
