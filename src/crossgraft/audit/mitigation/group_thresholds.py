"""Thresholds per group: the scores of the baseline, decided otherwise where the artefact is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from crossgraft.audit.group_metrics import best_threshold
from crossgraft.audit.mitigation._mitigation import FittedScorer, GroupedRows, Mitigation, Part, logistic_scorer


@dataclass(frozen=True)
class GroupThresholds(Mitigation):
    """Scores are those of ``erm``; images with the artefact and without have a threshold each.

    Each is the one with the best balanced accuracy among the validation images of its group, halfway between two probabilities
    that occur, and 0.5 where none is better than chance. Equal rates of true positives are not asked for: they would cost
    accuracy in the group that is told better. The order inside of a group stays, and so does the AUC there. To decide on an image
    one must know whether it carries the artefact.

    Cost: one logistic regression, and a sort of the validation part.

    Source: thresholds per group after Hardt, Price and Srebro 2016; balanced accuracy in place of their equalised odds.
    """

    name: ClassVar[str] = "group_thresholds"
    title: ClassVar[str] = "Thresholds per group"
    reference: ClassVar[str] = "Hardt, Price and Srebro, Equality of Opportunity in Supervised Learning, NeurIPS 2016"
    uses_val: ClassVar[bool] = True
    balanced_part: ClassVar[Part | None] = "val"

    def fit_rows(self, train: GroupedRows, val: GroupedRows, *, seed: int) -> FittedScorer:
        """Two thresholds on val."""
        scorer = logistic_scorer(train)
        scores = scorer.probabilities(val.features)
        without, with_it = (best_threshold(scores[rows], val.labels[rows]) for rows in (val.artefact == 0, val.artefact == 1))
        return replace(scorer, thresholds=(without, with_it))
