"""IRM: one head that is best for images with the artefact and for those without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows, Mitigation, Part
from crossgraft.audit.mitigation._objective_head import ANNEAL_STEPS, objective_scorer
from crossgraft.tune.objectives import IRM


@dataclass(frozen=True)
class IRMHead(Mitigation):
    """A linear head that minimises mean risk + weight · mean squared gradient by a factor of the logits, over both domains.

    A domain is the images with the artefact, or those without it. The penalty is that of the full domain, not of halves. Within a
    domain the artefact does not vary, so that it can only move the logits of all its images alike: what the penalty sees of it is
    little.

    Args:
        weight: Factor of the penalty, at least 0; 1 in the first 100 steps.

    Cost: 400 steps with all images.

    Source: ``crossgraft.tune.objectives.IRM``.
    """

    name: ClassVar[str] = "irm"
    title: ClassVar[str] = IRM.title
    reference: ClassVar[str] = IRM.citation
    balanced_part: ClassVar[Part | None] = "train"

    weight: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what the objective refuses."""
        IRM(self.weight)

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Nothing is drawn."""
        return objective_scorer(train, IRM(self.weight, ANNEAL_STEPS))
