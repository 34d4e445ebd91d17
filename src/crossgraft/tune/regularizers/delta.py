"""DELTA: keep feature maps near those of the pretrained network."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar, Literal, Protocol, get_args, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.features.passes import Tap, Taps, run_pass, through_taps
from crossgraft.models.classifier import Classifier
from crossgraft.models.positions import find_layout
from crossgraft.tune.protocols import Regularizer, StepContext, TrainingSet
from crossgraft.tune.regularizers._reference import features_of_batches, frozen_copy

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
    features = torch.cat([part.double().cpu() for part in features_of_batches(network, batches, like=network.head.weight)])
    targets = targets[: len(features)].double().cpu()
    weight, bias = _fit_head(features, targets)
    logits = features @ weight.T + bias
    without = [_loss(logits - features[:, channel, None] * weight[:, channel], targets) for channel in range(features.shape[1])]
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


Reduction = Literal["mean", "tllib"]
_BETWEEN_NAMES = "+"


@dataclass
class DELTA(Regularizer):
    """Two terms; FM are outputs of chosen layers for the images of a step, FM⁰ those of a frozen copy for the same images.

        maps = α/2 · mean over images of Σ (FM − FM⁰)²        head = β/2 · Σ_head ‖w‖²

    With ``attention`` the squares are averaged over the positions of a map and weighed by what each of its C channels
    matters to the task: C · a_c / positions in place of 1, with Σ a_c = 1. The weights a are found once, at ``attach``: a
    linear head is fitted to the pretrained features of at most ten batches, and a_c says how much its loss rises when
    feature c is set to zero.

    Attributes:
        alpha: Strength α ≥ 0 of the maps.
        beta: Strength β ≥ 0 of the pull of the new head to zero.
        attention: Weigh channels. The one layer must have as many channels as there are features.
        layers: Names of modules, with or without ``body.``, separated by ``+``; empty: the last block.
        reduction: ``mean`` over images, or their sum as in the Transfer-Learning-Library, whose strength grows with the
            size of the batch (of each part of it with ``--accumulate``).

    Cost: a copy of the network, and a forward pass of each batch without gradients, about a third more time a step.

    Reference: Li, Xiong, Wang, Rao, Liu, Chen, Huan: DELTA: Deep Learning Transfer using Feature Map with Attention for
    Convolutional Networks, ICLR 2019 (arXiv 1901.09229); formulas and defaults of the Transfer-Learning-Library.
    """

    name: ClassVar[str] = "delta"
    title: ClassVar[str] = "DELTA"
    citation: ClassVar[str] = (
        "Li et al.: DELTA: Deep Learning Transfer using Feature Map with Attention for Convolutional Networks, ICLR 2019 "
        "(arXiv 1901.09229)"
    )
    keeps_reference: ClassVar[bool] = True
    kept_terms: ClassVar[tuple[str, ...]] = ("maps",)

    alpha: float = 0.01
    beta: float = 0.01
    attention: bool = False
    layers: str = ""
    reduction: Reduction = "mean"

    def __post_init__(self) -> None:
        for option in ("alpha", "beta"):
            value = getattr(self, option)
            if not (math.isfinite(value) and value >= 0):
                raise UsageError(f"{option} of delta must be a number of at least 0, found {value}.")
        if self.reduction not in get_args(Reduction):
            raise UnknownNameError("reduction of delta", self.reduction, get_args(Reduction))
        if self.attention and _BETWEEN_NAMES in self.layers:
            raise UsageError("delta weighs the channels of one layer. Name only the last one, or leave out attention.")
        self._network: Classifier | None = None
        self._taps: list[Tap] = []
        self._weights: Tensor | None = None
        self._ours: Taps | None = None

    @property
    def pulls(self) -> bool:
        """Whether anything holds the pretrained maps."""
        return self.alpha > 0

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None, *, seed: int = 0) -> None:
        """Copy the network, watch its layers, and weigh channels where that is asked for.

        Raises:
            UsageError: A layer does not exist, or its channels cannot be weighed.
        """
        self.detach()
        # the tensors themselves: what works in place behind a layer changes ours and theirs
        self._taps = [Tap(name, with_graph=True, run="last") for name in _layer_names(classifier, self.layers)]
        self._network = frozen_copy(classifier)
        if self.attention and training_set is not None:
            if not isinstance(training_set, HasTargets):
                raise UsageError("delta weighs channels by the loss of the task, but these images have no targets.")
            self._weights = channel_attention(self._network, training_set, training_set.targets).to(classifier.head.weight)
        # an evaluation, which is no step, has no gradients
        self._ours = Taps(classifier, self._taps, when=torch.is_grad_enabled).__enter__()

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The terms ``maps`` and ``head``.

        Raises:
            UsageError: ``attach`` was not called, or had no images to weigh channels by; a layer gives no feature map.
        """
        if self._network is None or self._ours is None or (self.attention and self._weights is None):
            raise UsageError("delta does not know the pretrained network. Call attach(classifier, training_set) first.")
        look = through_taps(self._network, self._taps, run=self._network.features)
        like = context.classifier.head.weight
        (theirs,) = run_pass(self._network, [context.images], read=look, like=like, full_precision=True)
        with torch.autocast(context.features.device.type, enabled=False):
            distances = [self._distance(context.classifier, tap, self._ours, theirs[tap]) for tap in self._taps]
            images = 1 if self.reduction == "mean" else context.num_images_of_all
            head = [p.square().sum() for p in context.classifier.head.parameters() if p.requires_grad]
            return {
                "maps": 0.5 * self.alpha * images / len(context.images) * torch.stack(distances).sum(),
                "head": 0.5 * self.beta * (torch.stack(head).sum() if head else context.logits.new_zeros(())),
            }

    def _distance(self, classifier: Classifier, tap: Tap, step: Taps, theirs: Tensor) -> Tensor:
        if not step.runs(tap):
            raise UsageError(f"The layer {tap.layer} was not used in this step by the network that delta is attached to.")
        ours = step.pop(tap)
        if self._weights is None:
            return squared_distance(ours, theirs)
        axis = find_layout(classifier.body, ours.shape).channel_axis
        if ours.shape[axis] != len(self._weights):
            raise UsageError(
                f"delta cannot weigh the {ours.shape[axis]} channels of {tap.layer} by the {len(self._weights)} features. Leave "
                "out attention, or name the layer that the features are the average of."
            )
        return weighed_distance(ours, theirs, self._weights, axis)

    def detach(self) -> None:
        """Stop watching the network that is trained, and forget the other."""
        if self._ours is not None:
            self._ours.__exit__()
        self._taps = []
        self._network = self._weights = self._ours = None


