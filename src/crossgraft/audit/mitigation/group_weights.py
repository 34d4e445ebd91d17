"""Group weights: each cell of label and artefact counts the same, and every image is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from crossgraft.audit.mitigation._mitigation import (
    CELLS,
    FittedScorer,
    Flags,
    GroupedRows,
    Mitigation,
    Part,
    cell_rows,
    logistic_scorer,
)


@dataclass(frozen=True)
class GroupWeights(Mitigation):
    """Logistic regression in which an image of cell g has the weight n / (G · n_g), with G = 4 cells; weights sum to n.

    Cost: one logistic regression.

    Source: Idrissi, Arjovsky, Pezeshki and Lopez-Paz 2022, where it is called RWG and is done by sampling.
    """

    name: ClassVar[str] = "group_weights"
    title: ClassVar[str] = "Group weights"
    reference: ClassVar[str] = (
        "Idrissi, Arjovsky, Pezeshki and Lopez-Paz, Simple data balancing achieves competitive worst-group-accuracy, CLeaR 2022"
    )
    balanced_part: ClassVar[Part | None] = "train"

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Nothing is drawn."""
        return logistic_scorer(train, cell_weights(train.labels, train.artefact))


def cell_weights(labels: Flags, artefact: Flags) -> Float64[np.ndarray, " num_images"]:
    """The weight n / (G · n_g) of each image.

    Args:
        labels: (n,) 1 = positive.
        artefact: (n,) 1 = carries it; no cell is empty.
    """
    weights = np.empty(len(labels))
    for rows in cell_rows(labels, artefact):
        weights[rows] = len(labels) / (len(CELLS) * len(rows))
    return weights
