"""Label smoothing: leave a little probability to every other class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.errors import UsageError
from crossgraft.tune.image_protocols import BatchTransform, Images, SoftTargets


@dataclass(frozen=True)
class LabelSmoothing(BatchTransform):
    """ỹ = (1 − ε)·y + ε/C: a mixture of the target and the even distribution over the C classes.

    Images stay as they are. Several labels per image are refused: their targets are no distribution over the labels, so
    ε/C has no meaning there.

    Attributes:
        epsilon: ε in [0, 1). The paper uses 0.1.

    Raises:
        UsageError: ε is out of its range.
    """

    name: ClassVar[str] = "label_smoothing"
    title: ClassVar[str] = "Label smoothing"
    citation: ClassVar[str] = "Szegedy et al., Rethinking the Inception Architecture for Computer Vision, CVPR 2016, §7"

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < 1:
            raise UsageError(f"label_smoothing: epsilon must be in [0, 1), not {self.epsilon}.")

    def __call__(self, images: Images, targets: SoftTargets, generator: torch.Generator) -> tuple[Images, SoftTargets]:
        """The same images and smoothed targets."""
        return images, (1 - self.epsilon) * targets + self.epsilon / targets.shape[1]
