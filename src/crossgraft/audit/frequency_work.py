"""Frequencies of an audit: spectra of images and artefacts, what each network looks at, and trained models under filters.

Fine-tunings on more and more images with an artefact are put beside the network before them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from crossgraft.audit.confounded import Confounded
from crossgraft.audit.frequency import (
    MOST_IMAGES,
    EditFrequencies,
    FrequencyAudit,
    NetworkPriority,
    draw_rows,
    frequency_audit,
    outputs_of,
)
from crossgraft.audit.learning_priority import Objective, network_priority, prepared_batches
from crossgraft.audit.record import (
    ArtefactFrequencies,
    AuditEntry,
    AuditFrequencies,
    AuditMetric,
    AuditRecord,
    BandPoint,
    BandRecord,
    ModelFrequencies,
    PriorityByShare,
    PriorityRecord,
    PriorityRow,
    RiskPoint,
    RiskRankRecord,
    WhichNetwork,
)
from crossgraft.audit.result import AuditCall
from crossgraft.audit.spectra import (
    BandAccuracy,
    EditSpectrum,
    SpectralOverlap,
    band_accuracy,
    edit_spectrum,
    risk_rank,
    spectral_overlap,
)
from crossgraft.audit.subjects import Subject
from crossgraft.data import Dataset
from crossgraft.errors import DataError
from crossgraft.models import Backbone
from crossgraft.progress import Reporter
from crossgraft.statistics import mean_interval
from crossgraft.tune.pretrained_start import pretrained_start
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.types import Preprocessing

OBJECTIVES: tuple[Objective, ...] = ("features", "true labels")
"""The first one is all that a pretrained network and a tuned one have in common; the second is that of the thesis."""


class TunedPriority(NamedTuple):
    """What one fine-tuned network looks at.

    Attributes:
        share: Share of the training positives that carried the artefact.
        fold: Number of its fold.
        spectra: Objective → spectrum by ring, with a sum of 1.
    """

    share: float
    fold: int
    spectra: Mapping[str, Sequence[float]]


def tuned_spectra(model: SavedModel, images: Dataset) -> dict[str, list[float]]:
    """Objective → learning priority of a network on images that nobody edited; without those that have none.

    Cost: a forward and a backward pass of each image per objective.
    """
    network, targets, found = model.classifier, outputs_of(model, images), dict[str, list[float]]()
    with Reporter(quiet=True).stage("Learning priority", total=len(images)) as stage:
        for objective in OBJECTIVES:
            priority = network_priority(network, prepared_batches(images, network.preprocessing), objective, targets, stage)
            if priority.psd is not None:
                found[objective] = [float(f"{value:.5g}") for value in priority.psd]
    return found


def priority_by_share(
    confounder: str,
    networks: Sequence[TunedPriority],
    objective: Objective,
    *,
    before: Sequence[float] | None,
    artefact: Sequence[float] | None,
) -> PriorityByShare | None:
    """Mean learning priority over the folds of each share; None where no network has any.

    Args:
        confounder: The artefact.
        networks: Every fold at every share.
        objective: What the gradient is of.
        before: The same of the pretrained network, where it has this objective.
        artefact: Spectrum of the artefact at the input; None: nothing of it is left there.
    """
    of_shares: dict[float, list[np.ndarray]] = {}
    for each in sorted(networks, key=lambda one: (one.share, one.fold)):
        if objective in each.spectra:
            of_shares.setdefault(each.share, []).append(np.array(each.spectra[objective]))
    if not of_shares:
        return None
    return PriorityByShare(
        confounder=confounder,
        objective=objective,
        before=None if before is None else list(before),
        overlap_before=None if before is None or artefact is None else _overlap(before, artefact),
        rows=[
            PriorityRow(
                share=share,
                psd=[float(f"{value:.5g}") for value in np.mean(spectra, axis=0)],
                num_networks=len(spectra),
                kept=None if before is None else _mean("kept", [_overlap(each, before) for each in spectra]),
                overlap=None if artefact is None else _mean("overlap", [_overlap(each, artefact) for each in spectra]),
            )
            for share, spectra in of_shares.items()
        ],
    )


def _overlap(one: Sequence[float] | np.ndarray, other: Sequence[float] | np.ndarray) -> float:
    return spectral_overlap(np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)).overlap


def _mean(name: str, values: Sequence[float]) -> AuditMetric:
    return AuditMetric.over_folds(name, mean_interval(np.array(values), limits=(0.0, 1.0)))


@dataclass(frozen=True, eq=False)
class FrequencySweep:
    """Images that networks are compared on; the spectrum of an artefact is computed once for all that get the same inputs.

    Attributes:
        images: The images, at most ``MOST_IMAGES``.
        rows: Their numbers among those that artefacts were put into.
        call: The call of the audit.
        models: What was found so far.
    """

    images: Dataset
    rows: np.ndarray
    call: AuditCall
    models: list[ModelFrequencies] = field(default_factory=list[ModelFrequencies])
    _known: dict[tuple[str, Preprocessing], EditSpectrum] = field(default_factory=dict[tuple[str, Preprocessing], EditSpectrum])

    @classmethod
    def of(cls, dataset: Dataset, test: np.ndarray, call: AuditCall) -> FrequencySweep:
        """A sweep over the test images, or over a draw of them in which classes keep their shares."""
        rows = test[draw_rows(dataset.take(test), MOST_IMAGES, seed=call.options.seed)]
        return cls(dataset.take(rows), rows, call)

    def of_backbone(
        self,
        name: str,
        backbone: Backbone,
        artefacts: Sequence[Confounded],
        tuned: Mapping[str, Sequence[TunedPriority]] | None = None,
    ) -> None:
        """Look at one pretrained network, and at artefacts that were put into all rows.

        Args:
            name: Name of the network.
            backbone: The network.
            artefacts: What was put into images.
            tuned: Artefact → what the networks look at that were fine-tuned on images with it.
        """
        found = self.look(name, backbone, artefacts)
        by_share = [each for artefact, several in (tuned or {}).items() for each in _by_share(found, artefact, several)]
        self.models.append(found.model_copy(update={"by_share": by_share}))

    def record(self, entries: Sequence[AuditEntry]) -> AuditFrequencies:
        """All networks, and whether their overlaps order them as their reliance does."""
        return AuditFrequencies(models=self.models, ranks=rank_risks(entries, self.models, seed=self.call.options.seed))

    def look(
        self, name: str, model: Backbone | SavedModel, artefacts: Sequence[Confounded], before: Backbone | None = None
    ) -> ModelFrequencies:
        """One network, and the pretrained one that it was tuned from; where it cannot be looked at, the reason."""
        preprocessing = (model.classifier if isinstance(model, SavedModel) else model).preprocessing
        try:
            spectra = frequency_audit(
                model,
                self.images,
                edits=[self._spectrum(each, preprocessing) for each in artefacts],
                before=before,
                seed=self.call.options.seed,
                reporter=self.call.reporter,
            )
        except DataError as error:
            return ModelFrequencies(model=name, notes=[f"Spectra were not looked at. {error}"])
        return frequencies_record(name, spectra, "tuned" if isinstance(model, SavedModel) else "pretrained")

    def _spectrum(self, each: Confounded, preprocessing: Preprocessing) -> EditSpectrum:
        key = (each.name, preprocessing)
        if key not in self._known:
            with self.call.reporter.stage(f"Spectrum of {each.name}", total=len(self.rows)) as stage:
                self._known[key] = edit_spectrum(
                    each.clean.take(self.rows),
                    each.edited.take(self.rows),
                    preprocessing,
                    edit=each.name,
                    scope=getattr(each.edit, "scope", "global"),
                    told=stage.advance,
                )
        return self._known[key]


def _by_share(model: ModelFrequencies, artefact: str, tuned: Sequence[TunedPriority]) -> list[PriorityByShare]:
    """One artefact, with each objective."""
    seen = next((each for each in model.artefacts if each.confounder == artefact), None)
    found: list[PriorityByShare] = []
    for objective in OBJECTIVES:
        before = model.priority("pretrained", objective)
        of_artefact = None if seen is None else seen.psd
        rows = priority_by_share(artefact, tuned, objective, before=None if before is None else before.psd, artefact=of_artefact)
        found += [] if rows is None else [rows]
    return found


def frequencies_record(name: str, spectra: FrequencyAudit, network: WhichNetwork) -> ModelFrequencies:
    """Spectra of one model, what it looks at first, and artefacts beside it."""
    priorities = [_priority(spectra.priority, network)]
    if spectra.before is not None and spectra.after is not None:
        priorities.append(_priority(spectra.before, "pretrained"))
        if spectra.after is not spectra.priority:
            priorities.append(_priority(spectra.after, network))
    return ModelFrequencies(
        model=name,
        num_images=spectra.num_images,
        frequencies=_rounded(spectra.frequencies),
        images=_rounded(spectra.psd),
        priorities=priorities,
        artefacts=[_artefact(each, spectra) for each in spectra.edits],
    )


def _priority(priority: NetworkPriority, network: WhichNetwork) -> PriorityRecord:
    psd = None if priority.psd is None else _rounded(priority.psd)
    return PriorityRecord(network=network, objective=priority.objective, psd=psd, num_saturated=priority.num_saturated)


def _artefact(artefact: EditFrequencies, spectra: FrequencyAudit) -> ArtefactFrequencies:
    beside = dict.fromkeys(SpectralOverlap._fields) if artefact.overlap is None else artefact.overlap._asdict()
    return ArtefactFrequencies(
        confounder=artefact.edit,
        scope=artefact.scope,
        psd=None if artefact.psd is None else _rounded(artefact.psd),
        num_changed=artefact.num_changed,
        input_rms=artefact.rms,
        **{name: None if value is None or math.isnan(value) else value for name, value in beside.items()},
        overlap_before=_overlap_with(artefact, spectra.before),
        overlap_after=_overlap_with(artefact, spectra.after),
        is_informative=artefact.is_informative,
        reason=artefact.reason,
    )


def _overlap_with(artefact: EditFrequencies, other: NetworkPriority | None) -> float | None:
    if other is None or other.psd is None or artefact.psd is None:
        return None
    return spectral_overlap(artefact.psd, other.psd).overlap


def band_record(accuracy: BandAccuracy, positive: str) -> BandRecord:
    """A trained model under filters."""
    return BandRecord(
        positive=positive,
        chance=accuracy.chance,
        clean=accuracy.clean.value,
        clean_low=accuracy.clean.low,
        clean_high=accuracy.clean.high,
        points=[
            BandPoint(kind=row.kind, cutoff=row.cutoff, value=row.value.value, low=row.value.low, high=row.value.high)
            for row in accuracy.rows
        ],
    )


def _rounded(values: np.ndarray) -> list[float]:
    """Five digits, which is more than a curve shows, and half the size of the file."""
    return [float(f"{value:.5g}") for value in values]


def of_trained(
    call: AuditCall, subject: Subject, images: Dataset, artefacts: Sequence[Confounded], positive: str
) -> AuditFrequencies:
    """A model that is trained already: spectra where there is a network, and its AUC under filters.

    Cost: 17 passes over the images for the filters; at most 256 of them three times forward and backward.
    """
    if subject.model is None:
        text = "can only be asked: at which frequencies it looks, and what is left of an artefact at its input, is not known."
        frequencies = ModelFrequencies(model=subject.name, notes=[f"{subject.name} {text}"])
    else:
        before = pretrained_start(call.model, subject.model, call.options, call.reporter)
        known = None if isinstance(before, str) else before
        sweep = FrequencySweep.of(images, np.arange(len(images)), call)
        frequencies = sweep.look(subject.name, subject.model, artefacts, known)
        if isinstance(before, str):
            frequencies = frequencies.model_copy(update={"notes": [*frequencies.notes, f"Before fine-tuning: {before}"]})
    try:
        bands = band_accuracy(subject, images, positive=positive, reporter=call.reporter)
    except DataError as error:
        notes = [*frequencies.notes, f"Frequencies were not taken away. {error}"]
        return AuditFrequencies(models=[frequencies.model_copy(update={"notes": notes})])
    return AuditFrequencies(models=[frequencies.model_copy(update={"bands": band_record(bands, positive)})])


def rank_risks(entries: Sequence[AuditEntry], models: Sequence[ModelFrequencies], *, seed: int) -> list[RiskRankRecord]:
    """For each artefact, Spearman's ρ of overlap and reliance over the models that can be assessed with it."""
    ranks: list[RiskRankRecord] = []
    for name in dict.fromkeys(each.confounder for model in models for each in model.artefacts):
        points = [point for model in models if (point := _risk_point(entries, model, name)) is not None]
        reasons = [each.reason for model in models for each in model.artefacts if each.confounder == name and each.reason]
        if not points and reasons:
            ranks.append(RiskRankRecord(confounder=name, points=[], spearman=None, p_value=None, reason=reasons[0]))
            continue
        rank = risk_rank([each.overlap for each in points], [each.reliance for each in points], seed=seed)
        ranks.append(
            RiskRankRecord(confounder=name, points=points, spearman=rank.spearman, p_value=rank.p_value, reason=rank.reason)
        )
    return ranks


