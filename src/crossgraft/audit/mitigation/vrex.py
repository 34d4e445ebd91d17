"""VREx: images with the artefact and those without it are to have the same mean loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows, Mitigation, Part
from crossgraft.audit.mitigation._objective_head import ANNEAL_STEPS, objective_scorer
from crossgraft.tune.objectives import VREx


@dataclass(frozen=True)
class VRExHead(Mitigation):
    """A linear head that minimises mean risk + weight · variance of the risks of both domains.

    A domain is the images with the artefact, or those without it. Where a shortcut helps in both domains as much as it
    harms, their risks are alike whether the head leans on it or not.

    Args:
        weight: Factor of the variance, at least 0; 1 in the first 100 steps.

    Cost: 400 steps with all images.

    Source: ``crossgraft.tune.objectives.VREx``.
    """

    name: ClassVar[str] = "vrex"
    title: ClassVar[str] = VREx.title
    reference: ClassVar[str] = VREx.citation
    balanced_part: ClassVar[Part | None] = "train"

    weight: float = 3.0

    def __post_init__(self) -> None:
        """Refuse what the objective refuses."""
        VREx(self.weight)

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Nothing is drawn."""
        return objective_scorer(train, VREx(self.weight, ANNEAL_STEPS))
