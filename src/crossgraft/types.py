"""Shapes and small value types used by every layer.

Axis names are the field's words and mean the same size everywhere in one call: ``num_samples`` (n), ``num_features``
(d), ``num_classes`` (C), ``num_source_classes`` (Z).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, Float64, Int, Shaped

from crossgraft.errors import UsageError
from crossgraft.plain_types import AllowedCode as AllowedCode
from crossgraft.plain_types import ResizePolicy as ResizePolicy

Features = Float[np.ndarray, "num_samples num_features"]
"""Penultimate features, one row per image."""
SourceLogits = Float[np.ndarray, "num_samples num_source_classes"]
"""What the pretrained head says about each image, before softmax."""
SourceFeatures = Float[np.ndarray, "num_source_samples num_features"]
"""Penultimate features of images of the source domain."""
Labels = Shaped[np.ndarray, " num_samples"]
"""One label per image, of any type that sorts: integers, strings, booleans."""
ClassIndices = Int[np.ndarray, " num_samples"]
"""Labels mapped to 0 … C−1 in sorted order."""
LabelMatrix = Int[np.ndarray, "num_samples num_labels"]
"""Multi-label targets: 1 where the image has the label, 0 where it has not."""
Targets = ClassIndices | LabelMatrix
"""What is to be predicted: one class per image, or any number of labels per image."""
Groups = Shaped[np.ndarray, " num_samples"]
"""The patient, writer or lesion that each image belongs to."""
History = Float64[np.ndarray, "num_known_targets num_models"]
"""Results of models on other targets; NaN where a model was not fine-tuned."""
Replicates = Float64[np.ndarray, " num_blocks"]
"""Leave-one-block-out values of one estimate."""

TaskName = Literal["multi-class", "binary", "multi-label"]
"""What the targets are: one of several classes, one of two (the last is the positive one), or any number of labels."""
RecordedTask = Literal["multi-class", "multi-label"]
"""The same in records, which do not tell two classes from more."""
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]

LARGEST_INPUT_PIXELS = 16384
"""Largest length of a side; far above what any network takes, and small enough that one input fits into memory."""
LEAST_CROP_FRACTION = 0.01
"""A smaller one would resize every image to more than a hundred times the input."""
LEAST_STD = 1e-6
"""In magnitude; a smaller one makes inputs that the arithmetic of float32 does not hold."""
_LONGEST_VALUE = 60  # characters of a value in a message


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes the input of one backbone.

    Attributes:
        height_pixels: Input height.
        width_pixels: Input width.
        channels: 1 or 3; grey images are repeated, colour images are reduced to luminance.
        mean: Per channel, of values in [0, 1].
        std: Per channel, of values in [0, 1].
        interpolation: How pixels are resampled (always with antialiasing).
        resize_policy: ``crop`` resizes the shorter side to ``size / crop_fraction`` and cuts the centre, as the weights
            were evaluated; ``squash`` resizes both sides and changes the aspect; ``pad`` fits the longer side and adds
            black borders.
        crop_fraction: Share of the resized image that ``crop`` keeps, in [0.01, 1].

    Raises:
        UsageError: A value has no meaning; the message names the field and the value.
    """

    height_pixels: int
    width_pixels: int
    channels: int = 3
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bilinear"
    resize_policy: ResizePolicy = "crop"
    crop_fraction: float = 1.0

    def __post_init__(self) -> None:
        for side in ("height_pixels", "width_pixels"):
            pixels = getattr(self, side)
            _require(1 <= pixels <= LARGEST_INPUT_PIXELS, side, f"from 1 to {LARGEST_INPUT_PIXELS}", pixels)
        _require(self.channels in (1, 3), "channels", "1 or 3", self.channels)
        crop = self.crop_fraction
        _require(LEAST_CROP_FRACTION <= crop <= 1, "crop_fraction", f"in [{LEAST_CROP_FRACTION}, 1]", crop)
        for field, values in (("mean", self.mean), ("std", self.std)):
            _require(len(values) == self.channels, field, f"{self.channels} number(s), one per channel", values)
            _require(all(map(math.isfinite, values)), field, "finite in every channel", values)
        _require(min(map(abs, self.std)) >= LEAST_STD, "std", f"at least {LEAST_STD:g} in magnitude in every channel", self.std)

    def describe(self) -> str:
        """One line for people: size, interpolation, resize policy, mean and standard deviation."""
        policy = f"{self.resize_policy} {self.crop_fraction:g}" if self.resize_policy == "crop" else self.resize_policy
        mean = " ".join(f"{value:.3g}" for value in self.mean)
        std = " ".join(f"{value:.3g}" for value in self.std)
        channels = f"{self.channels} channel{'' if self.channels == 1 else 's'}"
        return f"{self.height_pixels}×{self.width_pixels} px, {channels}, {self.interpolation}, {policy}, mean {mean}, std {std}"


def __getattr__(name: str) -> Any:
    """``Task`` for one release: it named what is ``TaskName`` now."""
    if name != "Task":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    message = "crossgraft.types.Task goes with the next release: write `from crossgraft.types import TaskName`."
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return TaskName


def _require(holds: bool, field: str, what: str, value: object) -> None:
    if not holds:
        raise UsageError(f"{field} must be {what}; found {shown_value(value)}.")


def shown_value(value: object) -> str:
    """A value of a file as a message shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"
