"""The whole way from images in [0, 1] to calibrated probabilities as one module: what a graph is made of."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.losses import activate
from crossgraft.tune.exporting.source_model import SourceModel


class ServedNetwork(nn.Module):
    """Normalisation, network, head, temperature and softmax or sigmoid.

    Args:
        source: Its classifier becomes a part of this module.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, source: SourceModel) -> None:
        super().__init__()
        preprocessing = source.classifier.preprocessing
        mean = torch.tensor(preprocessing.mean).view(1, -1, 1, 1)
        std = torch.tensor(preprocessing.std).view(1, -1, 1, 1)
        # the same two operations as crossgraft.data.transforms.normalise_images
        self.register_buffer("scale", 1 / std)
        self.register_buffer("shift", mean / std)
        self.classifier = source.classifier
        self.temperature = source.temperature
        self.task = source.task

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> tuple[Float[Tensor, "batch num_outputs"], Float[Tensor, "batch num_outputs"]]:
        """Logits before the temperature, and probabilities after it, of images in [0, 1]."""
        logits = self.classifier(images * self.scale - self.shift)
        return logits, activate(logits / self.temperature, self.task)
