"""Centred kernel alignment with a Gaussian kernel, as a number and as a loss."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.similarity._features import Features, Similarity, centred_rows

BatchRows = Float[Tensor, "rows width"]
Kernel = Float[Tensor, "rows rows"]


def rbf_cka(x: Features, y: Features, *, bandwidth: float = 1.0) -> Similarity:
    """CKA with K = exp(−D² / 2σ²), D the distances of all pairs of images: alike where near images are the same, not all axes.

    The biased estimate; σ is ``bandwidth`` times the median distance of different images of each side, so scale changes nothing.
    A large bandwidth gives linear CKA, a small one looks at nearest neighbours alone.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        bandwidth: Share of the median distance; Kornblith et al. use 0.2 to 0.8.

    Returns:
        In [0, 1].

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than four images, or all images have the same features; the message says on which side.
        UsageError: ``bandwidth`` is not above 0.

    Cost: n² (d_x + d_y) operations and some n × n matrices.

    Reference:
        Kornblith, Norouzi, Lee and Hinton, Similarity of Neural Network Representations Revisited, ICML 2019, Section 3.
    """
    if not (np.isfinite(bandwidth) and bandwidth > 0):
        raise UsageError(f"The bandwidth of RBF CKA is a share of the median distance above 0, got {bandwidth!r}.")
    sides = [torch.from_numpy(side.rows) for side in centred_rows(x, y, "RBF CKA", fewest=4)]
    of_x, of_y = (_centred(_gaussian(_distances(side), bandwidth)) for side in sides)
    value = float((of_x * of_y).sum() / (of_x.norm() * of_y.norm()))
    return Similarity(
        min(max(value, 0.0), 1.0), estimator=f"rbf cka, bandwidth {bandwidth:g} of the median distance", n=len(sides[0])
    )


def batch_rbf_cka(x: BatchRows, y: Float[Tensor, "rows other_width"]) -> Float[Tensor, ""]:
    """CKA of unit-length rows with K = exp(−D² / 2σ²), σ² the median of the squared distances in the batch; part of the graph.

    Args:
        x: (n, d_x) features of a batch.
        y: (n, d_y) of the same images.

    Source: Li, Liu and Bilen, Universal Representation Learning from Multiple Domains for Few-shot Classification, ICCV 2021;
    the biased estimate of Kornblith, Norouzi, Lee and Hinton, ICML 2019.

    Example:
        >>> x = torch.eye(4)[[0, 0, 1, 2]]
        >>> round(float(batch_rbf_cka(x, 3 * x)), 6)
        1.0
    """
    of_x, of_y = (_centred(_gaussian(_unit_distances(rows))) for rows in (x, y))
    # before the root, whose slope at 0 is infinite: equal rows have no similarity, and no gradient
    squares = (of_x.square().sum() * of_y.square().sum()).clamp_min(torch.finfo(x.dtype).tiny)
    return (of_x * of_y).sum() / squares.sqrt()


def _gaussian(squared: Kernel, bandwidth: float = 1.0) -> Kernel:
    """The kernel of squared distances; the width is a share of their median over images that are not the same."""
    off_diagonal = squared.detach()[~torch.eye(len(squared), dtype=torch.bool, device=squared.device)]
    apart = off_diagonal[off_diagonal > 0]
    width = apart.median() if len(apart) else squared.new_ones(())
    return torch.exp(-squared / (2 * bandwidth**2 * width))


def _unit_distances(rows: BatchRows) -> Kernel:
    """Squared distances of rows of length 1."""
    unit = torch.nn.functional.normalize(rows, dim=1)
    return (2 - 2 * unit @ unit.T).clamp_min(0)


def _distances(rows: BatchRows) -> Kernel:
    """Squared distances of centred rows; differences that are rounding alone are 0."""
    products = rows @ rows.T
    lengths = products.diagonal()
    squared = lengths[:, None] + lengths - 2 * products
    return squared.where(squared > 1e-14 * lengths.max(), 0.0)


def _centred(kernel: Kernel) -> Kernel:
    """H K H."""
    means = kernel.mean(dim=0, keepdim=True)
    return kernel - means - means.T + kernel.mean()
