"""Empirical risk minimisation: nothing is done about the artefact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows, Mitigation, logistic_scorer


@dataclass(frozen=True)
class EmpiricalRisk(Mitigation):
    """Logistic regression on all training images: the baseline that the others have to beat.

    Cost: one logistic regression.
    """

    name: ClassVar[str] = "erm"
    title: ClassVar[str] = "Empirical risk minimisation"
    reference: ClassVar[str] = "Vapnik, Principles of Risk Minimization for Learning Theory, NeurIPS 1991"

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Every image counts the same."""
        return logistic_scorer(train)
