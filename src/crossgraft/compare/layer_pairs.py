"""CKA of all pairs of layers of two models, exactly where the sums fit into memory, else from minibatches."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from crossgraft.compare.record import LayerGrid
from crossgraft.errors import NotApplicable
from crossgraft.similarity import LayerCka, LayerSimilarity, MinibatchCka
from crossgraft.words.formatting import counted

MOST_BYTES = 512 * 2**20
"""Memory of the exact sums of one pair of models, at most."""
MINIBATCH = 128
"""Images of a minibatch; features of so many are kept until it is full."""

Layers = Mapping[str, np.ndarray | Tensor]


class LayerPairs:
    """Gets what the layers of two models gave, batch by batch.

    Args:
        most_bytes: Memory of the exact sums, at most.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._exact: LayerCka | None = None
        self._means: MinibatchCka | None = None
        self._waiting: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = []
        self._bytes = 0

    def update(self, layers: Layers, others: Layers) -> None:
        """Add a batch of the same images.

        Raises:
            DataError: As of ``LayerCka``.
        """
        first, second = ({name: np.asarray(rows) for name, rows in side.items()} for side in (layers, others))
        if self._exact is None and self._means is None:
            self._bytes = LayerCka.needs_bytes(*([rows.shape[1] for rows in side.values()] for side in (first, second)))
            if self._bytes <= self._most_bytes:
                self._exact = LayerCka()
            else:
                self._means = MinibatchCka()
        if self._exact is not None:
            self._exact.update(first, second)
            return
        self._waiting.append((first, second))
        if sum(len(next(iter(side.values()))) for side, _ in self._waiting) >= MINIBATCH:
            self._flush()

    def grid(self) -> LayerGrid:
        """CKA of all pairs, debiased: biased values of few images would be high for any layers.

        Raises:
            NotApplicable: There are fewer than four images.
        """
        if self._exact is not None:
            return grid_of(self._exact.compute(debiased=True), [])
        self._flush()
        if self._means is None:
            raise NotApplicable("CKA of layers needs at least 4 images, found 0.")
        found = self._means.compute()
        why = (
            f"From {counted(self._means.num_batches, 'minibatch', 'minibatches')}: exact sums would take "
            f"{self._bytes / 2**30:.1f} GiB, more than {self._most_bytes / 2**30:.1f}."
        )
        return grid_of(found, [why])

    def _flush(self) -> None:
        if not self._waiting or self._means is None:
            return
        joined = [
            {name: np.concatenate([batch[side][name] for batch in self._waiting]) for name in self._waiting[0][side]}
            for side in (0, 1)
        ]
        self._waiting.clear()
        self._means.update(*joined)


def grid_of(found: LayerSimilarity, notes: list[str]) -> LayerGrid:
    """The values as they are recorded."""
    return LayerGrid(
        rows=list(found.rows),
        columns=list(found.columns),
        values=found.matrix.tolist(),
        estimator=found.estimator,
        num_images=found.n,
        left_out_rows=dict(found.left_out_rows),
        left_out_columns=dict(found.left_out_columns),
        notes=[*notes, *found.warnings],
    )
