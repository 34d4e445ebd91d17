"""How much each channel of the last feature map matters to the task, found once before training."""

from __future__ import annotations

from itertools import islice
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols.regularizer import TrainingSet
from crossgraft.tune.regularizers._reference import features_of_batches

_MOST_BATCHES = 10
_TEMPERATURE = 5.0
_RIDGE = 1e-3
_ITERATIONS = 200


@runtime_checkable
class HasTargets(Protocol):
    """A training set that knows its targets, in the order of the rows."""

    @property
    def targets(self) -> Float[Tensor, "num_rows num_classes"]:
        """One row per image, over classes or labels."""
        ...


def channel_attention(
    network: Classifier, training_set: TrainingSet, targets: Float[Tensor, "num_rows num_classes"]
) -> Float[Tensor, " num_features"]:
    """Weights of the channels, adding up to 1: softmax(z / 5) of how much the loss rises without each of them.

    A linear head is fitted to the penultimate features of at most ten batches, then each feature is set to zero in turn.
    Where features are the average of a feature map over its positions, that is a filter set to zero. z are the rises minus
    their mean over their standard deviation (0 where all are equal).

    Args:
        network: Pretrained, in eval mode.
        training_set: Its first ten plain batches are looked at.
        targets: Targets of the rows of ``training_set``.

    Cost: a forward pass of ten batches, and a linear regression on their features.
    """
    batches = islice(training_set.plain_batches(), _MOST_BATCHES)
    features = torch.cat(
        [part.double().cpu() for part in features_of_batches(network, batches, like=network.head.weight)]
    )
    targets = targets[: len(features)].double().cpu()
    weight, bias = _fit_head(features, targets)
    logits = features @ weight.T + bias
    without = [
        _loss(logits - features[:, channel, None] * weight[:, channel], targets) for channel in range(features.shape[1])
    ]
    rises = torch.stack(without) - _loss(logits, targets)
    spread = rises.std()
    z = (rises - rises.mean()) / spread if float(spread) > 0 else torch.zeros_like(rises)
    return (z / _TEMPERATURE).softmax(dim=0)


def _fit_head(features: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Logistic regression of each class against the rest, with a little ridge; convex, so nothing is drawn."""
    weight = torch.zeros(targets.shape[1], features.shape[1], dtype=features.dtype, requires_grad=True)
    bias = torch.zeros(targets.shape[1], dtype=features.dtype, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=_ITERATIONS, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        with torch.enable_grad():
            loss = _loss(features @ weight.T + bias, targets) + _RIDGE * weight.square().sum()
            loss.backward()
        return loss.detach()

    optimizer.step(closure)  # pyright: ignore[reportArgumentType] - LBFGS takes a tensor
    return weight.detach(), bias.detach()


def _loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Summed over classes, mean over images: the same for one label and for several."""
    summed = nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="sum")
    return summed / len(logits)
