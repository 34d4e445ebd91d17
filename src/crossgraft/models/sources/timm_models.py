"""Architectures of timm: check names and arguments, build, load timm's own weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import timm
import torchvision
from timm.models import get_pretrained_cfg, is_model, list_models, list_pretrained
from torch import nn
from torchvision.models import list_models as list_torchvision_models

from crossgraft.errors import CrossgraftError, UnknownNameError, UsageError, nearest_names
from crossgraft.models.building_limits import building_limits, refuse_large_numbers
from crossgraft.models.sources.architecture_arguments import WRONG_VALUES, refuse_other_arguments
from crossgraft.models.sources.local_checkpoint import check_fit, read_state_dict
from crossgraft.models.spec import TORCHVISION_PREFIX
from crossgraft.paths import shortened
from crossgraft.types import Preprocessing

# What timm's interpolation of relative positions makes torch say; the result is right.
_NOTHING_TO_DO = (r"torch\.searchsorted", "Using a non-tuple sequence for multidimensional indexing")


def check_architecture(name: str) -> None:
    """Whether ``name`` is an architecture of timm, with or without a tag of pretrained weights.

    Raises:
        UnknownNameError: With the nearest names.
    """
    architecture, _, tag = name.partition(".")
    if not is_model(architecture):
        in_torchvision = architecture in list_torchvision_models(module=torchvision.models)
        stem, dot, suffix = name.rpartition(".")
        is_file = bool(stem and nearest_names(dot + suffix, [".safetensors"]))
        raise UnknownNameError(
            "model",
            name,
            list_models(),
            hint="`crossgraft list models` shows a start; timm has many more names.",
            meant=f"{TORCHVISION_PREFIX}{name}" if in_torchvision else f"{stem}.safetensors" if is_file else None,
        )
    if tag and name not in (known := list_pretrained(f"{architecture}.*")):
        raise UnknownNameError("pretrained model", name, known)


def is_architecture(name: str) -> bool:
    """Whether timm knows ``name`` without its tag."""
    return is_model(name.partition(".")[0])


def pretrained_config(name: str) -> dict[str, object]:
    """What timm says about the weights of ``name``: sizes, mean, where they are published. Builds nothing."""
    config = get_pretrained_cfg(name)
    return cast("dict[str, object]", config.to_dict()) if config is not None else {}


def build_architecture(name: str, kwargs: Mapping[str, object]) -> nn.Module:
    """The network with random weights.

    Raises:
        UsageError: The architecture does not take these arguments, or one of them would do more than shape it.
    """
    refuse_other_arguments(kwargs, where=f"the kwargs of {name}")
    try:
        return _create(name, kwargs)
    except CrossgraftError:
        raise
    except WRONG_VALUES as error:
        raise _can_not_build(name, kwargs, error) from error


def build_pretrained(name: str, kwargs: Mapping[str, object], file: Path) -> nn.Module:
    """The network with timm's own weights from ``file``; timm adapts them to other classes or channels.

    Raises:
        UsageError: The architecture does not take these arguments.
        WeightsMismatchError: The file does not fit; all keys are listed.
    """
    refuse_other_arguments(kwargs, where=f"the kwargs of {name}")
    state = read_state_dict(file)
    try:
        module = _create(name, kwargs, pretrained=True, pretrained_cfg_overlay={"state_dict": dict(state)})
    except (RuntimeError, KeyError):
        check_fit(_create(name, kwargs), state, file=file.name, model=name)
        raise
    cast("dict[str, object]", module.pretrained_cfg).pop("state_dict", None)  # a second copy of all weights
    return module


def _create(name: str, kwargs: Mapping[str, object], **options: Any) -> nn.Module:
    refuse_large_numbers(kwargs, where=f"the kwargs of {name}")
    try:
        with building_limits(name):
            return timm.create_model(name, **options, **cast("dict[str, Any]", kwargs))
    except TypeError as error:
        raise _can_not_build(name, kwargs, error) from error


def _can_not_build(name: str, kwargs: Mapping[str, object], error: Exception) -> UsageError:
    given = shortened(", ".join(f"{key}={value!r}" for key, value in kwargs.items())) or "no arguments"
    return UsageError(
        f"timm cannot build {name} with {given}: {error}. Check kwargs, or give source: package.module:factory."
    )


def accept_input_size(module: nn.Module, preprocessing: Preprocessing, *, name: str, stated: tuple[int, int]) -> None:
    """Fit a network whose input size is built in (a ViT's positions) to another size; others need nothing.

    Args:
        module: The network.
        preprocessing: Says the size.
        name: Name for messages.
        stated: Height and width that the network was built for, if it does not say so itself.

    Raises:
        UsageError: The network cannot change its size.
    """
    config = cast("Mapping[str, Any]", getattr(module, "pretrained_cfg", {}))
    if not config.get("fixed_input_size", False):
        return
    size = (preprocessing.height_pixels, preprocessing.width_pixels)
    built_for = getattr(getattr(module, "patch_embed", None), "img_size", None) or stated
    if tuple(built_for) == size:
        return
    set_input_size = getattr(module, "set_input_size", None)
    if not callable(set_input_size):
        raise UsageError(
            f"{name} takes images of {built_for[0]}×{built_for[1]} pixels only. Leave --image-size out, or choose a "
            "convolutional network."
        )
    with warnings.catch_warnings():
        for message in _NOTHING_TO_DO:
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        set_input_size(img_size=size)
