"""torchvision's own weights on this machine: where they may lie, what to say if not, and the one download."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import torch
from torchvision.models import WeightsEnum

from crossgraft.errors import MissingWeightsError
from crossgraft.models.spec import CHECKPOINT_SUFFIXES, TORCHVISION_PREFIX
from crossgraft.progress import Reporter

# torchvision writes the first eight digits of a file's SHA-256 into its name.
_HASH_IN_NAME = re.compile(r"-([a-f0-9]{8,})\.")


def find_torchvision_weights(architecture: str, weights: WeightsEnum, weights_dir: Path | None = None) -> Path | None:
    """The published file on this machine: in ``weights_dir`` or in torch's cache.

    Args:
        architecture: Without ``torchvision:`` and tag.
        weights: Pretrained weights of the architecture.
        weights_dir: Holds the file under its published name, or as ``<architecture>.<tag>.pth`` (or ``.safetensors``,
            ``.pt``, ``.bin``). The name of the architecture alone would be the name of timm's weights.
    """
    return next((path for path in _places(architecture, weights, weights_dir) if path.is_file()), None)


def _places(architecture: str, weights: WeightsEnum, weights_dir: Path | None) -> Iterator[Path]:
    published = published_name(weights)
    if weights_dir is not None:
        yield weights_dir / published
        yield from (weights_dir / f"{architecture}.{weights.name}{suffix}" for suffix in CHECKPOINT_SUFFIXES)
    yield torch_cache() / published


def published_name(weights: WeightsEnum) -> str:
    """File name at download.pytorch.org."""
    return weights.url.rpartition("/")[2]


def torch_cache() -> Path:
    """Where torch keeps what it has downloaded."""
    return Path(torch.hub.get_dir()) / "checkpoints"


def require_torchvision_weights(
    architecture: str,
    weights: WeightsEnum | None,
    weights_dir: Path | None = None,
    *,
    allow_download: bool,
    reporter: Reporter | None,
) -> Path:
    """The published file; downloaded only with ``allow_download``.

    Raises:
        MissingWeightsError: Not on this machine, and not allowed or not possible to download.
    """
    source = TORCHVISION_PREFIX + architecture
    if weights is None:
        raise MissingWeightsError(
            f"torchvision publishes no weights for {source}. Give weights: a file, or weights: random, in a zoo file."
        )
    found = find_torchvision_weights(architecture, weights, weights_dir)
    if found is not None:
        return found
    if allow_download:
        return _download(source, weights, reporter or Reporter())
    folder = str(weights_dir) if weights_dir is not None else "a folder that you name with --weights-dir"
    raise MissingWeightsError(
        f"The weights {weights.name} of {source} are not on this machine. Download {weights.url} and put it as "
        f"{published_name(weights)} into {folder}; or pass --allow-download, which stores it in {torch_cache()}."
    )


def _download(source: str, weights: WeightsEnum, reporter: Reporter) -> Path:
    target = torch_cache() / published_name(weights)
    stated_hash = _HASH_IN_NAME.search(target.name)
    reporter.say(
        f"Downloading the weights {weights.name} of {source}: {weights.meta['_file_size']:.0f} MB from {weights.url} to "
        f"{target.parent}"
    )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(
            weights.url, str(target), hash_prefix=stated_hash.group(1) if stated_hash else None, progress=False
        )
    except (OSError, RuntimeError) as error:  # RuntimeError: the hash is not the one that the name states
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingWeightsError(
            f"The weights of {source} could not be downloaded from {weights.url}: {first_line}. On a machine with network, "
            f"download that file and put it as {target.name} into --weights-dir."
        ) from error
    return target
