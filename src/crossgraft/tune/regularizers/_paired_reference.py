"""What the starting network makes of the very images of a step."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from crossgraft.conflicts import Situation
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols.regularizer import StepContext, TrainingSet
from crossgraft.tune.regularizers._reference import (
    Reference,
    features_of_batches,
    features_of_training_set,
    starting_network,
)

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
            return self._source[context.rows.cpu()].to(context.features.device)
        (features,) = features_of_batches(self._source, [context.images], like=self._like)
        return features
