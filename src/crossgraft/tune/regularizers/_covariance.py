"""Mean and covariance of features: of all training images in one pass, and of a batch that processes share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.tune.protocols.regularizer import StepContext


class Moments(NamedTuple):
    """Mean and covariance, divided by n − 1."""

    mean: Float[Tensor, " num_features"]
    covariance: Float[Tensor, "num_features num_features"]


class FactoredMoments(NamedTuple):
    """Those of fewer rows than features: Σ = CᵀC is best never made."""

    mean: Float[Tensor, " num_features"]
    rows: Float[Tensor, "num_rows num_features"]  # C: centred, divided by the root of n − 1

    @property
    def covariance(self) -> Float[Tensor, "num_features num_features"]:
        """Σ."""
        return self.rows.T @ self.rows


def moments_of_all(batches: Iterable[Float[Tensor, "_ num_features"]]) -> Moments:
    """Moments of all rows of all batches, in one pass and float64.

    Rows are shifted by the mean of the first batch, so that a large mean costs no digits. Fewer than two rows in all, or
    none, give nan.

    Cost: d² numbers, and n d² multiplications.
    """
    # Without any batch the width is unknown, and the answer is nan of width 1.
    count, shift, total, scatter = 0, torch.zeros(1), torch.zeros(1), torch.zeros(1, 1)
    for batch in batches:
        # Apple's GPUs know no float64.
        rows = (batch.cpu() if batch.device.type == "mps" else batch).detach().double()
        if count == 0:
            shift = rows.mean(0)
            total, scatter = torch.zeros_like(shift), shift.new_zeros(len(shift), len(shift))
        rows = rows - shift
        count += len(rows)
        total += rows.sum(0)
        scatter += rows.T @ rows
    mean = total / count if count else total
    covariance = (scatter - count * torch.outer(mean, mean)) / (count - 1) if count > 1 else scatter * float("nan")
    return Moments(shift + mean, covariance)


def moments_of_batch(context: StepContext, features: Float[Tensor, "batch num_features"]) -> Moments | FactoredMoments:
    """Moments of the batch of all processes, in the graph, in float32 or float64.

    With fewer images than features the processes exchange the rows (n d numbers), otherwise sums (d² numbers).

    Args:
        context: Context of the step; there are at least two images in all processes together.
        features: One row per image of this process.
    """
    rows = wide(features)
    count = context.num_images_of_all
    if count < features.shape[1]:
        rows = context.of_all_processes(rows)
        mean = rows.mean(0)
        return FactoredMoments(mean, (rows - mean) / math.sqrt(count - 1))
    rows = rows[: context.num_images]
    mean = context.sum_over_processes(rows.sum(0)) / count
    # The scatter does not change with the mean to first order, because centred rows add up to zero.
    centred = rows - mean.detach()
    return Moments(mean, context.sum_over_processes(centred.T @ centred) / (count - 1))


def wide(tensor: Tensor) -> Tensor:
    """At least float32."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()
