"""Images at the size of an input: resized with antialiasing, cut or padded, without torch.

8-bit images are resized in 8 bits by Pillow, as the evaluation transforms of timm and torchvision do it, so
that a backbone sees what it was evaluated on. Images of 16 bits or floats are resized in float and keep their
range: 65535 is white, and nothing is clipped on the way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, UInt8
from PIL import Image

from crossgraft.types import Interpolation, Preprocessing

_RESAMPLING: dict[Interpolation, Image.Resampling] = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_FULL_RANGE = {"uint8": 255, "uint16": 65535, "float32": 1}
_LUMINANCE = np.array([0.299, 0.587, 0.114], dtype=np.float32)  # ITU-R BT.601, as Pillow's own conversion to grey


class _Placement(NamedTuple):
    """How large an image becomes, which part of that is seen, and where it stands in the input; in pixels."""

    width: int
    height: int
    cut_left: int
    cut_top: int
    left: int
    top: int


def resize_images(
    images: Sequence[np.ndarray], preprocessing: Preprocessing, *, grey: bool, in_8_bits: bool
) -> UInt8[np.ndarray, "num_images height width samples"] | Float32[np.ndarray, "num_images height width samples"]:
    """The first half of ``prepare_batch``: images at the size of the input, before mean and standard deviation.

    Args:
        images: (height, width, 1 or 3) each, uint8, uint16 or float32 in [0, 1]; sizes and types may differ.
        preprocessing: Size, resize policy and interpolation.
        grey: Give one channel (colour becomes luminance) instead of three (grey is repeated).
        in_8_bits: Give uint8 from 0 to 255, for images that are all uint8; otherwise float32 in [0, 1].
    """
    height, width = preprocessing.height_pixels, preprocessing.width_pixels
    batch = np.zeros((len(images), height, width, 1 if grey else 3), dtype=np.uint8 if in_8_bits else np.float32)
    for image, canvas in zip(images, batch, strict=True):
        _resize_into(canvas, image, preprocessing, in_8_bits=in_8_bits)
    return batch


def resize_image(
    image: np.ndarray, preprocessing: Preprocessing
) -> UInt8[np.ndarray, "height width samples"] | Float32[np.ndarray, "height width samples"]:
    """One image at the size of the input, in as few channels and bits as show all of it: a part of ``stack_resized``.

    Args:
        image: (height, width, 1 or 3) of uint8, uint16, or float32 in [0, 1].
        preprocessing: Size, resize policy and interpolation; luminance, where it has one channel.

    Returns:
        uint8 of an image of 8 bits, else float32 in [0, 1].
    """
    grey = preprocessing.channels == 1 or image.shape[-1] == 1
    return resize_images([image], preprocessing, grey=grey, in_8_bits=image.dtype == np.uint8)[0]


def stack_resized(
    images: Sequence[np.ndarray],
) -> UInt8[np.ndarray, "num_images height width samples"] | Float32[np.ndarray, "num_images height width samples"]:
    """What ``resize_image`` made of several images, in one type: uint8 and one channel where all images are so.

    Among others, 8 bits become float32 in [0, 1], and grey is repeated.
    """
    in_8_bits = all(image.dtype == np.uint8 for image in images)
    samples = max(image.shape[-1] for image in images)
    batch = np.empty((len(images), *images[0].shape[:2], samples), dtype=np.uint8 if in_8_bits else np.float32)
    for image, place in zip(images, batch, strict=True):
        place[:] = image if image.dtype == batch.dtype else image.astype(np.float32) / _FULL_RANGE["uint8"]
    return batch


def resize_alone(image: np.ndarray, preprocessing: Preprocessing) -> np.ndarray:
    """An image as its resize policy makes it, before it is cut, padded and normalised; preparing it resizes no more.

    Args:
        image: (height, width, 1 or 3) of uint8, uint16, or float32 in [0, 1].
        preprocessing: Size, resize policy and interpolation.

    Returns:
        (new height, new width, channels) of the same type.
    """
    placement, resampling = (_place(image.shape[0], image.shape[1], preprocessing), _RESAMPLING[preprocessing.interpolation])
    if image.dtype == np.uint8:
        return _resize_8_bits(image, placement, resampling, to_grey=False)
    resized = _resize_float(image, placement, resampling, to_grey=False)
    full_range = _FULL_RANGE[image.dtype.name]
    return resized if full_range == 1 else np.round(resized * full_range).astype(image.dtype)


def _resize_into(canvas: np.ndarray, image: np.ndarray, preprocessing: Preprocessing, *, in_8_bits: bool) -> None:
    """Write one resized image into its place of the batch; the borders stay black."""
    placement = _place(image.shape[0], image.shape[1], preprocessing)
    resampling = _RESAMPLING[preprocessing.interpolation]
    to_grey = canvas.shape[-1] == 1 and image.shape[-1] == 3
    if image.dtype == np.uint8:
        resized = _resize_8_bits(image, placement, resampling, to_grey=to_grey)
        resized = resized if in_8_bits else resized.astype(np.float32) / 255
    else:
        resized = _resize_float(image, placement, resampling, to_grey=to_grey)
    target = canvas[placement.top :, placement.left :]
    seen = resized[placement.cut_top :, placement.cut_left :][: target.shape[0], : target.shape[1]]
    target[: seen.shape[0], : seen.shape[1]] = seen


def _resize_8_bits(image: np.ndarray, placement: _Placement, resampling: Image.Resampling, *, to_grey: bool) -> np.ndarray:
    picture = Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image)
    if to_grey:
        picture = picture.convert("L")
    resized = np.asarray(picture.resize((placement.width, placement.height), resampling))
    return resized[..., np.newaxis] if resized.ndim == 2 else resized


def _resize_float(image: np.ndarray, placement: _Placement, resampling: Image.Resampling, *, to_grey: bool) -> np.ndarray:
    samples = image.astype(np.float32) / _FULL_RANGE[image.dtype.name]
    if to_grey:
        samples = (samples @ _LUMINANCE)[..., np.newaxis]
    planes = [
        np.asarray(Image.fromarray(samples[..., channel]).resize((placement.width, placement.height), resampling))
        for channel in range(samples.shape[-1])
    ]
    # Bicubic and Lanczos overshoot at edges; in 8 bits Pillow cuts that off, so do the same here.
    return np.clip(np.stack(planes, axis=-1), 0, 1)


def _place(height: int, width: int, preprocessing: Preprocessing) -> _Placement:
    """Where an image of this size goes under the resize policy."""
    full_height, full_width = preprocessing.height_pixels, preprocessing.width_pixels
    if preprocessing.resize_policy == "squash":
        return _Placement(full_width, full_height, 0, 0, 0, 0)
    if preprocessing.resize_policy == "pad":
        scale = min(full_height / height, full_width / width)
        new_height = min(full_height, max(1, round(height * scale)))
        new_width = min(full_width, max(1, round(width * scale)))
        left, top = (full_width - new_width) // 2, (full_height - new_height) // 2
        return _Placement(new_width, new_height, 0, 0, left, top)
    return _place_crop(height, width, preprocessing)


def _place_crop(height: int, width: int, preprocessing: Preprocessing) -> _Placement:
    """Resize until the image covers ``size / crop_fraction``, then cut the centre; offsets round half to even."""
    full_height, full_width = preprocessing.height_pixels, preprocessing.width_pixels
    resized_height, resized_width = _covering_size(
        height, width, math.floor(full_height / preprocessing.crop_fraction), math.floor(full_width / preprocessing.crop_fraction)
    )
    cut_left, cut_top = round((resized_width - full_width) / 2), round((resized_height - full_height) / 2)
    return _Placement(resized_width, resized_height, cut_left, cut_top, 0, 0)


def _covering_size(height: int, width: int, least_height: int, least_width: int) -> tuple[int, int]:
    """The smallest size of the same shape that covers the least one, rounded as timm does it.

    Weights were evaluated with that rounding: for square inputs torchvision cuts the longer side down to a
    whole number; for others timm rounds it. One pixel more or less moves the whole crop.
    """
    if least_height == least_width:
        short = least_height
        return (short, int(short * width / height)) if height <= width else (int(short * height / width), short)
    ratio = min(height / least_height, width / least_width)
    return round(height / ratio), round(width / ratio)
