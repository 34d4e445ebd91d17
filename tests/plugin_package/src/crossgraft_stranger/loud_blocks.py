"""A small feature transform: each image has its maps louder or softer."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.models.classifier import Classifier
from crossgraft.tune.feature_transforms import FeatureTransform, TransformStart


@dataclass
class LoudBlocks(FeatureTransform):
    """What the first block gives, times a number between 1 − by and 1 + by for each image.

    Args:
        by: In (0, 1).
    """

    name: ClassVar[str] = "loud_blocks"
    title: ClassVar[str] = "Loud blocks"
    citation: ClassVar[str] = "Example of a third-party feature transform; no paper"

    by: float = 0.1

    def __post_init__(self) -> None:
        self._hooks = ExitStack()
        self._factors: torch.Tensor | None = None

    def attach(self, classifier: Classifier) -> None:
        block = classifier.get_submodule(classifier.blocks[0])
        self._hooks.callback(block.register_forward_hook(self._change).remove)

    def before_forward(self, start: TransformStart) -> None:
        drawn = torch.rand(start.batch_size, generator=start.generator)[start.places]
        self._factors = 1 + self.by * (2 * drawn - 1)

    def after_forward(self) -> None:
        self._factors = None

    def detach(self) -> None:
        self._hooks.close()
        self._factors = None

    def _change(self, _module: object, _given: object, output: torch.Tensor) -> torch.Tensor | None:
        if self._factors is None:
            return None
        return output * self._factors.to(output)[(...,) + (None,) * (output.ndim - 1)]
