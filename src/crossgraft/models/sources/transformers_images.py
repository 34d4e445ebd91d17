"""How transformers prepares images, from its ``preprocessor_config.json``, in the words of a zoo entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from crossgraft.errors import CrossgraftError, DataError, UnknownNameError, UsageError
from crossgraft.models.sources.transformers_networks import transformers
from crossgraft.types import shown_value

PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
_INSIDE = "image_processor"  # where the second of them keeps it
_PROCESSORS = ("Beit", "Bit", "CLIP", "ConvNext", "DeiT", "DINOv3ViT", "Siglip", "Siglip2", "ViT")
_KEYS = (
    *("do_resize", "size", "resample", "do_center_crop", "crop_size", "crop_pct", "do_rescale", "rescale_factor"),
    *("do_normalize", "image_mean", "image_std", "max_num_patches", "patch_size"),
)
_INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
_LARGEST_VALUE = 255
_SQUASHED_FROM = 384  # the size from which ConvNeXt's processor resizes without a crop
ADVICE = (
    "State how images are prepared in a zoo entry, for example preprocessing: {input_size: [3, 224, 224], mean: [0.5, 0.5, 0.5], "
    "std: [0.5, 0.5, 0.5]}."
)


def preprocessing_of(said: Mapping[str, object], *, channels: int, of: str) -> dict[str, object]:
    """Size, crop, interpolation, mean and standard deviation that a processor's file says.

    A mean and a standard deviation of pixels that are multiplied by another factor than 1/255, or by none, are brought to
    pixels from 0 to 1. A processor that keeps the aspect of the image and crops nothing gives images of many sizes; here the
    centre is cut out. One that squashes an image and then crops it (DeiT) is taken to crop an image of the same aspect.

    Args:
        said: The content of the file.
        channels: Channels that the network takes.
        of: The folder or repository, for messages.

    Raises:
        UsageError: It prepares images in a way that cannot be repeated, or states no mean.
        DataError: A value is not what its key promises.
    """
    inside = said.get(_INSIDE)
    said = cast("Mapping[str, object]", inside) if isinstance(inside, Mapping) else said
    if said.get("do_normalize", True) and not (said.get("image_mean") and said.get("image_std")):
        raise UsageError(f"{PROCESSOR_FILES[0]} of {of} normalises images and states no image_mean and image_std. {ADVICE}")
    if said.get("do_flip_channel_order"):
        raise UsageError(f"{PROCESSOR_FILES[0]} of {of} exchanges red and blue, which crossgraft does not.")
    processor = _processor(said, of=of)
    try:
        geometry = _geometry(processor, of)
        return {**geometry, "input_size": [channels, *cast("list[int]", geometry["input_size"])], **_colours(processor)}
    except CrossgraftError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise DataError(f"{PROCESSOR_FILES[0]} of {of} holds a value that has no meaning: {error}. {ADVICE}") from error


def _processor(said: Mapping[str, object], *, of: str) -> Any:
    """The processor of transformers, which knows what the values of older files mean."""
    stated = str(said.get("image_processor_type") or said.get("feature_extractor_type") or "")
    name = stated.removesuffix("Fast").replace("FeatureExtractor", "ImageProcessor")
    known = [f"{beginning}ImageProcessor" for beginning in _PROCESSORS]
    if name not in known:
        raise UnknownNameError(f"image_processor_type in {PROCESSOR_FILES[0]} of {of}", stated or "none", known, hint=ADVICE)
    try:
        return getattr(transformers(), name)(**{key: said[key] for key in _KEYS if key in said})
    except Exception as error:  # its checks have classes of their own
        raise DataError(f"{PROCESSOR_FILES[0]} of {of} holds a value that {name} refuses: {error}. {ADVICE}") from error


def _geometry(processor: Any, of: str) -> dict[str, object]:
    if not processor.do_resize:
        raise UsageError(f"{PROCESSOR_FILES[0]} of {of} does not resize images, and a network here takes one size. {ADVICE}")
    if (filter_of_pixels := int(processor.resample)) not in _INTERPOLATIONS:
        raise UsageError(
            f"{PROCESSOR_FILES[0]} of {of} resizes images by the filter {filter_of_pixels} of Pillow, which crossgraft does not. "
            f"{ADVICE}"
        )
    interpolation = {"interpolation": _INTERPOLATIONS[filter_of_pixels]}
    number: Any = getattr(processor, "max_num_patches", None)
    if number is not None:
        side = round(int(number) ** 0.5) * int(processor.patch_size)
        return {**interpolation, "input_size": [side, side], "resize_policy": "squash"}
    size, crop = _sides(processor.size), _sides(processor.crop_size) if getattr(processor, "do_center_crop", False) else {}
    shortest: Any = size.get("shortest_edge")
    if shortest is None and not {"height", "width"} <= size.keys():
        raise UsageError(f"{PROCESSOR_FILES[0]} of {of} resizes images by {', '.join(size)}, which crossgraft does not. {ADVICE}")
    if crop:
        height, width = crop["height"], crop["width"]
        fraction = min(height, width) / (shortest or min(size["height"], size["width"]))
        if fraction > 1:
            raise UsageError(f"{PROCESSOR_FILES[0]} of {of} crops more pixels than an image has. {ADVICE}")
        found = {"input_size": [height, width], "resize_policy": "crop", "crop_pct": fraction}
        if shortest is None and fraction == 1:
            found = {"input_size": [height, width], "resize_policy": "squash"}
    elif shortest is None:
        found = {"input_size": [size["height"], size["width"]], "resize_policy": "squash"}
    elif (fraction := getattr(processor, "crop_pct", None)) is not None and shortest >= _SQUASHED_FROM:
        found = {"input_size": [shortest, shortest], "resize_policy": "squash"}
    else:
        found = {"input_size": [shortest, shortest], "resize_policy": "crop", "crop_pct": fraction or 1.0}
    return {**interpolation, **found}


def _sides(value: Any) -> dict[str, int]:
    items = dict(value)
    return {key: items[key] for key in ("height", "width", "shortest_edge", "longest_edge") if items.get(key) is not None}


def _colours(processor: Any) -> dict[str, object]:
    factor = _LARGEST_VALUE * (float(processor.rescale_factor) if processor.do_rescale else 1.0)
    if abs(factor - 1) < 1e-6:
        factor = 1.0  # 1/255 in decimals
    if not processor.do_normalize:
        return {"mean": 0.0, "std": 1 / factor}
    return {"mean": _numbers(processor.image_mean, factor), "std": _numbers(processor.image_std, factor)}


def _numbers(values: Any, divided_by: float) -> list[float] | float:
    if isinstance(values, Sequence) and not isinstance(values, str):
        return [float(value) / divided_by for value in cast("Sequence[Any]", values)]
    if isinstance(values, int | float):
        return float(values) / divided_by
    raise ValueError(f"{shown_value(values)} is no list of numbers")
