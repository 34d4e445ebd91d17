"""Learning priority after fine-tunings on more and more images with an artefact, beside that before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.audit.frequency import outputs_of
from crossgraft.audit.learning_priority import Objective, network_priority, prepared_batches
from crossgraft.audit.record import AuditMetric, PriorityByShare, PriorityRow
from crossgraft.audit.spectra import spectral_overlap
from crossgraft.data import Dataset
from crossgraft.progress import Reporter
from crossgraft.statistics import mean_interval
from crossgraft.tune.saving.saved_model import SavedModel

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
