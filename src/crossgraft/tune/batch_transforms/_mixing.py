"""What the ways to mix two images share: the share that is kept, and the partner."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor


def draw_share(alpha: float, generator: torch.Generator) -> float:
    """λ from Beta(α, α), in [0, 1].

    torch draws Beta numbers from its global generator only; numpy draws them here, seeded by ``generator``.
    """
    seed = int(torch.randint(2**63 - 1, (), generator=generator, device=generator.device))
    return float(np.random.default_rng(seed).beta(alpha, alpha))


def draw_partners(num_images: int, generator: torch.Generator) -> Int64[Tensor, " batch"]:
    """The image that each image is mixed with: a permutation; an image may be its own partner."""
    return torch.randperm(num_images, generator=generator, device=generator.device)
