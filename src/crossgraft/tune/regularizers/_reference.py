"""The network that training starts from, as something to compare with later."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.compute import sent
from crossgraft.conflicts import Situation
from crossgraft.features.passes import Images, collect, run_pass
from crossgraft.models.adapters import adapters_of, without_adapters
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols import StepContext, TrainingSet


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


FEWEST_COMPARED = 3
"""Images of which similarity says anything: any two are alike by biased CKA and by Procrustes."""


def remarks_on_pairs(name: str, situation: Situation, *, fewest: int = FEWEST_COMPARED) -> list[str]:
    """What the features of the starting network cost a regulariser, and what too few images have none of; for the plan.

    Args:
        name: Name of the regulariser.
        situation: The training that is planned.
        fewest: Images that its term needs at a time.
    """
    number = situation.images_at_once
    if number >= fewest:
        return [_cost(name, situation)]
    there = "is one" if number == 1 else f"are {number}"
    return [
        _cost(name, situation),
        f"{name} compares the images of a step with each other, but there {there} at a time, so that it pulls at nothing. Use a "
        "larger --batch-size or a smaller --accumulate.",
    ]


def _cost(name: str, situation: Situation) -> str:
    if situation.shows_plain_images:
        return f"{name}: the pretrained features of each image are computed once, before the first step, and looked up."
    return (
        f"{name}: a frozen copy of the pretrained network looks at each batch, about a third more time per step, because "
        "augmentation and batch transforms change images anew in each epoch. With --augmentation none features are computed once."
    )


class PairedReference:
    """Features that the starting network gives the images of a step.

    Where training shows an image the same way every time they are computed once and looked up by row; otherwise a frozen
    copy, or the network itself with its adapters off where these add nothing at the start, looks at each batch.

    Args:
        classifier: As it is now.
        training_set: None: a frozen copy is kept.

    Cost: one pass over the training images and n × d numbers in memory; or a forward pass of each batch, and a second set of
    weights where there are no adapters, or some that were trained before.
    """

    def __init__(self, classifier: Classifier, training_set: TrainingSet | None) -> None:
        network = starting_network(classifier)
        self._like = classifier.head.weight
        self._source: Reference | Tensor = network
        if training_set is not None and training_set.is_plain:
            self._source = features_of_training_set(network, training_set, like=self._like)

    def features(self, context: StepContext) -> Float[Tensor, "batch num_features"]:
        """One row per image of this process, without a gradient."""
        if isinstance(self._source, Tensor):
            return sent(self._source[context.rows.cpu()], context.features.device)
        (features,) = features_of_batches(self._source, [context.images], like=self._like)
        return features


def wide(tensor: Tensor) -> Tensor:
    """At least float32."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
