"""Features of the pretrained network on the rows that every epoch is evaluated on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.models.classifier import Classifier
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.images import TrainingImages


class PretrainedFeatures:
    """Computed once, when they are first asked for or sent to other processes, and kept.

    They come from the same preparation, batches and number type as those that training evaluates, in eval mode and without a
    random number, so a resumed training finds the same bits. What is sent is the features, not the network.

    Args:
        images: Images of the rows.
        load: Gives the pretrained network, which is changed and dropped; None where its weights are not here.
        batch_size: Images at a time.
        device: Where the network is run.
        number_type: Float32, or float64 where training is in it.
    """

    def __init__(
        self,
        images: TrainingImages,
        load: Callable[[], Classifier | None],
        *,
        batch_size: int,
        device: str,
        number_type: torch.dtype,
    ) -> None:
        self._source: tuple[TrainingImages, Callable[[], Classifier | None]] | None = (images, load)
        self._batch_size, self._device, self._number_type = batch_size, device, number_type
        self._features: Tensor | None = None

    def __call__(self) -> Float[Tensor, "num_samples num_features"] | None:
        """One row per image, on the CPU; None where there is no pretrained network."""
        if self._source is not None:
            images, load = self._source
            classifier = load()
            if classifier is not None:
                classifier.to(self._device, self._number_type)
                size, device = self._batch_size, self._device
                self._features = features_of(classifier, images, batch_size=size, device=device)
            self._source = None
        return self._features

    def __getstate__(self) -> dict[str, Any]:
        """For other processes."""
        self()
        return self.__dict__.copy()
