"""One model after the other with every artefact: what quick and full mode share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from crossgraft.audit.attribute_sweep import AttributeDesign
from crossgraft.audit.confounded import Confounded
from crossgraft.audit.describe import sweep_entry
from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.mitigation import Mitigation
from crossgraft.audit.model_differences import SweptModel
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.outcomes import conclude
from crossgraft.audit.reach import Reach
from crossgraft.audit.record import AuditEntry
from crossgraft.audit.rows import AuditFold, AuditRows, Mask
from crossgraft.audit.summary import IidDraw, Reliance, reliance_of
from crossgraft.models import Backbone
from crossgraft.progress import Reporter

PLAIN = "erm"
"""How a model is trained that no mitigation is used with."""


@dataclass(frozen=True, eq=False)
class Sweep:
    """What stays the same from model to model.

    Attributes:
        rows: What each image is for.
        shares: p_art, ascending from 0.
        mitigations: What plain training is compared with.
        options: Options of ``audit_model``.
        num_threads: Number of threads that read images and compute.
        reporter: Reporter of progress.
        swept: What plainly trained models say, kept so that models can be compared; ``entry`` and ``attribute_entry`` add to it.
    """

    rows: AuditRows
    shares: Sequence[float]
    mitigations: Sequence[Mitigation]
    options: AuditOptions
    num_threads: int
    reporter: Reporter
    swept: list[SweptModel] = field(default_factory=list["SweptModel"])

    @property
    def tested(self) -> AuditedImages:
        """The test images."""
        rows, test, options = self.rows, self.rows.test, self.options
        groups = None if rows.dataset.groups is None else rows.dataset.groups[test]
        positive = rows.is_positive[test]
        units = groups if options.unit == "patient" else None
        of_class = [None if units is None else len(np.unique(units[side])) for side in (positive, ~positive)]
        return AuditedImages(
            positive,
            groups,
            [rows.identities[row] for row in test.tolist()],
            num_drawn=of_class[0],
            negatives=options.negatives,
            num_drawn_negatives=of_class[1],
        )

    @property
    def draw(self) -> IidDraw:
        """How i.i.d. test images come about."""
        options = self.options
        return IidDraw(options.test_mode, options.unit, options.seed, options.micro_auc)

    def carriers(self, fold: AuditFold, share: float) -> Mask:
        """Which images of a fold carry the artefact."""
        options = self.options
        return self.rows.carriers(fold, share, negatives=options.negatives, unit=options.unit, seed=options.seed)

    def reliance(self, scores: Sequence[FoldScores]) -> Reliance:
        """Curves and their summaries."""
        return reliance_of(scores, self.tested, self.draw)

    def entry(
        self,
        model: str,
        confounded: Confounded,
        scores: Sequence[FoldScores],
        backbone: Backbone,
        reach: Reach,
        *,
        mitigation: str = "erm",
    ) -> AuditEntry:
        """What the report says of one model, one artefact and one way to train.

        Args:
            model: Name of the model.
            confounded: The artefact.
            scores: Every fold at every share.
            backbone: The network, for its preprocessing.
            reach: How far the artefact reaches into the network before it is trained.
            mitigation: How it was trained.
        """
        reliance, options = self.reliance(scores), self.options
        concluded = conclude(
            reliance,
            reach.detectability,
            mode=options.mode,
            too_small=confounded.too_small(backbone.preprocessing),
            strength=options.strength,
        )
        entry = sweep_entry(
            model,
            confounded.name,
            reliance,
            concluded,
            mode=options.mode,
            mitigation=mitigation,
            reach=reach,
        )
        return self._kept(entry, scores, self.tested)

    def attribute_entry(
        self, model: str, design: AttributeDesign, scores: Sequence[FoldScores], *, mitigation: str = "erm"
    ) -> AuditEntry:
        """What the report says of one model, one attribute and one way to train; there is nothing to detect."""
        reliance = reliance_of(scores, design.tested)
        concluded = conclude(reliance, None)
        entry = sweep_entry(model, design.name, reliance, concluded, mode=self.options.mode, mitigation=mitigation)
        return self._kept(entry, scores, design.tested)

    def _kept(self, entry: AuditEntry, scores: Sequence[FoldScores], tested: AuditedImages) -> AuditEntry:
        if entry.mitigation == PLAIN:
            self.swept.append(SweptModel(entry, scores, tested))
        return entry
