"""What the metadata of a ``.safetensors`` file say of the network whose weights it holds: read, and written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from safetensors import SafetensorError, safe_open

from crossgraft.errors import DataError
from crossgraft.models.sources.foreign_formats import damaged
from crossgraft.models.spec import PREPROCESSING_KEYS
from crossgraft.paths import shortened
from crossgraft.types import Preprocessing

_WORDS = ("interpolation", "resize_policy")
MARK = {"written_by": "crossgraft"}
"""Metadata of weights that crossgraft has written where the user said, so that it may replace them."""


@dataclass(frozen=True)
class CheckpointHeader:
    """What the metadata of a ``.safetensors`` file say; every field may be empty.

    Attributes:
        architecture: A timm name, or one that only the file's author knows.
        kwargs: Arguments of the architecture.
        num_classes: Number of classes of the head; 0 for a file without one.
        preprocessing: Keys of ``ModelSpec.preprocessing``.
        licence: Licence of the weights.
    """

    architecture: str | None = None
    kwargs: Mapping[str, object] = field(default_factory=dict)
    num_classes: int | None = None
    preprocessing: Mapping[str, object] = field(default_factory=dict)
    licence: str | None = None


def read_header(path: Path) -> CheckpointHeader:
    """Metadata of a ``.safetensors`` file; other formats have none. Reads no tensor.

    Raises:
        DataError: The file is damaged, or a metadata value is not what its key promises.
    """
    if path.suffix.lower() != ".safetensors":
        return CheckpointHeader()
    try:
        with safe_open(path, framework="pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise damaged(path, error) from error
    kwargs = _decode(metadata, "kwargs", path)
    num_classes = _decode(metadata, "num_classes", path)
    if not isinstance(kwargs, dict | None) or not isinstance(num_classes, int | None):
        raise DataError(f"The header of {path.name} must state kwargs as a mapping and num_classes as a whole number.")
    preprocessing = {
        key: metadata[key] if key in _WORDS else _decode(metadata, key, path)
        for key in PREPROCESSING_KEYS
        if key in metadata
    }
    return CheckpointHeader(
        architecture=metadata.get("architecture"),
        kwargs=cast("dict[str, object]", kwargs or {}),
        num_classes=num_classes,
        preprocessing=preprocessing,
        licence=metadata.get("licence") or metadata.get("license"),
    )


def is_header_of_ours(content: bytes) -> bool:
    """Whether this is the content of a ``.safetensors`` file with the ``MARK`` of crossgraft."""
    size = int.from_bytes(content[:8], "little")
    try:
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        return all(metadata[name] == value for name, value in MARK.items())
    except (ValueError, RecursionError, LookupError, TypeError):
        return False


def _decode(metadata: Mapping[str, str], key: str, path: Path) -> object:
    if key not in metadata:
        return None
    try:
        return json.loads(metadata[key])
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"The header of {path.name} states {key} as {shortened(metadata[key])!r}, which is not JSON."
        ) from error


def header_text(
    architecture: str, kwargs: Mapping[str, object], preprocessing: Preprocessing, licence: str | None = None
) -> dict[str, str]:
    """Metadata that ``read_header`` reads: all that is needed to build the network and to prepare its images."""
    size = [preprocessing.channels, preprocessing.height_pixels, preprocessing.width_pixels]
    return {
        **MARK,
        "architecture": architecture,
        "kwargs": json.dumps(dict(kwargs)),
        "input_size": json.dumps(size),
        "mean": json.dumps(preprocessing.mean),
        "std": json.dumps(preprocessing.std),
        "interpolation": preprocessing.interpolation,
        "resize_policy": preprocessing.resize_policy,
        "crop_pct": json.dumps(preprocessing.crop_fraction),
        **({} if licence is None else {"licence": licence}),
    }
