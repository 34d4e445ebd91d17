"""The term of each block: how far the prediction of what it took lies from what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import DivergedError, UsageError
from crossgraft.tune.sim.distances import DISTANCES, OF_STANDARDISED
from crossgraft.tune.sim.options import FEWEST_FOR_A_PLACEBO, SimOptions
from crossgraft.tune.sim.reconstructor import Reconstructor
from crossgraft.tune.sim.sampling import some_channels
from crossgraft.tune.sim.watching import Seen


def refuse_few_images(seen: Sequence[Seen], options: SimOptions) -> None:
    """Refuse a batch without images, and a placebo of one image alone.

    Raises:
        UsageError: Some block has seen no image, or with the placebo one alone.
    """
    fewest = min(each.num_images for each in seen)
    if not fewest:
        raise UsageError("rho_sim has seen a batch of no images. Give the network at least one.")
    if options.placebo and fewest < FEWEST_FOR_A_PLACEBO:
        raise UsageError(
            "The placebo of rho_sim predicts the tokens of another image, and there is one image alone. Give the network at "
            f"least {FEWEST_FOR_A_PLACEBO} images at a time."
        )


def block_term(
    seen: Seen, reconstructor: Reconstructor, options: SimOptions, generator: torch.Generator
) -> Float[Tensor, ""]:
    """The loss of one run of a block, in float32 at least.

    Raises:
        UsageError: The reconstructor is on another device than the network.
    """
    like = next(reconstructor.parameters())
    if like.device != seen.given.device:
        raise UsageError(
            f"rho_sim is on {like.device} and the network on {seen.given.device}. Call to({seen.given.device!s})."
        )
    given, taken = seen.given.to(like.dtype), seen.taken.to(like.dtype)
    if options.channels < 1:
        given, taken = some_channels(given, taken, options.number_of_channels, generator)
    distances = OF_STANDARDISED if options.order == "paper" else DISTANCES
    with torch.autocast(like.device.type, enabled=False):
        prediction, target = reconstructor(given, taken)
        return distances[options.distance](prediction, target)


def by_block(seen: Sequence[Seen], losses: Float[Tensor, " runs"]) -> dict[str, Tensor]:
    """The loss of each block, summed over its runs.

    Raises:
        DivergedError: One is not finite; the message names its block.
    """
    found: dict[str, Tensor] = {}
    for each, loss in zip(seen, losses, strict=True):
        found[each.block] = loss + found.get(each.block, 0)
    if not bool(losses.isfinite().all()):
        broken = [name for name, loss in found.items() if not bool(loss.isfinite())]
        raise DivergedError(
            f"The term of rho_sim is not finite in {', '.join(broken)}: what the block takes or gives is not, or the "
            "reconstructor has diverged. Try a smaller learning rate, clipped gradients, or another loss."
        )
    return found


def listed(blocks: Mapping[str, str]) -> str:
    """Names of blocks, each with the reason that is its value."""
    return "; ".join(f"{name}: {why}" for name, why in blocks.items())
