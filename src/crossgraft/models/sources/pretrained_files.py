"""timm's own weights on this machine: where they may lie, what to say if not, and the one download."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import torch
from huggingface_hub import constants as hub_constants
from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
from timm.models import get_pretrained_cfg

from crossgraft.errors import MissingWeightsError
from crossgraft.models.spec import CHECKPOINT_SUFFIXES
from crossgraft.progress import Reporter

_HUB_FILES = ("model.safetensors", "pytorch_model.bin")


def pretrained_config(name: str) -> dict[str, object]:
    """What timm says about the weights of ``name``: sizes, mean, where they are published. Builds nothing."""
    config = get_pretrained_cfg(name)
    return cast("dict[str, object]", config.to_dict()) if config is not None else {}


def find_pretrained(name: str, weights_dir: Path | None = None) -> Path | None:
    """Timm's weights of ``name`` on this machine: in ``weights_dir``, Hugging Face's cache or torch's cache.

    Args:
        name: Architecture, with or without the tag of its weights.
        weights_dir: Holds files named ``<name>.safetensors`` (or ``.pth``, ``.pt``, ``.bin``).
    """
    return next((path for path in _places(name, weights_dir) if path.is_file()), None)


def _places(name: str, weights_dir: Path | None) -> Iterator[Path]:
    config = pretrained_config(name)
    if weights_dir is not None:
        tag = config.get("tag")
        for stem in dict.fromkeys((name, f"{name.partition('.')[0]}.{tag}")):
            yield from (weights_dir / f"{stem}{suffix}" for suffix in CHECKPOINT_SUFFIXES)
    repository = config.get("hf_hub_id")
    if isinstance(repository, str):
        stated = config.get("hf_hub_filename")
        for file in (stated,) if isinstance(stated, str) else _HUB_FILES:
            cached = try_to_load_from_cache(repository, file)
            if isinstance(cached, str):
                yield Path(cached)
    url = config.get("url")
    if isinstance(url, str) and url.endswith(CHECKPOINT_SUFFIXES):
        yield Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]


def require_pretrained(
    name: str,
    weights_dir: Path | None = None,
    *,
    allow_download: bool = False,
    reporter: Reporter | None = None,
) -> Path:
    """The file with timm's weights; downloaded from the Hugging Face hub only with ``allow_download``.

    Raises:
        MissingWeightsError: Not on this machine, and not allowed or not possible to download.
    """
    found = find_pretrained(name, weights_dir)
    if found is not None:
        return found
    config = pretrained_config(name)
    repository, file = config.get("hf_hub_id"), config.get("hf_hub_filename") or _HUB_FILES[0]
    if not isinstance(repository, str) or not isinstance(file, str):
        raise MissingWeightsError(
            f"timm publishes no weights for {name}. Give weights: a file, or weights: random, in a zoo file."
        )
    if allow_download:
        return _download(name, repository, file, reporter or Reporter())
    suffix = Path(file).suffix
    folder = str(weights_dir) if weights_dir is not None else "a folder that you name with --weights-dir"
    raise MissingWeightsError(
        f"The weights of {name} are not on this machine. Download "
        f"https://huggingface.co/{repository}/resolve/main/{file} and put it as {name}{suffix} into {folder}; or pass "
        f"--allow-download, which stores it in {hub_constants.HF_HUB_CACHE}."
    )


def _download(name: str, repository: str, file: str, reporter: Reporter) -> Path:
    try:
        size = get_hf_file_metadata(hf_hub_url(repository, file)).size or 0
        reporter.say(
            f"Downloading the weights of {name}: {size / 1e6:.0f} MB from huggingface.co/{repository} to "
            f"{hub_constants.HF_HUB_CACHE}"
        )
        return Path(hf_hub_download(repository, file))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise MissingWeightsError(
            f"The weights of {name} could not be downloaded from huggingface.co/{repository} (--allow-download): {first_line}. "
            f"On a machine with network, download {file} and put it as {name}{Path(file).suffix} into --weights-dir."
        ) from error


def cached_timm_names() -> list[str]:
    """Names of timm weights in Hugging Face's cache, as ``architecture.tag``."""
    cache = Path(os.fspath(hub_constants.HF_HUB_CACHE))
    prefix = "models--timm--"
    return sorted(folder.name.removeprefix(prefix) for folder in cache.glob(f"{prefix}*") if folder.is_dir())
