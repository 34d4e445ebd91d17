"""Centred kernel alignment with a Gaussian kernel, as a loss that features are distilled with."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, "rows width"]


def rbf_cka(x: Rows, y: Float[Tensor, "rows other_width"]) -> Float[Tensor, ""]:
    """CKA of unit-length rows with K = exp(−D² / 2σ²), σ² the median of the squared distances in the batch; part of the graph.

    Args:
        x: (n, d_x) features of a batch.
        y: (n, d_y) of the same images.

    Source: Li, Liu and Bilen, Universal Representation Learning from Multiple Domains for Few-shot Classification, ICCV 2021;
    the biased estimate of Kornblith, Norouzi, Lee and Hinton, ICML 2019.

    Example:
        >>> x = torch.eye(4)[[0, 0, 1, 2]]
        >>> round(float(rbf_cka(x, 3 * x)), 6)
        1.0
    """
    of_x, of_y = (_centred(_kernel(rows)) for rows in (x, y))
    # before the root, whose slope at 0 is infinite: equal rows have no similarity, and no gradient
    squares = (of_x.square().sum() * of_y.square().sum()).clamp_min(torch.finfo(x.dtype).tiny)
    return (of_x * of_y).sum() / squares.sqrt()


def _kernel(rows: Rows) -> Float[Tensor, "rows rows"]:
    unit = torch.nn.functional.normalize(rows, dim=1)
    squared = (2 - 2 * unit @ unit.T).clamp_min(0)
    off_diagonal = squared.detach()[~torch.eye(len(rows), dtype=torch.bool, device=rows.device)]
    apart = off_diagonal[off_diagonal > 0]
    width = apart.median() if len(apart) else squared.new_ones(())
    return torch.exp(-squared / (2 * width))


def _centred(kernel: Float[Tensor, "rows rows"]) -> Float[Tensor, "rows rows"]:
    """H K H."""
    means = kernel.mean(dim=0, keepdim=True)
    return kernel - means - means.T + kernel.mean()
