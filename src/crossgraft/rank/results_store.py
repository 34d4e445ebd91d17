"""What is known about models on other targets: the published tables that ship, and the user's own results."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from crossgraft.rank.known_names import weights_of
from crossgraft.rank.known_record import KnownResult
from crossgraft.rank.published.aliases import timm_name
from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.sources import itm_benchmark, thesis_architectures, thesis_datasets
from crossgraft.rank.published.tables import COMPRESSED, ITM_PROTOCOL, THESIS_PROTOCOL, PublishedTable, published_tables
from crossgraft.rank.results_file import read_known_results
from crossgraft.types import History

PUBLISHED_WEIGHTS = "as published"
"""``KnownResult.weights`` of a shipped row: known by the name alone."""


class KnownModel(NamedTuple):
    """One model as rows of the store may speak of it.

    Attributes:
        identity: ``KnownResult.identity``.
        weights_fingerprint: Fingerprint of its weights.
        name: Full name of its weights in timm, torchvision or the hub, by which published tables are found.
    """

    identity: str | None = None
    weights_fingerprint: str | None = None
    name: str | None = None

    def is_meant_by(self, row: KnownResult) -> bool:
        """Whether ``row`` is about this model."""
        by_weights = self.weights_fingerprint is not None and row.weights == self.weights_fingerprint
        by_name = self.name is not None and row.weights == PUBLISHED_WEIGHTS and weights_of(row) == self.name
        return by_weights or by_name or (self.identity is not None and row.identity == self.identity)


class KnownTable(NamedTuple):
    """Results of some models on other targets, ready for ``static_prior`` and ``aggregate``."""

    targets: list[str]
    groups: list[str]
    results: History
    origins: list[str]
    spoke: Sequence[list[str]] = ()
    """Who measured each model."""


@cache
def published_results() -> tuple[KnownResult, ...]:
    """The shipped tables as rows of the store: final results of models, and of sources of one model."""
    datasets = _rows(thesis_datasets(), "auc", THESIS_PROTOCOL, "thesis, Table 6.4", one_model="resnet")
    architectures = _rows(thesis_architectures(), "auc", THESIS_PROTOCOL, "thesis, Table 6.5", one_source="imagenet")
    itm = _rows(itm_benchmark(), "accuracy", ITM_PROTOCOL, "ITM, Table 3", scale=0.01)
    others = [row for table in published_tables() if table.name.startswith(COMPRESSED) for row in _rows_of_table(table)]
    # ResNet18 from ImageNet stands in both tables of the thesis, with the same results.
    return tuple({row.key: row for row in [*datasets, *architectures, *itm, *others]}.values())


def known_results(file: Path | None = None) -> list[KnownResult]:
    """Own results, newest first, then shipped ones; an own one replaces a shipped one of equal model, target and protocol."""
    own = {row.key: row for row in reversed(read_known_results(file))}
    return [*own.values(), *(row for row in published_results() if row.key not in own)]


def results_of(
    models: Sequence[str | KnownModel],
    rows: Sequence[KnownResult],
    *,
    without_target: str | None = None,
    fingerprint: str | None = None,
) -> KnownTable:
    """Results of ``models`` on other targets.

    Only results of one protocol and metric are comparable, so each (target, protocol, metric) is a row of its own; rows with
    fewer than two of the models say nothing about their order and are left out. Targets with fingerprints are told apart by
    them, because two data sets may have one name (``train.csv``).

    Args:
        models: Names as ``KnownResult.identity`` writes them, or ``KnownModel``.
        rows: Rows of the store.
        without_target: Name (or group) of the target at hand, which must not tell about itself.
        fingerprint: Fingerprint of the images at hand; results on the same images are left out too.
    """
    wanted = [model if isinstance(model, KnownModel) else KnownModel(model) for model in models]
    table: dict[tuple[str, str, str], tuple[str, str, np.ndarray]] = {}
    origins: dict[tuple[str, str, str], dict[str, set[int]]] = {}
    for row in rows:
        group = row.target_group or row.target
        same = without_target in (row.target, group) or (
            fingerprint is not None and row.target_fingerprint == fingerprint
        )
        places = [place for place, model in enumerate(wanted) if model.is_meant_by(row)]
        if not places or (same and (without_target or fingerprint)):
            continue
        key = (row.target_fingerprint or row.target, row.protocol, row.metric)
        _, _, values = table.setdefault(key, (row.target, group, np.full(len(models), np.nan)))
        values[places] = row.value
        origins.setdefault(key, {}).setdefault(row.origin, set()).update(places)
    kept = {key: entry for key, entry in table.items() if np.isfinite(entry[-1]).sum() >= 2}
    results = np.array([values for _, _, values in kept.values()]).reshape(len(kept), len(models))
    of_kept = list(dict.fromkeys(origin for key in kept for origin in origins[key]))
    targets, groups = [target for target, _, _ in kept.values()], [group for _, group, _ in kept.values()]
    spoke = [
        [origin for origin in of_kept if any(place in origins[k].get(origin, ()) for k in kept)]
        for place in range(len(models))
    ]
    return KnownTable(targets, groups, results, of_kept, spoke)


def _rows(
    benchmark: Benchmark,
    metric: str,
    protocol: str,
    origin: str,
    *,
    one_model: str | None = None,
    one_source: str | None = None,
    scale: float = 1.0,
) -> list[KnownResult]:
    """One row per cell; the columns of a benchmark are models, or sources of ``one_model``."""
    return [
        KnownResult(
            model=one_model or name,
            weights=PUBLISHED_WEIGHTS,
            source=one_source or (name if one_model else "as published"),
            target=target,
            target_group=group,
            protocol=protocol,
            metric=metric,
            value=float(benchmark.results[t, m]) * scale,
            origin=origin,
        )
        for t, (target, group) in enumerate(zip(benchmark.targets, benchmark.groups, strict=True))
        for m, name in enumerate(benchmark.models)
        if np.isfinite(benchmark.results[t, m])
    ]


def _rows_of_table(table: PublishedTable) -> list[KnownResult]:
    """One row per cell, called by the weights that the alias table gives; as printed where those are left open."""
    names = [timm_name(model, table=table.name) or model for model in table.models]
    return [
        KnownResult(
            model=name,
            weights=PUBLISHED_WEIGHTS,
            source="as published",
            target=target,
            target_group=group,
            protocol=table.protocol,
            metric=table.metric,
            value=float(table.results[t, m]),
            origin=table.origin,
        )
        for t, (target, group) in enumerate(zip(table.targets, table.groups, strict=True))
        for m, name in enumerate(names)
        if np.isfinite(table.results[t, m])
    ]


def one_metric(rows: Sequence[KnownResult], metric: str | None = None) -> list[KnownResult]:
    """Rows in one metric of each publication: the metric asked for, else its first; so a target counts once."""
    chosen: dict[tuple[str, str], str] = {}
    for row in rows:
        key = (row.origin, row.protocol)
        if key not in chosen or row.metric == metric:
            chosen[key] = row.metric
    return [row for row in rows if row.metric == chosen[row.origin, row.protocol]]
