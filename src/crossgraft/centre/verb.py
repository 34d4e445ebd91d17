"""``compare_centre``: how far networks of several tasks lie from the mean of their weights."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from crossgraft.centre.page import answer_in_words
from crossgraft.centre.record import CentredNetwork, CentreRecord
from crossgraft.compare import ComparedNetwork
from crossgraft.compare.compared import as_typed, open_model
from crossgraft.compare.options import CENTRE, CentreOptions, asks_for_centre
from crossgraft.compute import resolve_device
from crossgraft.errors import UsageError
from crossgraft.geometry import distances_to_centre
from crossgraft.geometry.parameter_distance import Network, ParameterDistance
from crossgraft.geometry.record import WeightDistance
from crossgraft.models import ModelSpec
from crossgraft.models.adapted import merged_copy
from crossgraft.models.adapters.insertion import why_not_mergeable
from crossgraft.models.classifier import Classifier
from crossgraft.models.trusted_code import NOTHING, trusted_code
from crossgraft.options._option import configuration
from crossgraft.records.base import Reference
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.verb import Run, verb

_TABLE_3 = Reference(
    key="Centre",
    text="Zu, Xie, Chen, Liang, Ma: Keeping Representation Similarity in Finetuning for Medical Image Analysis (arXiv "
    "2503.07399), Table 3.",
)
_FEWEST = 2
_WAYS = ("method", "regularizer")


@dataclass(frozen=True, eq=False, repr=False)
class CentreComparison(Result[CentreRecord]):
    """Networks around the mean of their weights: ``record`` holds every number."""

    def summary(self) -> str:
        """How far they lie from it."""
        return answer_in_words(self.record)

    @property
    def primary(self) -> Mapping[str, object]:
        """The mean distance."""
        return {"metric": "to_centre", "value": self.record.mean_to_centre}

    def to_frame(self) -> pd.DataFrame:
        """One row per network."""
        return pd.DataFrame(
            [
                {
                    **each.model_dump(include={"label", "name", "task"}),
                    "ways": " + ".join(each.ways),
                    **{f"to_centre_{name}": value for name, value in each.to_centre},
                    **({} if each.to_start is None else {f"to_start_{name}": value for name, value in each.to_start}),
                }
                for each in self.record.networks
            ]
        )


@verb("compare", CentreOptions)
def compare_centre(models: Sequence[Any], options: CentreOptions, run: Run) -> CentreComparison:
    """Measure how far networks lie from the mean of their weights: those of one method on several tasks.

    The nearer they are, the more a single set of weights has of all of them: what RepSim calls parameter centrality. Heads and
    statistics of BatchNorm are left out; LoRA counts as what it adds to the weights. No image is looked at.

    Args:
        models: Two or more of: run directories of ``crossgraft tune``, checkpoints, timm names, zoo entries, models of Python.
            All of one architecture.
        {options}

    Returns:
        Distances to the centre and, with ``before``, to the start; with ``out`` also ``report.html``, ``report.json``,
        ``centre.csv`` and ``run.json`` there.

    Raises:
        UsageError: There are fewer than two, they are not built alike, one is features on disk, one is given twice, or has
            adapters that cannot be a part of its weights.
        DataError: A weight is NaN or infinite.
        RunDirectoryError: A run has no single model (folds), or ``out`` is in use or holds another run.
        UnknownNameError: A model is not known; the message gives the nearest names.
        MissingWeightsError: Weights are not on this machine.

    Cost: reading the networks, and a pass over the weights of each.
    """
    began, device = time.perf_counter(), resolve_device(options.device)
    models = _listed(models)
    if options.geometry is not None and not asks_for_centre(options.geometry):
        raise UsageError("compare_centre measures centre alone; the other measures are those of compare_models.")
    if len(models) < _FEWEST:
        raise UsageError(f"A centre needs at least {_FEWEST} networks; there {'is one' if models else 'are none'}.")
    trusted = trusted_code(options.allow_code)
    for each in (*models, options.before):
        trusted = trusted.and_also(each.code if isinstance(each, ModelSpec) else NOTHING)

    def opened(given: Any, label: str) -> ComparedNetwork:
        network = open_model(given, label, options, trusted, device=device, reporter=run.reporter).model
        if not isinstance(network, ComparedNetwork):
            raise UsageError(f"{label} is features on disk, which have no weights. Give a run or a network.")
        return network

    labels = _labels(models)
    networks = {label: opened(each, label) for label, each in zip(labels, models, strict=True)}
    start = None if options.before is None else opened(options.before, "The start")
    _refuse_the_same(networks)
    typed = {
        **configuration(options),
        "models": labels,
        "before": None if options.before is None else as_typed(options.before),
        "geometry": CENTRE,
    }
    resolved = {"models": [each.weights_fingerprint for each in networks.values()]}
    resolved |= {} if start is None else {"start": start.weights_fingerprint}
    with run.directory("-".join(labels), typed=typed, resolved=resolved, out=options.out) as directory:
        found = distances_to_centre(
            {label: _whole(each, label) for label, each in networks.items()}, None if start is None else start.measured
        )
        record = CentreRecord(
            networks=[
                CentredNetwork(
                    label=label,
                    name=each.name,
                    task=None if each.saved is None else each.saved.facts.trained_on.name,
                    ways=[] if each.saved is None else [one.named for one in each.saved.facts.plugins if one.kind in _WAYS],
                    weights_fingerprint=each.weights_fingerprint,
                    start_fingerprint=each.start_fingerprint,
                    to_centre=_lengths(found.to_centre[label]),
                    to_start=None if start is None else _lengths(found.to_start[label]),
                )
                for label, each in networks.items()
            ],
            start=None if start is None else start.name,
            centre_to_start=None if found.centre_to_start is None else _lengths(found.centre_to_start),
            num_weights=next(iter(found.to_centre.values())).num_weights,
            notes=_notes(networks, start),
            references=[_TABLE_3],
            seconds=time.perf_counter() - began,
        )
        result = CentreComparison(record)
        if directory is None:
            return result
        directory.update(weights_fingerprints={label: each.weights_fingerprint for label, each in networks.items()})
        page = publish(directory, record, run.reporter, tables={"centre.csv": result.to_frame()})
        return replace(result, out=directory.path, report=page)


def _whole(network: ComparedNetwork, label: str) -> Network:
    """The network with its adapters as a part of its weights: factors of LoRA are no coordinates, other ones may give the same.

    Raises:
        UsageError: An adapter cannot be that.
    """
    whole = network.measured
    if not isinstance(whole, Classifier) or not whole.recipe.adapters:
        return whole
    if (why := why_not_mergeable(whole)) is not None:
        raise UsageError(f"{label} has adapters beside its weights, which have no place in a centre: {why}. Leave it out.")
    return merged_copy(whole)


def _lengths(distance: ParameterDistance) -> WeightDistance:
    """Without the number of weights, which is the same for all."""
    return WeightDistance(l2=distance.l2, rms=distance.rms, relative=distance.relative)


def _listed(models: Any) -> list[Any]:
    if isinstance(models, str):
        return [each.strip() for each in models.split(",")]
    return list(models) if isinstance(models, Sequence) else [models]


def _labels(models: Sequence[Any]) -> list[str]:
    """Names of folders or files, as short as tells them apart; of objects their place."""
    named = [str(each) if isinstance(each, str | Path) else f"network {place}" for place, each in enumerate(models, start=1)]
    short = [Path(name).name or name for name in named]
    return [one if Counter(short)[one] == 1 else name for one, name in zip(short, named, strict=True)]


def _refuse_the_same(networks: Mapping[str, ComparedNetwork]) -> None:
    by_weights: dict[str, str] = {}
    for label, each in networks.items():
        twin = by_weights.setdefault(each.weights_fingerprint, label)
        if twin != label:
            raise UsageError(f"{twin} and {label} have the same weights, so the centre would count them twice. Leave one out.")


def _notes(networks: Mapping[str, ComparedNetwork], start: ComparedNetwork | None) -> list[str]:
    """What makes distances hard to compare."""
    notes: list[str] = []
    starts = {each.start_fingerprint for each in networks.values() if each.saved is not None}
    if len(starts) > 1:
        notes.append("They were not fine-tuned from the same weights, so the distances are also those of their starts.")
    if start is not None and starts and start.weights_fingerprint not in starts:
        notes.append(f"{start.name} is not what they were fine-tuned from.")
    ways = {tuple(one.named for one in each.saved.facts.plugins if one.kind in _WAYS) for each in networks.values() if each.saved}
    if len(ways) > 1:
        notes.append("They were fine-tuned in several ways; the table of the paper has one centre for each way.")
    return notes
