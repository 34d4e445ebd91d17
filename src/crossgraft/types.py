"""Shapes and small value types used by every layer.

Axis names are the field's words and mean the same size everywhere in one call: ``num_samples`` (n), ``num_features``
(d), ``num_classes`` (C), ``num_source_classes`` (Z).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64, Int, Shaped

Features = Float[np.ndarray, "num_samples num_features"]
"""Penultimate features, one row an image."""
SourceLogits = Float[np.ndarray, "num_samples num_source_classes"]
"""What the pretrained head says about each image, before softmax."""
SourceFeatures = Float[np.ndarray, "num_source_samples num_features"]
"""Penultimate features of images of the source domain."""
Labels = Shaped[np.ndarray, " num_samples"]
"""One label an image, of any type that sorts: integers, strings, booleans."""
ClassIndices = Int[np.ndarray, " num_samples"]
"""Labels mapped to 0 … C−1 in sorted order."""
LabelMatrix = Int[np.ndarray, "num_samples num_labels"]
"""Multi-label targets: 1 where the image has the label, 0 where it has not."""
Targets = ClassIndices | LabelMatrix
"""What is to be predicted: one class an image, or any number of labels an image."""
Groups = Shaped[np.ndarray, " num_samples"]
"""The patient, writer or lesion that each image belongs to."""
Replicates = Float64[np.ndarray, " num_blocks"]
"""Leave-one-block-out values of one estimate."""

Task = Literal["multi-class", "binary", "multi-label"]
"""What the targets are: one of several classes, one of two (the last is the positive one), or any number of labels."""
ResizePolicy = Literal["crop", "squash", "pad"]
Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]


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
        crop_fraction: Share of the resized image that ``crop`` keeps, in (0, 1].
    """

    height_pixels: int
    width_pixels: int
    channels: int = 3
    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bilinear"
    resize_policy: ResizePolicy = "crop"
    crop_fraction: float = 1.0

    def describe(self) -> str:
        """One line for people: size, interpolation, resize policy, mean and standard deviation."""
        policy = f"{self.resize_policy} {self.crop_fraction:g}" if self.resize_policy == "crop" else self.resize_policy
        mean = " ".join(f"{value:.3g}" for value in self.mean)
        std = " ".join(f"{value:.3g}" for value in self.std)
        return (
            f"{self.height_pixels}×{self.width_pixels} px, {self.channels} channels, {self.interpolation}, {policy}, "
            f"mean {mean}, std {std}"
        )
