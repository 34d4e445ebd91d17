"""Balanced sampling: as many training images in each cell of label and artefact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.audit.mitigation._mitigation import (
    FittedScorer,
    GroupedRows,
    Mitigation,
    Part,
    balanced_draw,
    cell_rows,
    logistic_scorer,
)
from crossgraft.seeding import generator


@dataclass(frozen=True)
class BalancedSampling(Mitigation):
    """Every cell is drawn down to the size of the smallest, without replacement; then logistic regression.

    Cost: one logistic regression on four times the smallest cell.

    Source: Idrissi, Arjovsky, Pezeshki and Lopez-Paz 2022, where it is called SUBG.
    """

    name: ClassVar[str] = "balanced_sampling"
    title: ClassVar[str] = "Balanced sampling"
    reference: ClassVar[str] = (
        "Idrissi, Arjovsky, Pezeshki and Lopez-Paz, Simple data balancing achieves competitive worst-group-accuracy, CLeaR 2022"
    )
    balanced_part: ClassVar[Part | None] = "train"

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """One draw."""
        drawn = balanced_draw(cell_rows(train.labels, train.artefact), generator(seed, self.name))
        return logistic_scorer(train.take(drawn))
