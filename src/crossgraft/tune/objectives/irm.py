"""IRM: features on which one and the same head is best in every domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import one_hot

from crossgraft.tune.objectives._over_domains import AnnealedPenalty, group_means, mean_of_present
from crossgraft.tune.protocols import ObjectiveContext


@dataclass(frozen=True)
class IRM(AnnealedPenalty):
    """IRMv1: mean over domains e of R_e + weight · ∇_s R_e(s · logits)² at s = 1 (eq. IRMv1, section 3.1).

    The square is estimated without bias by the product of the gradients on two halves of the domain's images, its even and
    its odd ones (appendix D of the paper); it can be negative. With an odd number of images one half has one more. A domain
    with one image in a batch adds nothing to the penalty.

    Cost: the loss of the batch once more, and a second derivative through the loss alone; the network is gone through once.

    Attributes:
        weight: Factor of the penalty from ``anneal_steps`` on; 1, as in the Transfer Learning Library.
        anneal_steps: Steps before that, with a factor of 1; then the optimiser begins anew.
    """

    name: ClassVar[str] = "irm"
    title: ClassVar[str] = "Invariant risk minimisation"
    citation: ClassVar[str] = "Arjovsky, Bottou, Gulrajani and Lopez-Paz, Invariant Risk Minimization, arXiv:1907.02893, 2019"
    fewest_per_group: ClassVar[int] = 2

    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        """``risk``, the mean over domains, and ``penalty``."""
        risks, present = group_means(context.losses, context.domains, context.num_domains)
        penalty = mean_of_present(invariance_penalties(context), present)
        return {"risk": mean_of_present(risks, present), "penalty": self.factor(context.step) * penalty}


def invariance_penalties(context: ObjectiveContext) -> Float[Tensor, " num_domains"]:
    """g_1 · g_2 of each domain: gradients of its mean loss on two halves with respect to a factor of the logits, at 1."""
    domains, num_domains = context.domains, context.num_domains
    halves = 2 * domains + _place_within(domains, num_domains) % 2
    scales = torch.ones(2 * num_domains, dtype=context.logits.dtype, device=context.logits.device, requires_grad=True)
    losses = context.loss(context.logits * scales[halves][:, None], context.targets)
    means, _ = group_means(losses, halves, 2 * num_domains)
    (gradients,) = torch.autograd.grad(means.sum(), scales, create_graph=True)  # each mean depends on its own factor alone
    return gradients.view(num_domains, 2).prod(1)


def _place_within(domains: Int64[Tensor, " batch"], num_domains: int) -> Int64[Tensor, " batch"]:
    """Number of each image among those of its domain, from 0."""
    return (one_hot(domains, num_domains).cumsum(0).gather(1, domains[:, None]) - 1).squeeze(1)
