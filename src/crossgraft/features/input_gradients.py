"""Gradients of an objective by the images themselves, of a network that is left as it was."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.features.passes import gradients_on, run_pass
from crossgraft.models import Backbone

Images = Float[Tensor, "_ channels height width"]  # no name: the last batch is smaller


def input_gradients(
    network: nn.Module | Backbone,
    batches: Iterable[Images],
    objective: Callable[[Images, int], Float[Tensor, ""]],
) -> Generator[Images]:
    """∂(Σ_i ℓ_i) / ∂x of each batch: row i is the gradient of image i, because in eval mode no image depends on another.

    The network runs in eval mode, in full precision, and none of its parameters asks for a gradient; whenever a gradient is
    yielded, all that is as before.

    Args:
        network: Any module, or a backbone.
        batches: Prepared images.
        objective: Function of a batch that takes gradients, and of the number of images before it, to the sum of its losses.

    Cost: one forward and one backward pass per image.
    """
    module = network.module if isinstance(network, Backbone) else network
    before = 0

    def look(images: Images) -> Images:
        nonlocal before
        with gradients_on(not_by=module.parameters()):
            watched = images.detach().clone().requires_grad_(True)
            (gradient,) = torch.autograd.grad(objective(watched, before), watched)
        before += len(images)
        return gradient

    like = next((parameter for parameter in module.parameters() if parameter.is_floating_point()), None)
    return run_pass(module, batches, read=look, like=like, graph=True, full_precision=True)
