"""What to type next, where that depends on what is on this machine and in the current folder."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from crossgraft.report.sections._verdict import Following


def with_models_here(line: str, purpose: str, *, weights_dir: str | None = None) -> Following:
    """``line``, which names no models; where it would find none, the list that says how to get some.

    Args:
        line: A command that takes the models on this machine.
        purpose: What it is for.
        weights_dir: Folder of checkpoints that ``line`` names.
    """
    if _are_here(weights_dir):
        return Following(line, purpose)
    return Following("crossgraft list models", "to choose models, as none of the usual ones is on this machine yet")


def new_folder(name: str) -> str:
    """``name``, or where that is there already the first of ``name-2``, ``name-3`` … that is not."""
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if not Path(each).exists())


def _are_here(weights_dir: str | None) -> bool:
    from huggingface_hub.constants import HF_HUB_CACHE
    from torch.hub import get_dir

    folder = None if weights_dir is None else Path(weights_dir)
    places = (
        Path(HF_HUB_CACHE).glob("models--*"),
        Path(get_dir(), "checkpoints").glob("*"),
        folder and folder.glob("*"),
    )
    if not any(any(place) for place in places if place is not None):
        return False  # without timm, which takes long to import
    from crossgraft.models.zoo import models_here

    return bool(models_here(folder))