def squared_distance(ours: Float[Tensor, "batch ..."], theirs: Float[Tensor, "batch ..."]) -> Float[Tensor, ""]:
    """Σ (FM − FM⁰)² over images, channels and positions, in float32 at least."""
    dtype = torch.promote_types(ours.dtype, torch.float32)
    return nn.functional.mse_loss(ours.to(dtype), theirs.to(dtype), reduction="sum")


def weighed_distance(
    ours: Float[Tensor, "batch ..."], theirs: Float[Tensor, "batch ..."], weights: Float[Tensor, " channels"], axis: int
) -> Float[Tensor, ""]:
    """C · Σ_c a_c · mean over positions of (FM − FM⁰)², summed over images; the channels are on ``axis``."""
    squares = (ours.to(weights.dtype) - theirs.to(weights.dtype)).square().movedim(axis, 1).flatten(2)
    return len(weights) * (squares.mean(dim=2) @ weights).sum()


def _layer_names(classifier: Classifier, layers: str) -> list[str]:
    modules = dict(classifier.named_modules())
    if not layers:
        if not classifier.blocks:
            raise UsageError(f"{classifier.recipe.name} has no blocks. Name the layers: delta:layers=NAME.")
        return [classifier.blocks[-1]]
    names: list[str] = []
    for name in (part.strip() for part in layers.split(_BETWEEN_NAMES)):
        full_name = next((candidate for candidate in (f"body.{name}", name) if name and candidate in modules), None)
        if full_name is None:
            raise UnknownNameError("layer", name, [known for known in modules if known.startswith("body.")])
        names.append(full_name)
    return names
