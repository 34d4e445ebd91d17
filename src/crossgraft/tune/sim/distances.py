"""How far predicted tokens are from those they should reproduce: one number, a mean over images."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from crossgraft.compute import sent

FEWEST_TOKENS = 2
"""One token has no standard deviation."""
_CANDIDATES = 3
"""``v2`` draws so many times as many tokens as it takes."""

Index = Int[Tensor, "tokens"] | Int[Tensor, "images tokens"]
"""The same tokens of every image, or some of each."""


def number_of_tokens(rho: float, positions: int) -> int:
    """ρN to the nearest whole number, at least two, at most N.

    >>> [number_of_tokens(0.2, positions) for positions in (2, 4, 49, 196)]
    [2, 2, 10, 39]
    """
    return min(max(math.floor(rho * positions + 0.5), FEWEST_TOKENS), positions)


def drawn_tokens(
    sampling: str,
    count: int,
    inputs: Float[Tensor, "images positions channels"],
    generator: torch.Generator,
    places: Int[Tensor, " images"],
    batch_size: int,
) -> Index:
    """Numbers of the tokens to take, ascending within an image.

    Images (or the rows that a block makes of them) are numbered within a batch of ``batch_size``, of which ``inputs`` may be a
    part: what is drawn for an image depends on its place in the batch, and not on how the batch is cut.

    Args:
        sampling: ``v0``: one draw for all images. ``v1``: one for each. ``v2``: of three times as many tokens drawn for each
            image those with the largest mean input. ``norm``: of each image those with the largest norm of the input, always the
            same ones of the same image; of equal ones the first.
        count: Tokens to take.
        inputs: What the block takes, for ``v2`` and ``norm``.
        generator: On the CPU.
        places: Place of each image in the batch.
        batch_size: Images of the whole batch.
    """
    positions = inputs.shape[1]
    if sampling == "v0":
        return sent(torch.randperm(positions, generator=generator)[:count].sort().values, inputs.device)
    if sampling == "norm":
        norms = torch.linalg.vector_norm(inputs, dim=2)
        return norms.argsort(dim=1, descending=True, stable=True)[:, :count].sort(dim=1).values
    drawn = sent(torch.rand(batch_size, positions, generator=generator)[places].argsort(dim=1), inputs.device)
    if sampling == "v1":
        return drawn[:, :count].sort(dim=1).values
    candidates = drawn[:, : _CANDIDATES * count]
    largest = inputs.mean(dim=2).gather(1, candidates).topk(count, dim=1).indices
    return candidates.gather(1, largest).sort(dim=1).values


def rolled(index: Index, rows: int) -> Index:
    """The index by which row i − ``rows`` gives the tokens of row i; ``rows`` are those of one image."""
    return index if index.ndim == 1 else index.roll(-rows, dims=0)


def take_tokens(map_of_tokens: Tensor, index: Index, channel_axis: int) -> Float[Tensor, "images tokens channels"]:
    """Tokens of a feature map (batch first), in the graph; what is written into the map later does not change them.

    Nothing is kept for the backward pass but ``index``, and that not through autograd's saved tensors: a forward pass that
    checkpointing repeats need not take the tokens again.
    """
    return _TakenTokens.apply(map_of_tokens, index, channel_axis)  # pyright: ignore[reportReturnType]


def some_channels(given: Tensor, taken: Tensor, count: Callable[[int], int], generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Drawn channels of both, ``count`` of each; the same ones where they are equally wide."""

    def drawn(channels: int) -> Tensor:
        chosen = torch.randperm(channels, generator=generator)[: count(channels)]
        return sent(chosen.sort().values, given.device)

    of_given = drawn(given.shape[-1])
    of_taken = of_given if taken.shape[-1] == given.shape[-1] else drawn(taken.shape[-1])
    return given.index_select(-1, of_given), taken.index_select(-1, of_taken)


def as_tokens(map_of_tokens: Tensor, channel_axis: int) -> Float[Tensor, "images positions channels"]:
    """A map with the batch first as tokens; no copy where memory allows."""
    return map_of_tokens.movedim(channel_axis, -1).flatten(1, -2)


