"""From frequencies that were computed to what an audit records of them."""

from __future__ import annotations

import math

import numpy as np

from crossgraft.audit.band_accuracy import BandAccuracy
from crossgraft.audit.frequency import EditFrequencies, FrequencyAudit, NetworkPriority
from crossgraft.audit.frequency_record import (
    ArtefactFrequencies,
    BandPoint,
    BandRecord,
    ModelFrequencies,
    PriorityRecord,
    WhichNetwork,
)
from crossgraft.audit.spectral_overlap import spectral_overlap


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
