"""From what an audit computed to what it records."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from crossgraft.audit.attribute_sweep import TrainedAttributeAudit
from crossgraft.audit.attributes import REMARK
from crossgraft.audit.confounded import Confounded
from crossgraft.audit.file_facts import FactRow
from crossgraft.audit.frequency import EditFrequencies, FrequencyAudit, NetworkPriority
from crossgraft.audit.group_metrics import GroupMetrics
from crossgraft.audit.outcomes import Concluded, Reach
from crossgraft.audit.record import (
    ArtefactFrequencies,
    AuditCell,
    AuditEntry,
    AuditMetric,
    AuditMode,
    AuditPoint,
    AuditRecord,
    BandPoint,
    BandRecord,
    ConfounderRecord,
    FileFactRow,
    ModelFrequencies,
    PriorityRecord,
    WhichNetwork,
)
from crossgraft.audit.result import Reliance, SharePoint
from crossgraft.audit.spectra import BandAccuracy, spectral_overlap
from crossgraft.audit.trained import TrainedAudit
from crossgraft.edit.edits import EditFacts
from crossgraft.metrics import MetricValue
from crossgraft.statistics import MeanInterval
from crossgraft.words.formatting import counted


def entries_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder and mitigation."""
    rows: list[dict[str, object]] = []
    for entry in record.entries:
        row: dict[str, object] = {
            "model": entry.model,
            "confounder": entry.confounder,
            "mitigation": entry.mitigation,
            "outcome": entry.outcome,
            "reason": entry.reason,
        }
        for metric in entry.metrics:
            row |= {metric.name: metric.value, f"{metric.name} low": metric.low, f"{metric.name} high": metric.high}
            if entry.mode != "trained" and metric.patients_low is not None:
                row |= {f"{metric.name} patients low": metric.patients_low}
                row |= {f"{metric.name} patients high": metric.patients_high}
        detected = None if entry.detectability is None else entry.detectability.value
        rows.append({**row, "detectability": detected, "input_rms": entry.input_rms})
    return pd.DataFrame(rows)


def curves_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder, mitigation and share."""
    return pd.DataFrame(
        [
            {
                "model": entry.model,
                "confounder": entry.confounder,
                "mitigation": entry.mitigation,
                "share": point.share,
                "realised": point.realised,
                **{
                    name: value
                    for metric in point.metrics
                    for name, value in (
                        (metric.name, metric.value),
                        (f"{metric.name} low", metric.low),
                        (f"{metric.name} high", metric.high),
                    )
                },
            }
            for entry in record.entries
            for point in entry.points
            if point.metrics
        ]
    )


def differences_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder and share; without a share, of the whole curve."""
    rows: list[dict[str, object]] = []
    for each in record.differences:
        named = {"model": each.model, "reference": each.reference, "confounder": each.confounder}
        summed, by_share = each.reliance, each.points
        ends = {"patients low": summed.patients_low, "patients high": summed.patients_high}
        rows.append({**named, "quantity": summed.name, "share": None, "difference": summed.value, **ends})
        for point in by_share:
            ends = {"patients low": point.ood.patients_low, "patients high": point.ood.patients_high}
            tests = {"p": point.p_value, "p holm": point.p_value_holm, "p floor": point.floor}
            found = {"quantity": "ood", "share": point.share, "difference": point.ood.value}
            rows.append({**named, **found, **ends, **tests})
    return pd.DataFrame(rows)


def frequencies_record(name: str, found: FrequencyAudit, network: WhichNetwork) -> ModelFrequencies:
    """Spectra of one model, what it looks at first, and artefacts beside it."""
    priorities = [_priority(found.priority, network)]
    if found.before is not None and found.after is not None:
        priorities.append(_priority(found.before, "pretrained"))
        if found.after is not found.priority:
            priorities.append(_priority(found.after, network))
    return ModelFrequencies(
        model=name,
        num_images=found.num_images,
        frequencies=_rounded(found.frequencies),
        images=_rounded(found.psd),
        priorities=priorities,
        artefacts=[_artefact(each, found) for each in found.edits],
    )


def _priority(found: NetworkPriority, network: WhichNetwork) -> PriorityRecord:
    psd = None if found.psd is None else _rounded(found.psd)
    return PriorityRecord(network=network, objective=found.objective, psd=psd, num_saturated=found.num_saturated)


def _artefact(each: EditFrequencies, found: FrequencyAudit) -> ArtefactFrequencies:
    beside = each.overlap
    return ArtefactFrequencies(
        confounder=each.edit,
        scope=each.scope,
        psd=None if each.psd is None else _rounded(each.psd),
        num_changed=each.num_changed,
        input_rms=each.rms,
        overlap=None if beside is None else beside.overlap,
        cosine=None if beside is None else beside.cosine,
        spearman=None if beside is None or math.isnan(beside.spearman) else beside.spearman,
        distance=None if beside is None else beside.distance,
        flat=None if beside is None else beside.flat,
        overlap_before=_overlap_with(each, found.before),
        overlap_after=_overlap_with(each, found.after),
        is_informative=each.is_informative,
        reason=each.reason,
    )


