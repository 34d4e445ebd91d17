"""GroupDRO: the cell of label and artefact with the largest loss decides, softly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows, Mitigation, Part
from crossgraft.audit.mitigation._objective_head import objective_scorer
from crossgraft.tune.objectives import GroupDRO


@dataclass(frozen=True)
class GroupDROHead(Mitigation):
    """A linear head that minimises Σ_g q_g L_g over the four cells, whose weights q follow their losses.

    Args:
        eta: How fast the weights follow, above 0.

    Cost: 400 steps with all images.

    Source: ``crossgraft.tune.objectives.GroupDRO``.
    """

    name: ClassVar[str] = "group_dro"
    title: ClassVar[str] = GroupDRO.title
    reference: ClassVar[str] = GroupDRO.citation
    balanced_part: ClassVar[Part | None] = "train"

    eta: float = 0.01

    def __post_init__(self) -> None:
        """Refuse what the objective refuses."""
        GroupDRO(self.eta)

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Nothing is drawn."""
        return objective_scorer(train, GroupDRO(self.eta, "domains_and_classes"))
