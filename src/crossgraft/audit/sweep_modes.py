"""Both modes of a sweep: heads on frozen features with mitigations beside them, or a fine-tuning for each fold and share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import numpy as np

from crossgraft.audit.attribute_sweep import AttributeDesign, scores_of_turn, sweep_attribute
from crossgraft.audit.confounded import AuditFold, AuditRows, Confounded, Unit, Without
from crossgraft.audit.detectability import Features, sweep_features
from crossgraft.audit.fold_scores import FoldScores
from crossgraft.audit.frequency_work import TunedPriority
from crossgraft.audit.mitigation import EmpiricalRisk, Mitigation, SourceEditing, suited
from crossgraft.audit.record import AuditEntry, AuditMetric, AuditTrainingRecord
from crossgraft.audit.reliance import LEAST_SHARES
from crossgraft.audit.sweep import (
    CLEAN,
    AuditTrainings,
    AuditTurn,
    BothFeatures,
    Sweep,
    audit_turns,
    both_features,
    fold_scores,
    frozen_features,
)
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.edit.edits import Editing
from crossgraft.errors import UsageError
from crossgraft.models import Backbone, ModelSpec
from crossgraft.options._option import from_mapping, options_of
from crossgraft.running.command_line import portable_name
from crossgraft.running.jobs import Job, run_jobs
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.preparation import Request
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


_TRAINED_BY = (
    "seed",
    "method",
    "epochs",
    "learning_rate",
    "image_size",
    "resize_policy",
    "weights_dir",
    "allow_download",
    "allow_code",
    "device",
    "workers",
)
"""Options of a fine-tuning that an audit has, too."""
_DECIDES = frozenset(_TRAINED_BY) - {"weights_dir", "allow_download", "allow_code", "device", "workers"}


@dataclass(frozen=True, eq=False)
class FullSweep:
    """One model.

    Attributes:
        sweep: What stays the same from model to model.
        spec: What is fine-tuned.
        backbone: The network as it came.
        run: Run directory, or None: then a run that is stopped begins anew.
        looked_at: Images that the learning priority of each tuned network is of; None: that was not asked for.
        priorities: Artefact → what the networks tuned on it look at; ``entries`` adds to it.
    """

    sweep: Sweep
    spec: ModelSpec
    backbone: Backbone
    run: RunDirectory | None
    looked_at: Dataset | None = None
    priorities: dict[str, list[TunedPriority]] = field(default_factory=dict[str, list["TunedPriority"]])

    def entries(self, confounded: Sequence[Confounded]) -> list[AuditEntry]:
        """One per artefact.

        Cost: (1 + artefacts × (shares − 1)) fine-tunings per fold; finished ones are read back. A pass over all
        images and one over those that may carry an artefact, for the probe.
        """
        if not confounded:
            return []
        alike: dict[str, list[Confounded]] = {}
        for each in confounded:  # the trainings without any carrier serve all that have the same images without it
            alike.setdefault("" if each.against is None else spell(each.against), []).append(each)
        entries: dict[str, AuditEntry] = {}
        for against, several in alike.items():
            by_name, first = {each.name: each for each in several}, several[0]
            turns = audit_turns(self.sweep.rows, list(by_name), self.sweep.shares, self.sweep.carriers)
            done = self._trained(turns, Without(first.images, first.clean, first.absent), by_name, against=against)
            for name, each in by_name.items():
                if self.looked_at is not None:
                    self.priorities[name] = [
                        TunedPriority(turn.share, turn.fold.number, answers.priorities)
                        for turn, answers in done
                        if name in turn.confounders
                    ]
                entries[name] = self.sweep.entry(
                    self.spec.name,
                    each,
                    [fold_scores(turn, answers, name) for turn, answers in done if name in turn.confounders],
                    self.backbone,
                    both_features(self.sweep, self.backbone, each).reach,
                )
        return [entries[each.name] for each in confounded]

    def attribute_entries(self, design: AttributeDesign) -> list[AuditEntry]:
        """One entry, of fine-tunings on the images that are chosen for each share.

        Cost: a fine-tuning per fold and share; finished ones are read back.
        """
        rows = self.sweep.rows
        nobody = np.zeros(len(rows.dataset), dtype=bool)
        turns = [
            AuditTurn(AuditFold(each.fold, each.train, each.val), each.share, nobody, (), each.realised, design.name)
            for each in design.turns
        ]
        done = self._trained(turns, Without(rows.dataset, rows.dataset, None), {})
        known = np.isin(rows.test, design.test)
        scores: list[FoldScores] = []
        for turn, (_, answers) in zip(design.turns, done, strict=True):
            probabilities = np.array(answers.clean)[known]
            scores.append(
                scores_of_turn(turn, probabilities, probabilities >= 0.5, probabilities >= answers.threshold, answers.best_epoch)
            )
        return [self.sweep.attribute_entry(self.spec.name, design, scores)]

    def _trained(
        self, turns: Sequence[AuditTurn], without: Without, confounded: Mapping[str, Confounded], *, against: str = ""
    ) -> list[tuple[AuditTurn, AuditTrainingRecord]]:
        """What every fine-tuning says, in the order of the turns."""
        jobs, rows = [self._job(turn, against) for turn in turns], self.sweep.rows
        work = AuditTrainings(
            rows=rows,
            images=without.images,
            clean=without.clean,
            absent=without.instead,
            edits={name: each.editing for name, each in confounded.items()},
            edited={name: each.edited.take(rows.test) for name, each in confounded.items()},
            request=Request.of(self._tune_options()),
            run=self.run,
            show=self._shown({job.name: number for number, job in enumerate(jobs, start=1)}),
            looked_at=self.looked_at if confounded else None,
        )
        outcomes = run_jobs(jobs, work, keep_going=False)
        return [(outcome.job.spec, outcome.result) for outcome in outcomes if outcome.result is not None]

    def _job(self, turn: AuditTurn, against: str) -> Job[AuditTurn]:
        what = f"{turn.name} {against}" if against and turn.name == CLEAN else turn.name
        name = portable_name(f"{self.spec.name}-{what}-fold{turn.fold.number}-share{turn.share:.12g}")
        rows, options = self.sweep.rows, self.sweep.options
        facts: Mapping[str, object] = {
            "model": self.spec.describe(),
            "data": rows.dataset.fingerprint,
            "rows": [hashlib.sha256(each.tobytes()).hexdigest() for each in (*turn.fold[1:], rows.test, turn.carrying)],
            "confounders": list(turn.confounders),
            "absent": against or str(options.absent),
            "strength": options.strength,
            "stage": options.stage,
            "positive": rows.positive,
            "options": {option: str(getattr(options, option)) for option in sorted(_DECIDES)},
        }
        return Job(name, turn, hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest())

    def _shown(self, numbers: Mapping[str, int]) -> Callable[[Job[AuditTurn]], AbstractContextManager[object]]:
        reporter = self.sweep.reporter

        def show(job: Job[AuditTurn]) -> AbstractContextManager[object]:
            reporter.say(f"Training {job.name} ({numbers[job.name]} of {len(numbers)}).")
            return reporter.part(job.name)

        return show

    def _tune_options(self) -> TuneOptions:
        options = self.sweep.options
        shared = {name: getattr(options, name) for name in options_of(TuneOptions) if name in _TRAINED_BY}
        return from_mapping(TuneOptions, {**shared, "model": self.spec, "ledger": False, "store": False})