class _TakenTokens(torch.autograd.Function):
    """Tokens by number; the gradient is in the memory format of the map, so that adding it to another one is cheap."""

    @staticmethod
    def forward(map_of_tokens: Tensor, index: Tensor, channel_axis: int) -> Tensor:
        return _selected(as_tokens(map_of_tokens, channel_axis), index)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: Tensor) -> None:
        map_of_tokens, index, channel_axis = inputs
        ctx.index, ctx.channel_axis, ctx.shape = index, channel_axis, map_of_tokens.shape
        channels_last = map_of_tokens.ndim == 4 and channel_axis == 1 and not map_of_tokens.is_contiguous()
        channels_last = channels_last and map_of_tokens.is_contiguous(memory_format=torch.channels_last)
        # in both formats the positions of a token follow each other, so that the gradient can be written through a view
        ctx.memory_format = torch.channels_last if channels_last else torch.contiguous_format

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        (gradient,) = gradients
        of_map = torch.empty(ctx.shape, dtype=gradient.dtype, device=gradient.device, memory_format=ctx.memory_format)
        of_tokens = as_tokens(of_map.zero_(), ctx.channel_axis)
        if ctx.index.ndim == 1:
            of_tokens.index_copy_(1, ctx.index, gradient)
        else:
            of_tokens.scatter_(1, _of_every_channel(ctx.index, gradient.shape[-1]), gradient)
        return of_map, None, None


def _selected(tokens: Tensor, index: Tensor) -> Tensor:
    if index.ndim == 1:
        return tokens.index_select(1, index)
    return tokens.gather(1, _of_every_channel(index, tokens.shape[-1]))


def _of_every_channel(index: Tensor, channels: int) -> Tensor:
    return index.unsqueeze(-1).expand(-1, -1, channels)


class BatchRows(NamedTuple):
    """Which images the rows of a block's batch axis are of.

    Attributes:
        places: (rows,) place of each row in the whole batch.
        batch_size: Rows of the whole batch.
        per_image: Rows of one image; several where a block folds patches into the batch.
    """

    places: Int[Tensor, " rows"]
    batch_size: int
    per_image: int


@dataclass(frozen=True)
class Drawing:
    """What the tokens of a forward pass are drawn from.

    Attributes:
        generator: On the CPU.
        places: Place of each image in the whole batch; None: not known, and rows count as images.
        batch_size: Images of the whole batch.
    """

    generator: torch.Generator
    places: Int[Tensor, " images"] | None = None
    batch_size: int = 0

    def rows(self, number: int) -> BatchRows:
        """For so many rows; those of an image follow each other, as where maps are cut into patches (MobileViT, TNT)."""
        per_image, rest = (0, 0) if self.places is None else divmod(number, len(self.places))
        if self.places is None or rest or not per_image:
            return BatchRows(torch.arange(number), number, 1)
        places = self.places[:, None] * per_image + torch.arange(per_image)
        return BatchRows(places.flatten(), self.batch_size * per_image, per_image)


Tokens = Float[Tensor, "images tokens width"]
Distance = Callable[[Tensor, Tensor], Tensor]
"""From the prediction, part of the graph, to the target."""
_EPS = 1e-6
_TINY = 1e-24
"""Below what is added anyway; it lets channels that never vary have a gradient."""


def standardised(tokens: Tokens) -> Tokens:
    """Each channel of each image with mean 0 and (unbiased) standard deviation 1 over the tokens; equation 3."""
    centred = tokens - tokens.mean(dim=1, keepdim=True)
    # torch.std over an axis in the middle takes twenty times as long
    variance = centred.square().sum(dim=1, keepdim=True) / max(tokens.shape[1] - 1, 1)
    return centred / ((variance + _TINY).sqrt() + _EPS)


def l2(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Mean over tokens of the Euclidean norm, not squared."""
    return (prediction - target).norm(dim=-1).mean()


def cosine(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """2 − 2 · cosine of the angle between two tokens, averaged over tokens."""
    return (2 - 2 * functional.cosine_similarity(prediction, target, dim=-1)).mean()


def kl(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """KL divergence of softmax(prediction) from softmax(target) over channels, averaged over tokens and images."""
    log_probabilities = functional.log_softmax(prediction, dim=-1).flatten(0, 1)
    return functional.kl_div(log_probabilities, functional.softmax(target, dim=-1).flatten(0, 1), reduction="batchmean")


def wasserstein(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Wasserstein-1 distance between the values that a channel has over the tokens of an image, averaged."""
    return (prediction.sort(dim=1).values - target.sort(dim=1).values).abs().mean()


def norm_l2(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """``l2`` of standardised tokens: what the released code calls norm_mse."""
    return l2(standardised(prediction), standardised(target))


def norm_mse(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """The mean squared difference of standardised tokens: what the paper writes."""
    return functional.mse_loss(standardised(prediction), standardised(target))


DISTANCES: Mapping[str, Distance] = {
    "norm_l2": norm_l2,
    "norm_mse": norm_mse,
    "mse": functional.mse_loss,
    "l1": functional.l1_loss,
    "smooth_l1": functional.smooth_l1_loss,
    "cosine": cosine,
    "kl": kl,
    "wasserstein": wasserstein,
}
"""By the name that an option has."""
OF_STANDARDISED: Mapping[str, Distance] = {**DISTANCES, "norm_l2": l2, "norm_mse": functional.mse_loss}
"""The same where tokens were standardised before they were predicted (``order="paper"``)."""
