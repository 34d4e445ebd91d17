"""From what a checkpoint, an architecture and a user say about input images to one ``Preprocessing``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import cast, get_args

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.record import PreprocessingRecord
from crossgraft.types import (
    LARGEST_INPUT_PIXELS,
    LEAST_CROP_FRACTION,
    LEAST_STD,
    Interpolation,
    Preprocessing,
    ResizePolicy,
    shown_value,
)

POLICY_OF_CROP_MODE: dict[object, ResizePolicy] = {"center": "crop", "squash": "squash", "border": "pad"}


def resolve_preprocessing(
    architecture: Mapping[str, object],
    overrides: Mapping[str, object],
    *,
    model: str,
    image_size: int | None = None,
    resize_policy: ResizePolicy | None = None,
) -> Preprocessing:
    """Merge the three voices; the more specific one wins.

    Args:
        architecture: timm's ``pretrained_cfg`` as a mapping; empty when the network says nothing.
        overrides: Keys of ``ModelSpec.preprocessing``: what the checkpoint's header and the zoo entry say.
        model: Name for messages.
        image_size: Height and width in pixels, over everything else.
        resize_policy: Over everything else.

    Raises:
        UsageError: Nobody states the input size, or a value has no meaning.
    """
    described = {**architecture, **overrides}
    if described.get("input_size") is None and image_size is None:
        raise UsageError(
            f"The model {model} does not say which image size it takes. Add to its zoo entry, for example, "
            "preprocessing: {input_size: [3, 224, 224], mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5]}."
        )
    channels, height, width = _input_size(described.get("input_size"), model, architecture.get("input_size"))
    defaults = Preprocessing(height_pixels=1, width_pixels=1)
    chosen = Preprocessing(
        height_pixels=height,
        width_pixels=width,
        channels=channels,
        mean=_per_channel(described.get("mean", defaults.mean), channels, "mean", model),
        std=_per_channel(described.get("std", defaults.std), channels, "std", model),
        interpolation=_interpolation(described.get("interpolation", defaults.interpolation), model),
        resize_policy=_policy(described, model),
        crop_fraction=_crop_fraction(described.get("crop_pct", defaults.crop_fraction), model),
    )
    if image_size is not None:
        if not 1 <= image_size <= LARGEST_INPUT_PIXELS:
            raise UsageError(f"The image size must be at least 1 pixel and at most {LARGEST_INPUT_PIXELS}, found {image_size}.")
        chosen = replace(chosen, height_pixels=image_size, width_pixels=image_size)
    if resize_policy is None:
        return chosen
    return replace(chosen, resize_policy=_policy({"resize_policy": resize_policy}, model))


def describe_preprocessing(preprocessing: Preprocessing) -> PreprocessingRecord:
    """Size, interpolation, resize policy, mean and standard deviation."""
    return PreprocessingRecord.model_validate({**asdict(preprocessing), "description": preprocessing.describe()})


def _input_size(value: object, model: str, of_network: object) -> tuple[int, int, int]:
    """``[channels, height, width]`` or one number of pixels for a square input with the channels of the network, else RGB."""
    if value is None:
        return 3, 1, 1  # the caller replaces the size
    known = cast("Sequence[object]", of_network) if isinstance(of_network, Sequence) else ()
    sizes = [known[0] if known else 3, value, value] if isinstance(value, int) else value
    if (
        not isinstance(sizes, Sequence)
        or len(sizes) != 3
        or not all(isinstance(size, int) and 0 < size <= LARGEST_INPUT_PIXELS for size in sizes)
        or sizes[0] not in (1, 3)
    ):
        raise UsageError(
            f"The input_size of the model {model} must be [channels, height, width] with 1 or 3 channels, or one number "
            f"of pixels, at most {LARGEST_INPUT_PIXELS}; found {shown_value(value)}."
        )
    channels, height, width = cast("Sequence[int]", sizes)
    return channels, height, width


def _per_channel(value: object, channels: int, key: str, model: str) -> tuple[float, ...]:
    values = [value] * channels if isinstance(value, int | float) else value
    if isinstance(values, Sequence) and all(isinstance(item, int | float) and _fits(item, key) for item in values):
        numbers = tuple(float(item) for item in values)
        if len(numbers) == channels:
            return numbers
        if channels == 1 and len(numbers) == 3:  # a colour recipe on a grey network: use its average
            return (sum(numbers) / 3,)
    kind = "positive number(s)" if key == "std" else "number(s)"
    raise UsageError(f"The {key} of the model {model} must be {channels} {kind}, each finite; found {shown_value(value)}.")


def _fits(number: int | float, key: str) -> bool:
    """Comparing is safe for integers of any length; converting one to a float is not. NaN fits nowhere."""
    return (LEAST_STD if key == "std" else -sys.float_info.max) <= number <= sys.float_info.max


def _interpolation(value: object, model: str) -> Interpolation:
    known = get_args(Interpolation)
    if value == "random":  # timm's word for training recipes that were evaluated bilinearly
        return "bilinear"
    if value not in known:
        raise UnknownNameError(f"interpolation of the model {model}", str(value), known)
    return cast(Interpolation, value)


def _policy(described: Mapping[str, object], model: str) -> ResizePolicy:
    value = described.get("resize_policy") or POLICY_OF_CROP_MODE.get(described.get("crop_mode"), "crop")
    if value not in get_args(ResizePolicy):
        raise UnknownNameError(f"resize policy of the model {model}", str(value), get_args(ResizePolicy))
    return cast(ResizePolicy, value)


def _crop_fraction(value: object, model: str) -> float:
    if not isinstance(value, int | float) or not LEAST_CROP_FRACTION <= value <= 1:
        raise UsageError(f"The crop_pct of the model {model} must be in [{LEAST_CROP_FRACTION}, 1], found {shown_value(value)}.")
    return float(value)
