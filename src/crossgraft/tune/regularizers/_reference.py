"""The network that training starts from, as something to compare with later."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.models.classifier import Classifier
from crossgraft.tune.regularizers._regularizer import TrainingSet


def frozen_copy(classifier: Classifier) -> Classifier:
    """A copy in eval mode without gradients; ``classifier`` keeps its modes and its running statistics.

    Keep it where no module registers it, so that it stays out of parameters, states and the buckets of parallel training.

    Cost: a second set of weights in memory.
    """
    return copy.deepcopy(classifier).eval().requires_grad_(False)


def features_of_batches(
    network: Classifier, batches: Iterable[Float[Tensor, "_ channels height width"]]
) -> Iterator[Float[Tensor, "batch num_features"]]:
    """The penultimate features of each batch, without a gradient and without autocast."""
    weight = network.head.weight
    for images in batches:
        with torch.no_grad(), torch.autocast(weight.device.type, enabled=False):
            yield network.features(images.to(weight.device, weight.dtype))


def features_of_training_set(network: Classifier, training_set: TrainingSet) -> Float[Tensor, "num_rows num_features"]:
    """Of every image as evaluation shows it, in the order of the rows, in main memory.

    Cost: one pass over the images, and n × d numbers.
    """
    return torch.cat([features.cpu() for features in features_of_batches(network, training_set.plain_batches())])