def _overlap_with(each: EditFrequencies, other: NetworkPriority | None) -> float | None:
    if other is None or other.psd is None or each.psd is None:
        return None
    return spectral_overlap(each.psd, other.psd).overlap


def band_record(found: BandAccuracy, positive: str) -> BandRecord:
    """A trained model under filters."""
    return BandRecord(
        positive=positive,
        chance=found.chance,
        clean=found.clean.value,
        clean_low=found.clean.low,
        clean_high=found.clean.high,
        points=[
            BandPoint(kind=row.kind, cutoff=row.cutoff, value=row.value.value, low=row.value.low, high=row.value.high)
            for row in found.rows
        ],
    )


def _rounded(values: np.ndarray) -> list[float]:
    """Five digits, which is more than a curve shows, and half the size of the file."""
    return [float(f"{value:.5g}") for value in values]


_BOUNDED = frozenset(
    {"clean_auc", "iid_auc", "ood_auc", "iid", "ood", "clean", "aligned", "worst_group_accuracy"}
    | {"worst_group_accuracy_by_val", "iid_micro_auc", "ood_micro_auc"}
)
"""Student's t knows nothing of 0 and 1."""
_GAPS = ("true_positive_gap", "false_positive_gap", "positive_gap")


def confounder_record(found: Confounded) -> ConfounderRecord:
    """What was put into images."""
    return edit_record(found.name, found.edit, found.facts)


def edit_record(name: str, edit: object, facts: EditFacts | None) -> ConfounderRecord:
    """What an edit is, and what it changed where it could be done."""
    first = (type(edit).__doc__ or "").strip().splitlines()
    return ConfounderRecord(
        confounder=name,
        title=str(getattr(edit, "title", name)),
        leaf=getattr(edit, "leaf", None),
        scope=getattr(edit, "scope", None),
        said=first[0] if first else "",
        rms=None if facts is None else facts.rms,
        share_changed=None if facts is None else facts.share_changed,
        psnr=None if facts is None or not np.isfinite(facts.psnr) else facts.psnr,
    )


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
    patients = reliance.over_patients
    metrics = [
        _over_folds("shortcut_reliance_index", reliance.shortcut_reliance_index, patients),
        _over_folds("ood_drop_area", reliance.ood_drop_area),
        _over_folds("early_gap", reliance.early_gap),
        AuditMetric(name="flip_share", value=reliance.flip_share),
        _over_folds("clean_auc", reliance.clean),
        _over_folds("iid_auc", last.iid),
        _over_folds("ood_auc", last.ood),
        *_flip_effects(last),
        _over_folds("worst_group_accuracy", last.worst),
        *(_mean_gap(name, last.groups) for name in _GAPS),
    ]
    return AuditEntry(
        model=model,
        confounder=confounder,
        mitigation=mitigation,
        mode=mode,
        outcome=concluded.outcome,
        reason=concluded.reason,
        metrics=metrics,
        points=[_point(point) for point in reliance.points],
        detectability=None if reach is None else _over_patients("detectability", reach.detectability.auc),
        input_rms=None if reach is None else reach.input_rms,
    )


def trained_entry(model: str, confounder: str, found: TrainedAudit, concluded: Concluded) -> AuditEntry:
    """One trained model and one confounder."""
    return AuditEntry(
        model=model,
        confounder=confounder,
        mode="trained",
        outcome=concluded.outcome,
        reason=concluded.reason,
        metrics=[
            _over_patients("auc_drop", found.drop),
            _over_patients("reverse_drop", found.reverse_drop),
            _over_patients("clean_auc", found.clean),
            _over_patients("aligned_auc", found.aligned),
            _over_patients("ood_auc", found.ood),
            _over_patients("both_auc", found.both),
            *_pulls(found),
            AuditMetric(name="flip_effect_positives", value=found.flip_effect_positives),
            AuditMetric(name="flip_effect_negatives", value=found.flip_effect_negatives),
            AuditMetric(name="changed_positives", value=found.decided_otherwise[0]),
            AuditMetric(name="changed_negatives", value=found.decided_otherwise[1]),
            _over_patients("worst_group_accuracy", found.groups.worst.accuracy),
            *(_mean_gap(name, [found.groups]) for name in _GAPS),
        ],
        points=[AuditPoint(share=1.0, realised=1.0, metrics=[], cells=_cells([found.groups]))],
        detectability=None if found.detectability is None else _over_patients("detectability", found.detectability.auc),
        input_rms=found.input_rms,
        start=found.start,
        shams=found.shams,
    )


def _pulls(found: TrainedAudit) -> list[AuditMetric]:
    """The pull, and what it was compared with."""
    pull = found.pull
    if pull is None:
        return []
    several = {"pull": pull.of_model, "pull_over_start": pull.over_start, "pull_over_shams": pull.over_shams}
    return [
        *(_over_patients(name, each) for name, each in several.items() if each is not None),
        AuditMetric(name="pull_positives", value=pull.of_positives),
        AuditMetric(name="pull_negatives", value=pull.of_negatives),
    ]


