"""Gradients of the triplet loss by two layers of a network that is left as it was."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64, Int
from torch import Tensor, nn
from torch.nn import functional

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.features.passes import run_pass
from crossgraft.models.backbone import Backbone
from crossgraft.models.taps import named_layer
from crossgraft.scores._inputs import ReadableRows
from crossgraft.types import ClassIndices

_FIRST_DECAY = 0.9
_SECOND_DECAY = 0.999
_EPSILON = 1e-8


class AdamW:
    """Updates ``parameters`` in place, with a constant learning rate; weights and biases decay alike.

    Args:
        parameters: Arrays of one dtype.
        learning_rate: > 0.
        weight_decay: Share of the parameters that is taken away, per step and learning rate.
    """

    def __init__(self, parameters: Sequence[np.ndarray], *, learning_rate: float, weight_decay: float) -> None:
        self._parameters = list(parameters)
        self._learning_rate = learning_rate
        self._kept = 1 - learning_rate * weight_decay
        # The moments of algorithm 2 over 1 − β, which spares two passes.
        self._first = [np.zeros_like(parameter) for parameter in parameters]
        self._second = [np.zeros_like(parameter) for parameter in parameters]
        self._num_steps = 0

    def step(self, gradients: Sequence[np.ndarray]) -> None:
        """One step against ``gradients``, which are overwritten."""
        self._num_steps += 1
        correction = (1 - _SECOND_DECAY**self._num_steps) ** 0.5 / (1 - _SECOND_DECAY) ** 0.5
        size = self._learning_rate * (1 - _FIRST_DECAY) / (1 - _FIRST_DECAY**self._num_steps) * correction
        state = zip(self._parameters, gradients, self._first, self._second, strict=True)
        for parameter, gradient, first, second in state:
            # In place and in few passes, because for wide features the update takes as long as a product.
            first *= _FIRST_DECAY
            first += gradient
            np.multiply(gradient, gradient, out=gradient)
            second *= _SECOND_DECAY
            second += gradient
            np.sqrt(second, out=gradient)
            gradient += _EPSILON * correction
            np.divide(first, gradient, out=gradient)
            gradient *= size
            parameter *= self._kept
            parameter -= gradient


# The triplet margin loss over all triplets of a batch, without ever listing them.
#
# max(d_ap − d_an + α, 0) is linear in the distances wherever it is not 0, so the sum over all triplets needs, for each
# pair, only the number of triplets above 0 that it is part of. Sorting each anchor's distances gives these numbers in
# O(m² log m) for m images, where the triplets themselves are O(m³).


class PairCounts(NamedTuple):
    """How the triplets above 0 weigh the distances.

    Attributes:
        weights: (m, m): for a pair of one class, the number of triplets with it as anchor and positive; for a pair of
            two classes, minus the number with it as anchor and negative.
        num_triplets: Triplets above 0.
    """

    weights: Int[np.ndarray, "m m"]
    num_triplets: int


def count_triplets(distances: Float64[np.ndarray, "m m"], labels: ClassIndices, margin: float) -> PairCounts:
    """Count the triplets with d_an < d_ap + margin. Cost O(m² log m)."""
    weights = np.zeros(distances.shape, dtype=np.int64)
    for index in np.unique(labels):
        members, others = np.flatnonzero(labels == index), np.flatnonzero(labels != index)
        reach = distances[np.ix_(members, members)] + margin
        np.fill_diagonal(reach, -np.inf)  # an image is no positive of its own
        together = np.concatenate([reach, distances[np.ix_(members, others)]], axis=1)
        order = np.argsort(together, axis=1, kind="stable")  # at a tie the positive comes first: its loss is 0
        is_other = order >= len(members)
        counts = np.empty_like(order)
        nearer_others = np.cumsum(is_other, axis=1)
        farther_members = len(members) - np.cumsum(~is_other, axis=1)
        np.put_along_axis(counts, order, np.where(is_other, -farther_members, nearer_others), axis=1)
        weights[np.ix_(members, members)] = counts[:, : len(members)]
        weights[np.ix_(members, others)] = counts[:, len(members) :]
    return PairCounts(weights, -int(weights[weights < 0].sum()))


IMAGES_AT_ONCE = 32
"""Images of a larger batch at a time; at 224 pixels the activations of this many take a gigabyte or two."""


class EmbeddingNetwork(NamedTuple):
    """A module, and how to get features out of it with gradients."""

    module: nn.Module
    embed: Callable[[Tensor], object]

    @classmethod
    def of(cls, model: object) -> EmbeddingNetwork:
        """That of a backbone (its penultimate features) or of a module (its output)."""
        if isinstance(model, Backbone):
            return cls(model.module, lambda images: model.read_out(images).features)
        if isinstance(model, nn.Module):
            return cls(model, model)
        raise UsageError(f"`model` must be a Backbone or a torch module, got {type(model).__name__}.")


class Layer(NamedTuple):
    """A layer by name, and its weight."""

    name: str
    weight: nn.Parameter


def two_layers(module: nn.Module, first: str | None, second: str | None) -> tuple[Layer, Layer]:
    """The layers named, or the first two convolutions in the order of definition.

    Raises:
        NotApplicable: There are no two convolutions.
        UnknownNameError: No such layer.
        UsageError: The layer has no weight.
    """
    kinds = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    convolutions = [name for name, layer in module.named_modules() if isinstance(layer, kinds)]
    if (first is None or second is None) and len(convolutions) < 2:
        raise NotApplicable(
            f"The gradient ratio needs two convolutions, and {type(module).__name__} has {len(convolutions)}. Name two "
            "layers with weights as `first` and `second`."
        )
    chosen: list[Layer] = []
    for name in (convolutions[0] if first is None else first, convolutions[1] if second is None else second):
        weight = getattr(named_layer(module, name), "weight", None)
        if not isinstance(weight, nn.Parameter):
            raise UsageError(f"The layer {name} has no weight. Name a convolution or a linear layer.")
        chosen.append(Layer(name, weight))
    return chosen[0], chosen[1]


class TripletLoss(NamedTuple):
    """Mean of max(d_ap − d_an + margin, 0) over the triplets of a batch for which it is above 0; 0 where there are none.

    Attributes:
        margin: α.
        normalize: Scale every embedding to length 1 first.
    """

    margin: float
    normalize: bool

    def of(self, embedded: Tensor, labels: ClassIndices) -> Tensor:
        """The loss of (m, d) embeddings, a scalar with a gradient; that of a distance of 0 is 0."""
        rows = functional.normalize(embedded, dim=1) if self.normalize else embedded
        distances = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
        counts = count_triplets(distances.detach().double().cpu().numpy(), labels, self.margin)
        if not counts.num_triplets:
            return (distances * 0).sum()
        shares = torch.from_numpy(counts.weights / counts.num_triplets).to(distances)
        return (distances * shares).sum() + self.margin


def gradient_norms(
    network: EmbeddingNetwork,
    layers: tuple[Layer, Layer],
    loss: TripletLoss,
    images: ReadableRows,
    rows: np.ndarray,
    labels: ClassIndices,
) -> tuple[float, float, float]:
    """Loss of one batch, ‖∂L/∂W₁‖ and ‖∂L/∂W₂‖; to be called within ``gradients_on`` by both weights.

    A batch of more than ``IMAGES_AT_ONCE`` images goes through the network in pieces, first for the embeddings and then
    once more with ∂L/∂embedding of each piece: the chain rule, at the memory of one piece. In eval mode an image does not
    depend on the others of its batch, so this changes nothing but rounding.

    Raises:
        UsageError: The output is no (n, d) features, or does not depend on a layer.
    """
    weights = [layer.weight for layer in layers]
    pieces = [rows[start : start + IMAGES_AT_ONCE] for start in range(0, len(rows), IMAGES_AT_ONCE)]
    if len(pieces) == 1:
        (embedded,) = _embeddings(network, layers, images, pieces, graph=True)
        value = loss.of(embedded, labels)
        gradients = torch.autograd.grad(value, weights, materialize_grads=True)
    else:
        embedded = torch.cat(list(_embeddings(network, layers, images, pieces, graph=False))).requires_grad_(True)
        value = loss.of(embedded, labels)
        (at_embedded,) = torch.autograd.grad(value, embedded)
        gradients = [torch.zeros_like(weight) for weight in weights]
        again = _embeddings(network, layers, images, pieces, graph=True)
        for embedded, at_piece in zip(again, at_embedded.split(IMAGES_AT_ONCE), strict=True):
            of_piece = torch.autograd.grad(embedded, weights, grad_outputs=at_piece, materialize_grads=True)
            gradients = [total + part for total, part in zip(gradients, of_piece, strict=True)]
    at_first, at_second = (float(torch.linalg.vector_norm(gradient)) for gradient in gradients)
    return float(value.detach()), at_first, at_second


def _embeddings(
    network: EmbeddingNetwork, layers: tuple[Layer, Layer], images: ReadableRows, pieces: Sequence[np.ndarray], *, graph: bool
) -> Generator[Tensor]:
    """Features (m, d) of each piece, with gradients or without.

    Raises:
        UsageError: The output is no (m, d) features, or does not depend on a layer.
    """
    batches = (_as_batch(images, rows) for rows in pieces)
    embeddings = run_pass(network.module, batches, read=network.embed, like=layers[0].weight, graph=graph)
    for rows, embedded in zip(pieces, embeddings, strict=True):
        if not isinstance(embedded, Tensor) or embedded.ndim != 2 or len(embedded) != len(rows):
            got = tuple(embedded.shape) if isinstance(embedded, Tensor) else type(embedded).__name__
            raise UsageError(f"`model` must return features (n, d), got {got}. Wrap it in a Backbone, or cut off its head.")
        if graph and not embedded.requires_grad:
            raise UsageError(f"The features do not depend on the layers {layers[0].name} and {layers[1].name}. Name others.")
        yield embedded


def _as_batch(images: ReadableRows, rows: np.ndarray) -> Tensor:
    """The images of one batch; outside of inference mode."""
    if isinstance(images, torch.Tensor):
        return images[torch.from_numpy(rows).to(images.device)].clone()
    if isinstance(images, np.ndarray):
        return torch.from_numpy(images[rows])
    return torch.stack([torch.as_tensor(images[int(row)]) for row in rows])
