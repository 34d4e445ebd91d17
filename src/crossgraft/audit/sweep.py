"""One model after the other with every artefact: what quick and full mode share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.audit.attribute_sweep import AttributeDesign
from crossgraft.audit.confounded import AuditFold, AuditRows, Confounded, Mask
from crossgraft.audit.detectability import detectability, realised_share
from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.frequency_work import tuned_spectra
from crossgraft.audit.group_metrics import GAPS, best_threshold
from crossgraft.audit.mitigation import Mitigation
from crossgraft.audit.model_differences import SweptModel
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.outcomes import Concluded, conclude
from crossgraft.audit.reach import Reach, input_rms, larger_input
from crossgraft.audit.record import AuditEntry, AuditMetric, AuditMode, AuditTrainingRecord
from crossgraft.audit.result import IidDraw, Reliance, reliance_of
from crossgraft.audit.subjects import subject_of
from crossgraft.data import Dataset
from crossgraft.data.inspection import Edit
from crossgraft.data.splits import PARTS
from crossgraft.edit.edits import Editing
from crossgraft.features import extract_features
from crossgraft.models import Backbone
from crossgraft.progress import Reporter
from crossgraft.running.jobs import Job, Work
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tune.parts import FoldRows, TuningRows
from crossgraft.tune.planning.plan import make_plan
from crossgraft.tune.planning.preparation import Request, prepare
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.tracking import open_tracking
from crossgraft.tune.trainings import train_and_evaluate

FOLDER = "trainings"
CLEAN = "clean"
"""Name of a training that no image carries anything in."""
_QUIET = Reporter(quiet=True)


@dataclass(frozen=True, eq=False)
class AuditTurn:
    """One training, and the artefacts that its test images are looked at with.

    Attributes:
        fold: Rows that train and select.
        share: p_art.
        carrying: Images that carry the artefact.
        confounders: Names of the artefacts; several where no image carries any, so that one training serves them all, and none
            where an attribute chooses the images.
        realised: Share of the training positives that carry it, or have the attribute.
        name: What confounds, or ``CLEAN``.
    """

    fold: AuditFold
    share: float
    carrying: Mask
    confounders: tuple[str, ...]
    realised: float
    name: str


@dataclass(frozen=True, eq=False)
class AuditTrainings(Work[AuditTurn, AuditTrainingRecord]):
    """Fine-tunings of one model.

    Attributes:
        rows: What each image is for.
        images: All images as artefacts find them.
        clean: All images as those that do not carry an artefact are.
        absent: What an image that carries none gets; None: it stays as it is.
        edits: Name → what an image that carries it gets.
        edited: Name → all test images with it, in the order of ``rows.test``.
        request: Fine-tuning that is asked for.
        run: Run directory, or None: then nothing is kept.
        reporter: Reporter of progress.
        show: Context of one training.
        looked_at: Images that the learning priority of each network is of; None: that was not asked for.
    """

    rows: AuditRows
    images: Dataset
    clean: Dataset
    absent: Edit | None
    edits: Mapping[str, Edit]
    edited: Mapping[str, Dataset]
    request: Request
    run: RunDirectory | None
    show: Callable[[Job[AuditTurn]], AbstractContextManager[object]]
    looked_at: Dataset | None = None

    def around(self, job: Job[AuditTurn]) -> AbstractContextManager[object]:
        """Shown as a part."""
        return self.show(job)

    def read_back(self, job: Job[AuditTurn]) -> AuditTrainingRecord | None:
        """What an earlier attempt kept."""
        kept = None if self.run is None else self.run.read_record(_file(job), AuditTrainingRecord)
        if kept is None or kept.key != job.key or (self.looked_at is not None and not kept.priorities):
            return None
        return kept

    def do(self, job: Job[AuditTurn]) -> AuditTrainingRecord:
        """Train, and ask about the test images."""
        turn, rows = job.spec, self.rows
        images = self.clean
        if turn.carrying.any():
            (name,) = turn.confounders
            images = self.images.edited(self.edits[name], turn.carrying)
            if self.absent is not None:
                images = images.edited(self.absent, ~turn.carrying)
        parts = FoldRows(turn.fold.train, turn.fold.val, rows.test)
        tuned = self._tune(replace(images, splits=_part_names(len(images), parts), split=None), parts)
        subject = subject_of(tuned)
        column = subject.class_names.index(rows.positive)

        def ask(about: Dataset) -> list[float]:
            return subject.probabilities(about, _QUIET)[:, column].tolist()

        of_val = np.array(ask(images.take(turn.fold.val)))
        picked = next(point for point in tuned.record.grid if point.picked)
        answers = AuditTrainingRecord(
            key=job.key,
            realised=turn.realised,
            threshold=best_threshold(of_val, rows.is_positive[turn.fold.val].astype(np.int64)),
            best_epoch=picked.best_epoch or 0,
            clean=ask(self.clean.take(rows.test)),
            edited={name: ask(self.edited[name]) for name in turn.confounders},
            priorities={} if self.looked_at is None or subject.model is None else tuned_spectra(subject.model, self.looked_at),
        )
        if self.run is not None:
            self.run.write_record(_file(job), answers)
        return answers

    def _tune(self, images: Dataset, parts: FoldRows) -> FineTuningResult:
        origins: dict[str, str] = dict.fromkeys(PARTS, "of the audit")
        tuning = TuningRows(images, (parts,), origins)
        prepared = prepare(tuning, self.request, run=None, reporter=_QUIET, checks=[])
        plan = make_plan(prepared, run=None, reporter=_QUIET)
        tracking = open_tracking(None, _QUIET)
        return train_and_evaluate(prepared, plan, run=None, tracking=tracking, reporter=_QUIET)


def audit_turns(
    rows: AuditRows, names: Sequence[str], shares: Sequence[float], carriers: Callable[[AuditFold, float], Mask]
) -> list[AuditTurn]:
    """Trainings in the order of the folds; where no image carries anything, one serves all artefacts."""
    turns: list[AuditTurn] = []
    for fold in rows.folds:
        for share in shares:
            carrying = carriers(fold, share)
            together = [(CLEAN, tuple(names))] if not carrying.any() else [(name, (name,)) for name in names]
            realised = realised_share(carrying, rows.is_positive, fold.train)
            turns += [AuditTurn(fold, share, carrying, each, realised, name) for name, each in together]
    return turns


def fold_scores(turn: AuditTurn, answers: AuditTrainingRecord, name: str) -> FoldScores:
    """What the network of a training says, with one of the artefacts."""
    scores = np.array([answers.clean, answers.edited[name]])
    return FoldScores(
        fold=turn.fold.number,
        share=turn.share,
        realised=answers.realised,
        clean=scores[0],
        edited=scores[1],
        decided=scores >= 0.5,
        decided_by_val=scores >= answers.threshold,
        best_epoch=answers.best_epoch,
    )


def _part_names(number: int, parts: FoldRows) -> np.ndarray:
    names = np.full(number, "", dtype="<U5")
    names[parts.train], names[parts.val], names[parts.test] = "train", "val", "test"
    return names


def _file(job: Job[AuditTurn]) -> str:
    return f"{FOLDER}/{job.name}.json"


_AT_LARGEST_SHARE = {"iid": "iid_auc", "ood": "ood_auc"} | {
    name: name for name in ("flip_effect", "flip_effect_positives", "flip_effect_negatives", "worst_group_accuracy", *GAPS)
}
"""Metrics of the last point that stand for the entry, too, and their names there."""


def sweep_entry(
    model: str,
    confounder: str,
    reliance: Reliance,
    concluded: Concluded,
    *,
    mode: AuditMode,
    mitigation: str = "erm",
    reach: Reach | None = None,
) -> AuditEntry:
    """One model and one confounder of a sweep."""
    last = reliance.points[-1]
    return AuditEntry(
        model=model,
        confounder=confounder,
        mitigation=mitigation,
        mode=mode,
        **concluded._asdict(),
        metrics=[
            AuditMetric.over_folds("shortcut_reliance_index", reliance.shortcut_reliance_index, reliance.over_patients),
            AuditMetric.over_folds("ood_drop_area", reliance.ood_drop_area),
            AuditMetric.over_folds("early_gap", reliance.early_gap),
            AuditMetric(name="flip_share", value=reliance.flip_share),
            AuditMetric.over_folds("clean_auc", reliance.clean),
            *(
                metric.model_copy(update={"name": name})
                for of_point, name in _AT_LARGEST_SHARE.items()
                if (metric := last.metric(of_point)) is not None
            ),
        ],
        points=list(reliance.points),
        detectability=None if reach is None else AuditMetric.over_patients("detectability", reach.detectability.auc),
        input_rms=None if reach is None else reach.input_rms,
    )


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
        too_small, larger = confounded.too_small(backbone.preprocessing), None
        may_reach_larger = options.mode == "quick" and options.stage == "native" and too_small is None
        if may_reach_larger and not reach.detectability.is_detectable:
            larger = larger_input(confounded.clean, confounded.edited, backbone.preprocessing)
        concluded = conclude(
            reliance, reach.detectability, mode=options.mode, too_small=too_small, larger=larger, strength=options.strength
        )
        entry = sweep_entry(model, confounded.name, reliance, concluded, mode=options.mode, mitigation=mitigation, reach=reach)
        return self._kept(entry.model_copy(update={"larger_image_size": larger}), scores, self.tested)

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


class BothFeatures(NamedTuple):
    """Features without the artefact and with it.

    Attributes:
        clean: (n, d) of all images as they are.
        edited: (n, d) with the artefact where it is needed, else as they are.
        reach: How much of the artefact is left at the input and in the features.
    """

    clean: Float[np.ndarray, "num_images num_features"]
    edited: Float[np.ndarray, "num_images num_features"]
    reach: Reach


def both_features(sweep: Sweep, backbone: Backbone, confounded: Confounded, before: Editing | None = None) -> BothFeatures:
    """Features of all images, and of those that may carry the artefact once more with it.

    Args:
        sweep: What stays the same from model to model.
        backbone: The network.
        confounded: The artefact.
        before: Edit of every image that comes after the artefact and before the network, such as one that takes cues away.

    Cost: one pass over all images and one over those that may carry the artefact, unless their features are in the cache; the
    five logistic regressions of the probe.
    """
    rows, clean, edited = sweep.rows, confounded.clean, confounded.edited
    if before is not None:
        clean, edited = clean.edited(before), edited.edited(before)
    needed = rows.may_carry(sweep.options.negatives)
    unedited = frozen_features(sweep, backbone, clean)
    changed = unedited.copy()
    # the same pixels in another batch may give other last digits, and an edit that changes nothing would be seen
    differ = np.array([one != other for one, other in zip(clean.image_digests, edited.image_digests, strict=True)])
    if (needed & differ).any():
        changed[needed & differ] = frozen_features(sweep, backbone, edited.take(np.flatnonzero(needed & differ)))
    groups = rows.dataset.groups
    reach = Reach(
        detectability(unedited[needed], changed[needed], None if groups is None else groups[needed]),
        input_rms(clean.take(rows.test), edited.take(rows.test), backbone.preprocessing),
    )
    return BothFeatures(unedited, changed, reach)


def frozen_features(sweep: Sweep, backbone: Backbone, images: Dataset) -> Float[np.ndarray, "num_images num_features"]:
    """Penultimate features, from the cache where they are there."""
    options = sweep.options
    extracted = extract_features(
        images,
        backbone,
        cache_dir=options.cache_dir,
        batch_size=options.batch_size,
        num_threads=sweep.num_threads,
        reporter=sweep.reporter,
    )
    return np.asarray(extracted.features)
