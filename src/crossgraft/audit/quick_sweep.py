"""Quick mode of one model: plain classifiers on frozen features, and mitigations beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crossgraft.audit.attribute_sweep import AttributeDesign, sweep_attribute
from crossgraft.audit.confounded import AuditRows, Confounded, Unit
from crossgraft.audit.detectability import Features, sweep_features
from crossgraft.audit.fold_scores import FoldScores
from crossgraft.audit.mitigation import EmpiricalRisk, Mitigation, SourceEditing, suited
from crossgraft.audit.record import AuditEntry, AuditMetric
from crossgraft.audit.reliance import LEAST_SHARES
from crossgraft.audit.sweep import BothFeatures, Sweep, both_features, frozen_features
from crossgraft.choice import spell
from crossgraft.edit.edits import Editing
from crossgraft.errors import UsageError
from crossgraft.models import Backbone
from crossgraft.words.formatting import joined


@dataclass(frozen=True, eq=False)
class MitigatedSweep:
    """What a mitigation gives.

    Attributes:
        scores: Every fold at every share that it can be used at, and plain training at share 0 where it has nothing to weigh.
        plain: Plain training at the same shares.
        left_out: Shares at which it was refused.
    """

    scores: list[FoldScores]
    plain: list[FoldScores]
    left_out: tuple[float, ...]


def sweep_mitigated(
    clean: Features,
    edited: Features,
    rows: AuditRows,
    plain: Sequence[FoldScores],
    mitigation: Mitigation,
    *,
    negatives: float,
    unit: Unit,
    seed: int,
    told: Callable[[], object] = lambda: None,
) -> MitigatedSweep:
    """Fit a mitigation at every share of ``plain``.

    Args:
        clean: (n, d) features of all images as they are.
        edited: (n, d) of the same images with the artefact.
        rows: What each image is for.
        plain: Scores of plain training, from ``sweep_features``.
        mitigation: The strategy.
        negatives: Share of the negatives that carry the artefact.
        unit: What is drawn.
        seed: Random seed.
        told: Called after each model.

    Raises:
        UsageError: It is refused at so many shares that fewer than three are left; the message is that of the refusal.
    """
    scores: list[FoldScores] = []
    left_out: list[float] = []
    refusal = ""
    for share in sorted({each.share for each in plain}):
        try:
            scores += sweep_features(
                clean, edited, rows, [share], mitigation, negatives=negatives, unit=unit, seed=seed, told=told
            )
        except UsageError as error:
            if share > 0:
                left_out.append(share)
                refusal = str(error)
            else:  # no positive carries it, so there is nothing to weigh
                scores += [each for each in plain if each.share == 0]
    kept = {each.share for each in scores}
    if len(kept) < LEAST_SHARES:
        raise UsageError(refusal or f"{mitigation.name} needs at least {LEAST_SHARES} shares.")
    return MitigatedSweep(scores, [each for each in plain if each.share in kept], tuple(left_out))


@dataclass(frozen=True, eq=False)
class QuickSweep:
    """One model.

    Attributes:
        sweep: What stays the same from model to model.
        model: Its name.
        backbone: The network.
    """

    sweep: Sweep
    model: str
    backbone: Backbone

    def entries(self, confounded: Sequence[Confounded]) -> list[AuditEntry]:
        """Plain training, then every mitigation, artefact by artefact."""
        return [entry for each in confounded for entry in self._entries(each)]

    def _entries(self, confounded: Confounded) -> list[AuditEntry]:
        """Entries of one artefact.

        Cost: one pass over all images and one over those that may carry the artefact, unless their features are in the cache.
        """
        sweep, options = self.sweep, self.sweep.options
        features = both_features(sweep, self.backbone, confounded)
        models = len(sweep.rows.folds) * len(sweep.shares) * (1 + len(sweep.mitigations))
        with sweep.reporter.stage(f"Auditing {self.model} with {confounded.name}", total=models, unit="models") as stage:
            plain = sweep_features(
                features.clean,
                features.edited,
                sweep.rows,
                sweep.shares,
                EmpiricalRisk(),
                negatives=options.negatives,
                unit=options.unit,
                seed=options.seed,
                told=stage.advance,
            )
            of_erm = [sweep.entry(self.model, confounded, plain, self.backbone, features.reach)]
            return of_erm + [
                self.mitigated(confounded, mitigation, plain, features, stage.advance) for mitigation in sweep.mitigations
            ]

    def attribute_entries(self, design: AttributeDesign) -> list[AuditEntry]:
        """Plain training, then every mitigation, with an attribute as what confounds."""
        return [self._attribute(design, each) for each in (EmpiricalRisk(), *self.sweep.mitigations)]

    def _attribute(self, design: AttributeDesign, mitigation: Mitigation) -> AuditEntry:
        sweep, title = self.sweep, spell(mitigation)
        try:
            if not suited([mitigation], "attribute") or mitigation.applies_to_images:
                raise UsageError(f"{title} is not for an attribute.")
            features = frozen_features(sweep, self.backbone, sweep.rows.dataset)
            with sweep.reporter.stage(
                f"Auditing {self.model} with {design.name}", total=len(design.turns), unit="models"
            ) as stage:
                scores = sweep_attribute(features, sweep.rows, design, mitigation, seed=sweep.options.seed, told=stage.advance)
        except UsageError as error:
            return AuditEntry.impossible(self.model, design.name, str(error), mode="quick", mitigation=title)
        return sweep.attribute_entry(self.model, design, scores, mitigation=title)

    def mitigated(
        self,
        confounded: Confounded,
        mitigation: Mitigation,
        plain: Sequence[FoldScores],
        features: BothFeatures,
        told: Callable[[], object],
    ) -> AuditEntry:
        """One strategy; a refusal is an answer, too."""
        sweep, options, title = self.sweep, self.sweep.options, spell(mitigation)
        try:
            if not suited([mitigation], getattr(confounded.edit, "scope", "global")):
                raise UsageError(f"{title} is not for an artefact that touches a part of the image.")
            if isinstance(mitigation, SourceEditing):
                editing = Editing([mitigation.image_edit], seed=options.seed)
                features = both_features(sweep, self.backbone, confounded, editing)
            swept = sweep_mitigated(
                features.clean,
                features.edited,
                sweep.rows,
                plain,
                mitigation,
                negatives=options.negatives,
                unit=options.unit,
                seed=options.seed,
                told=told,
            )
        except UsageError as error:
            return AuditEntry.impossible(self.model, confounded.name, str(error), mode="quick", mitigation=title)
        entry = sweep.entry(self.model, confounded, swept.scores, self.backbone, features.reach, mitigation=title)
        beside = sweep.reliance(swept.plain).shortcut_reliance_index
        of_erm = AuditMetric(name="shortcut_reliance_index_of_erm", value=beside.mean, low=beside.low, high=beside.high)
        reason = entry.reason + _left_out_in_words(swept.left_out)
        return entry.model_copy(update={"metrics": [*entry.metrics, of_erm], "reason": reason})


def _left_out_in_words(shares: Sequence[float]) -> str:
    """At which shares a mitigation was refused."""
    if not shares:
        return ""
    named = joined([f"{share:g}" for share in shares])
    which = f"the share {named}, which is" if len(shares) == 1 else f"the shares {named}, which are"
    return f" Refused at {which} left out."
