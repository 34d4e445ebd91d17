"""The network that training starts from, as something to compare with later."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.features.batches import Images
from crossgraft.features.passes import collect, run_pass
from crossgraft.models.adapters import adapters_of, without_adapters
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols.regularizer import TrainingSet


class _AdaptersOff(nn.Module):
    """The network that is trained, without its adapters for the time of a forward pass."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self._classifier = classifier

    def features(self, images: Images) -> Float[Tensor, "batch num_features"]:
        """As the network before adapters were put into it."""
        with without_adapters(self._classifier):
            return self._classifier.features(images)


Reference = Classifier | _AdaptersOff


def starting_network(classifier: Classifier) -> Reference:
    """What ``classifier`` is now: where it has adapters that add nothing yet, the same weights with adapters off.

    Nothing else of its body is ever trained then. Everywhere else, also where training goes on from adapters that were trained
    before, a frozen copy, which costs a second set of weights in memory.
    """
    off = adapters_of(classifier) and not has_trained_adapters(classifier)
    return _AdaptersOff(classifier) if off else frozen_copy(classifier)


def has_trained_adapters(classifier: Classifier) -> bool:
    """Whether adapters make it another network than with adapters off."""
    return not all(adapter.adds_nothing for _, adapter in adapters_of(classifier).values())


def frozen_copy(classifier: Classifier) -> Classifier:
    """A copy in eval mode without gradients; ``classifier`` keeps its modes and its running statistics.

    Keep it where no module registers it, so that it stays out of parameters, states and the buckets of parallel training.

    Cost: a second set of weights in memory.
    """
    return copy.deepcopy(classifier).eval().requires_grad_(False)


def features_of_batches(
    network: Reference, batches: Iterable[Images], *, like: Tensor
) -> Iterator[Float[Tensor, "batch num_features"]]:
    """The penultimate features of each batch, in eval mode, without a gradient and without autocast."""
    return run_pass(network, batches, read=network.features, like=like, full_precision=True)


def features_of_training_set(
    network: Reference, training_set: TrainingSet, *, like: Tensor
) -> Float[Tensor, "num_rows num_features"]:
    """Features of every image as evaluation shows it, in the order of the rows, in main memory.

    Cost: one pass over the images, and n × d numbers.
    """
    return collect(features_of_batches(network, training_set.plain_batches(), like=like))