def _risk_point(entries: Sequence[AuditEntry], model: ModelFrequencies, confounder: str) -> RiskPoint | None:
    """One model, where both numbers say something."""
    seen = next((each for each in model.artefacts if each.confounder == confounder and each.is_informative), None)
    entry = next(
        (
            each
            for each in entries
            if (each.model, each.confounder, each.mitigation) == (model.model, confounder, "erm") and each.is_assessable
        ),
        None,
    )
    reliance = None if entry is None else entry.metric("shortcut_reliance_index")
    if seen is None or seen.overlap is None or reliance is None or reliance.value is None:
        return None
    return RiskPoint(model=model.model, overlap=seen.overlap, reliance=reliance.value, low=reliance.low, high=reliance.high)


def frequency_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, curve and frequency: spectra, and AUC under filters with its interval; empty where nothing was asked."""
    rows: list[tuple[object, ...]] = []
    for model in [] if record.frequency is None else record.frequency.models:
        curves = [("images", "", model.images)]
        curves += [(f"{each.network} network", each.objective, each.psd or []) for each in model.priorities]
        curves += [("artefact", each.confounder, each.psd or []) for each in model.artefacts]
        rows += [
            (model.model, curve, name, frequency, value, None, None)
            for curve, name, values in curves
            for frequency, value in zip(model.frequencies, values, strict=False)  # a curve may be missing
        ]
        rows += [
            (model.model, f"tuned at share {row.share:g}", f"{each.confounder}, {each.objective}", frequency, value, None, None)
            for each in model.by_share
            for row in each.rows
            for frequency, value in zip(model.frequencies, row.psd, strict=True)
        ]
        rows += [
            (model.model, f"{point.kind}-pass", "auc", point.cutoff, point.value, point.low, point.high)
            for point in ([] if model.bands is None else model.bands.points)
        ]
    return pd.DataFrame(rows, columns=["model", "curve", "name", "cycles_per_pixel", "value", "low", "high"])