def trained_attribute_entry(model: str, attribute: str, found: TrainedAttributeAudit, concluded: Concluded) -> AuditEntry:
    """One trained model and one attribute."""
    return AuditEntry(
        model=model,
        confounder=attribute,
        mode="trained",
        outcome=concluded.outcome,
        reason=concluded.reason,
        metrics=[
            _over_patients("auc_drop", found.drop),
            _over_patients("overall_auc", found.overall),
            _over_patients("clean_auc", found.clean),
            _over_patients("aligned_auc", found.aligned),
            _over_patients("ood_auc", found.ood),
            _over_patients("both_auc", found.both),
            _over_patients("worst_group_accuracy", found.groups.worst.accuracy),
            *(_mean_gap(name, [found.groups]) for name in _GAPS),
        ],
        points=[AuditPoint(share=1.0, realised=1.0, metrics=[], cells=_cells([found.groups]))],
    )


def attribute_record(name: str, in_words: str, num_missing: int) -> ConfounderRecord:
    """An attribute of the images, which cannot be put into them."""
    missing = f" Of {counted(num_missing, 'image')} it is not known; they are left out." if num_missing else ""
    said = f"{in_words}.{missing} {REMARK}"
    return ConfounderRecord(confounder=name, title=in_words, leaf=None, scope="attribute", said=said)


def fact_record(row: FactRow) -> FileFactRow:
    """How well a fact of the file tells the class."""
    return FileFactRow(
        fact=row.fact,
        num_images=row.num_images,
        balanced_accuracy=_over_patients("balanced_accuracy", row.balanced_accuracy),
        auc=_over_patients("auc", row.auc),
    )


def impossible_entry(model: str, confounder: str, reason: str, *, mode: AuditMode) -> AuditEntry:
    """What could not be looked at, and why."""
    return AuditEntry(model=model, confounder=confounder, mode=mode, outcome="impossible", reason=reason, metrics=[])


def _point(point: SharePoint) -> AuditPoint:
    metrics = [
        _over_folds("iid", point.iid),
        _over_folds("ood", point.ood),
        _over_folds("clean", point.clean),
        _over_folds("aligned", point.aligned),
        _over_folds("worst_group_accuracy", point.worst),
        _over_folds("worst_group_accuracy_by_val", point.worst_by_val),
        *_flip_effects(point),
        *([] if point.best_epoch is None else [_over_folds("best_epoch", point.best_epoch)]),
        *(
            _over_folds(name, value)
            for name, value in zip(("iid_micro_auc", "ood_micro_auc"), point.micro_aucs or (), strict=False)
        ),
        *(_mean_gap(name, point.groups) for name in _GAPS),
    ]
    return AuditPoint(share=point.share, realised=point.realised, metrics=metrics, cells=_cells(point.groups))


def _flip_effects(point: SharePoint) -> list[AuditMetric]:
    """Flip effects of all images and of each class; none of an attribute."""
    if point.flip_effect is None or point.flip_effects is None:
        return []
    of_negatives, of_positives = point.flip_effects
    return [
        _over_folds("flip_effect", point.flip_effect),
        _over_folds("flip_effect_positives", of_positives),
        _over_folds("flip_effect_negatives", of_negatives),
    ]


def _cells(groups: Sequence[GroupMetrics]) -> list[AuditCell]:
    """The cells of the first fold, which all folds have, with accuracies that are means over the folds."""
    return [
        AuditCell(
            positive=first.positive,
            artefact=first.artefact,
            num_images=first.num_images,
            accuracy=float(np.mean([each.cells[place].accuracy.value for each in groups])),
            is_small=first.is_small,
        )
        for place, first in enumerate(groups[0].cells)
    ]


def _over_folds(name: str, found: MeanInterval, patients: MetricValue | None = None) -> AuditMetric:
    return AuditMetric(
        name=name,
        value=found.mean,
        low=found.low if found.low is None or name not in _BOUNDED else max(found.low, 0.0),
        high=found.high if found.high is None or name not in _BOUNDED else min(found.high, 1.0),
        patients_low=None if patients is None else patients.low,
        patients_high=None if patients is None else patients.high,
        no_interval_reason=found.reason or (patients.note if patients is not None and patients.low is None else None),
    )


def _over_patients(name: str, found: MetricValue) -> AuditMetric:
    return AuditMetric(
        name=name,
        value=found.value,
        low=found.low,
        high=found.high,
        patients_low=found.low,
        patients_high=found.high,
        no_interval_reason=found.note if found.low is None else None,
    )


def _mean_gap(name: str, groups: Sequence[GroupMetrics]) -> AuditMetric:
    values = [float(each) for group in groups if (each := getattr(group, name)) is not None]
    return AuditMetric(name=name, value=float(np.mean(values)) if values else None)
