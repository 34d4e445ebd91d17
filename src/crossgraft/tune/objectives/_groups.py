"""Means over the groups of a batch, of which some may have no image."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import one_hot


def group_means(
    values: Float[Tensor, " batch"], groups: Int64[Tensor, " batch"], num_groups: int
) -> tuple[Float[Tensor, " num_groups"], Bool[Tensor, " num_groups"]]:
    """Mean of ``values`` in each group (0 without an image), in the graph, and whether the group has images. O(batch · groups).

    >>> import torch
    >>> group_means(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 2]), 3)
    (tensor([2., 0., 5.]), tensor([ True, False,  True]))
    """
    members = one_hot(groups, num_groups).to(values)  # a product with it adds up in one order on every device
    counts = members.sum(0)
    return values @ members / counts.clamp(min=1), counts > 0


def mean_of_present(values: Float[Tensor, " num_groups"], present: Bool[Tensor, " num_groups"]) -> Float[Tensor, ""]:
    """Mean over the groups that have images."""
    return (values * present).sum() / present.sum()
