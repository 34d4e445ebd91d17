"""The network that training starts from, as something to compare with later."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.models.adapters import adapters_of, without_adapters
from crossgraft.models.classifier import Classifier
from crossgraft.tune.regularizers._regularizer import TrainingSet


@runtime_checkable
class Reference(Protocol):
    """Gives the features that the starting network gives."""

    def features(self, images: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch num_features"]:
        """Penultimate features of prepared images."""
        ...


class _AdaptersOff:
    """The network that is trained, in eval mode and without its adapters, for the time of a forward pass."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier

    def features(self, images: Tensor) -> Tensor:
        """As the network before adapters were put into it."""
        modes = [(module, module.training) for module in self._classifier.modules()]
        self._classifier.eval()
        try:
            with without_adapters(self._classifier):
                return self._classifier.features(images)
        finally:
            for module, training in modes:
                module.training = training


def starting_network(classifier: Classifier) -> Reference:
    """Where a network has adapters, the same weights with adapters off: nothing else of its body is ever trained.

    Everywhere else a frozen copy, which costs a second set of weights in memory.
    """
    return _AdaptersOff(classifier) if adapters_of(classifier) else frozen_copy(classifier)


def frozen_copy(classifier: Classifier) -> Classifier:
    """A copy in eval mode without gradients; ``classifier`` keeps its modes and its running statistics.

    Keep it where no module registers it, so that it stays out of parameters, states and the buckets of parallel training.

    Cost: a second set of weights in memory.
    """
    return copy.deepcopy(classifier).eval().requires_grad_(False)


def features_of_batches(
    network: Reference, batches: Iterable[Float[Tensor, "_ channels height width"]], *, like: Tensor
) -> Iterator[Float[Tensor, "batch num_features"]]:
    """The penultimate features of each batch, without a gradient and without autocast.

    Args:
        network: The starting network.
        batches: Prepared images.
        like: A weight of the network, for device and number type.
    """
    for images in batches:
        with torch.no_grad(), torch.autocast(like.device.type, enabled=False):
            yield network.features(images.to(like.device, like.dtype))


def features_of_training_set(
    network: Reference, training_set: TrainingSet, *, like: Tensor
) -> Float[Tensor, "num_rows num_features"]:
    """Of every image as evaluation shows it, in the order of the rows, in main memory.

    Cost: one pass over the images, and n × d numbers.
    """
    return torch.cat(
        [features.cpu() for features in features_of_batches(network, training_set.plain_batches(), like=like)]
    )
