"""The triplet margin loss over all triplets of a batch, without ever listing them.

max(d_ap − d_an + α, 0) is linear in the distances wherever it is not 0, so the sum over all triplets needs, for each
pair, only the number of triplets above 0 that it is part of. Sorting each anchor's distances gives these numbers in
O(m² log m) for m images, where the triplets themselves are O(m³).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int

from crossgraft.types import ClassIndices


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
