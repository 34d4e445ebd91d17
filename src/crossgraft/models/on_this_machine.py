"""What to type next, where that depends on what is on this machine and in the current folder."""

from __future__ import annotations

import shlex
from itertools import count
from pathlib import Path

from crossgraft.options.models import SMALL_MODELS, THEIR_SIZE
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
    here = f"to rank two small models {purpose}, which it downloads ({THEIR_SIZE}), as none is on this machine"
    return Following(f"{line} --models {SMALL_MODELS}{consent}", here)


def new_folder(name: str) -> str:
    """``name``, or where that is there already the first of ``name-2``, ``name-3`` … that is not."""
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if not Path(each).exists())


def _are_here() -> bool:
    from huggingface_hub.constants import HF_HUB_CACHE
    from torch.hub import get_dir

    if not any(
        any(place) for place in (Path(HF_HUB_CACHE).glob("models--*"), Path(get_dir(), "checkpoints").glob("*"))
    ):
        return False  # said without timm, which takes long to import
    from crossgraft.models.zoo import models_here

    return bool(models_here())
