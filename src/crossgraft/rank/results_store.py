"""What is known about models on other targets: the published tables that ship, and the user's own results."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from crossgraft.errors import DataError
from crossgraft.models.spec import TORCHVISION_PREFIX
from crossgraft.rank.published.tables import (
    COMPRESSED,
    PublishedTable,
    architecture_name,
    imagenet_results,
    naming_table,
    published_table,
    published_tables,
    table_of_sources,
    thesis_datasets,
    timm_name,
)
from crossgraft.rank.record import KnownResult
from crossgraft.running.json_lines import JsonLines, user_file
from crossgraft.running.line_index import IndexedLines, LineIndex
from crossgraft.types import History
from crossgraft.words.formatting import counted

THESIS, ITM = "thesis-architectures", "itm"


@cache
def full_name(name: str) -> str:
    """The name with the tag of the weights that timm takes for it; names that timm does not know stay.

    >>> full_name("resnet18"), full_name("resnet18.tv_in1k"), full_name("torchvision:resnet18"), full_name("mine")
    ('resnet18.a1_in1k', 'resnet18.tv_in1k', 'resnet18.tv_in1k', 'mine')
    """
    if name.startswith(TORCHVISION_PREFIX):
        twin = f"{name.removeprefix(TORCHVISION_PREFIX)}.tv_in1k"  # the same weights in timm
        return twin if twin in imagenet_results() else name
    if "." in name or "/" in name or name in imagenet_results():
        return name
    from timm.models import get_pretrained_cfg, is_model

    config = get_pretrained_cfg(name, allow_unregistered=True) if is_model(name) else None
    return f"{name}.{config.tag}" if config is not None and config.tag else name


def weights_of(row: KnownResult) -> str:
    """The weights of one known result, by the name that all tables share."""
    of_table = weights_of_identity(row.identity)
    if of_table is not None:
        return of_table
    if row.identity in _source_identities():  # another source makes a network that is no relative
        return f"resnet18-from-{row.source}"
    return full_name(row.model)


def weights_of_identity(identity: str) -> str | None:
    """The same by ``KnownResult.identity``; None where no shipped result has it.

    >>> weights_of_identity("vgg/imagenet"), weights_of_identity("mine/images")
    ('vgg11.tv_in1k', None)
    """
    return _shipped_names().get(identity)


def names_of(rows: Sequence[KnownResult]) -> dict[tuple[str, ...], str]:
    """The weights of each row, by its key."""
    return {row.key: weights_of(row) for row in rows}


def name_in_table(table: str, model: str) -> str:
    """The shared name of a network of a shipped table; one of its own where the publication leaves the weights open.

    >>> name_in_table("itm", "DINO-B16"), name_in_table("itm", "ResNet-18"), name_in_table("itm", "SimMIM-B16")
    ('vit_base_patch16_224.dino', 'resnet18.open-itm', 'SimMIM-B16')
    """
    known = timm_name(model, table=table)
    if known is not None:
        return full_name(known)
    architecture = architecture_name(model, table=table)
    return model if architecture is None else f"{architecture}.open-{naming_table(table)}"


@cache
def _shipped_names() -> Mapping[str, str]:
    """``KnownResult.identity`` of shipped rows → shared name."""
    thesis = {f"{model}/imagenet": name_in_table(THESIS, model) for model in published_table(THESIS).models}
    others = {
        f"{shown_name(table.name, model)}/as published": name_in_table(table.name, model)
        for table in published_tables()
        if table.name != THESIS
        for model in table.models
    }
    return {**thesis, **others}


@cache
def _source_identities() -> frozenset[str]:
    """``KnownResult.identity`` of one ResNet18 from each source."""
    return frozenset(f"resnet/{source}" for source in thesis_datasets().models)


def shown_name(table: str, model: str) -> str:
    """How a shipped row calls a network: by the weights where they are certain; as printed in ITM's and in open ones."""
    return model if table == ITM else timm_name(model, table=table) or model


# Known results: what fine-tuning gave, kept so that later rankings can start from it.
#
# One JSON line a result in a file of the user. No path and no patient id is stored: a target has a name and the fingerprint of
# its images.

FILE_NAME = "known_results.jsonl"
_LINES = JsonLines(KnownResult, "the known results", "a known result", key=lambda row: row.key)


def known_results_file(file: Path | None = None) -> Path:
    """``file``, else ``$CROSSGRAFT_CACHE/known_results.jsonl``, else the same name in the user's data folder."""
    return user_file(FILE_NAME) if file is None else file


def read_known_results(file: Path | None = None) -> list[KnownResult]:
    """Every result that was added, oldest first; none when the file is not there yet.

    Raises:
        DataError: A line is damaged or of a newer crossgraft; the message names file and line.
    """
    return _LINES.read(known_results_file(file))


def add_known_results(rows: Iterable[KnownResult], file: Path | None = None) -> int:
    """Add results; one with the same model, weights, source, target, protocol and metric replaces the older one.

    Args:
        rows: What fine-tuning gave.
        file: Another file than the user's.

    Returns:
        How many results the file holds now.

    Raises:
        DataError: A value is not finite, or the file is damaged (nothing is written then).
        StorageError: The file could not be written, or another process holds it for a minute; the old file stays.
    """
    new = list(rows)
    for row in new:
        if not math.isfinite(row.value):
            raise DataError(f"The result of {row.model} on {row.target} is {row.value}; it must be a finite number.")
    return len(_LINES.add(new, known_results_file(file)))


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
    sources, architectures, itm = table_of_sources(), published_table(THESIS), published_table(ITM)
    rows = _rows(sources, [("resnet", source) for source in sources.models])
    rows += _rows(architectures, [(model, "imagenet") for model in architectures.models])
    others = [table for table in published_tables() if table.name.startswith(COMPRESSED)]
    for table in [itm, *others]:
        rows += _rows(table, [(shown_name(table.name, model), "as published") for model in table.models])
    # ResNet18 from ImageNet stands in both tables of the thesis, with the same results.
    return tuple({row.key: row for row in rows}.values())


_SHOWN = ("model", "from", "target", "metric", "value", "interval", "method", "source")
_COLUMNS = ("key", "identity", "weights", "group", *_SHOWN)


def _texts(row: KnownResult) -> tuple[str, ...]:
    """What an index holds of a result: what it is looked up by, and the cells of its line in a list."""
    key = hashlib.blake2b(repr(row.key).encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
    return (key, row.identity, row.weights, row.target_group, *_line(row).values())


_INDEX = LineIndex(_LINES, _COLUMNS, _texts)


@dataclass(frozen=True, eq=False)
class KnownResults(Sequence[KnownResult]):
    """Own results, newest first, then shipped ones; an own one replaces a shipped one of equal model, target and protocol.

    An own one is read from its line when it is asked for, so that looking up a few among 100 000 takes no longer than a glance.

    Attributes:
        own: The user's results, oldest first.
        places: Places in ``own`` of those that count, in order.
        shipped: Those of the shipped tables.
    """

    own: IndexedLines[KnownResult]
    places: Sequence[int]
    shipped: Sequence[KnownResult]

    def __len__(self) -> int:
        return len(self.places) + len(self.shipped)

    @overload
    def __getitem__(self, place: int) -> KnownResult: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[KnownResult]: ...

    def __getitem__(self, place: int | slice) -> KnownResult | Sequence[KnownResult]:
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        number = range(len(self))[place]
        own = len(self.places)
        return self.own.record(self.places[number]) if number < own else self.shipped[number - own]

    @property
    def identities(self) -> set[str]:
        """``KnownResult.identity`` of all."""
        return {*self.own.columns["identity"], *(row.identity for row in self.shipped)}

    @property
    def targets(self) -> list[tuple[str, str]]:
        """As of ``targets_of``."""
        names, groups = self.own.columns["target"], self.own.columns["group"]
        own = [(names[place], groups[place] or names[place]) for place in self.places]
        return list(dict.fromkeys([*own, *targets_of(self.shipped)]))

    def about(self, models: Sequence[KnownModel]) -> list[KnownResult]:
        """Results of some models, and all own ones that say nothing of weights, in the order of the results."""
        weights = {PUBLISHED_WEIGHTS, *(model.weights_fingerprint for model in models)}
        identities = {model.identity for model in models}
        by_weights, by_identity = self.own.columns["weights"], self.own.columns["identity"]
        own = [place for place in self.places if by_weights[place] in weights or by_identity[place] in identities]
        return [*map(self.own.record, own), *self.shipped]


def known_results(file: Path | None = None) -> KnownResults:
    """Own results, newest first, then shipped ones; an own one replaces a shipped one of equal model, target and protocol.

    Raises:
        DataError: A line of the user's file is damaged or of a newer crossgraft; the message names file and line.
    """
    own = _INDEX.read(known_results_file(file))
    keys = own.columns["key"]
    newest_first = {keys[place]: place for place in reversed(range(len(keys)))}
    shipped = [row for row, key in _published_keys() if key not in newest_first]
    return KnownResults(own, list(newest_first.values()), shipped)


def results_at_hand(rows: Sequence[KnownResult]) -> KnownResults:
    """Known results that stand in no file of the user."""
    return KnownResults(IndexedLines({name: [] for name in _COLUMNS}, KnownResult, b""), [], rows)


def targets_of(rows: Iterable[KnownResult]) -> list[tuple[str, str]]:
    """Each target with its group (the target itself where it has none), in the order of the results."""
    return list(dict.fromkeys((row.target, row.target_group or row.target) for row in rows))


@cache
def _published_keys() -> list[tuple[KnownResult, str]]:
    return [(row, _texts(row)[0]) for row in published_results()]


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
        same = without_target in (row.target, group) or (fingerprint is not None and row.target_fingerprint == fingerprint)
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
        [origin for origin in of_kept if any(place in origins[k].get(origin, ()) for k in kept)] for place in range(len(models))
    ]
    return KnownTable(targets, groups, results, of_kept, spoke)


def _rows(table: PublishedTable, names: Sequence[tuple[str, str]]) -> list[KnownResult]:
    """One row per cell; ``names`` are model and source of each column."""
    return [
        KnownResult(
            model=model,
            weights=PUBLISHED_WEIGHTS,
            source=source,
            target=target,
            target_group=group,
            protocol=table.protocol,
            metric=table.metric,
            value=float(table.results[t, m]),
            origin=table.origin,
        )
        for t, (target, group) in enumerate(zip(table.targets, table.groups, strict=True))
        for m, (model, source) in enumerate(names)
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


def known_lines(only_model: str | None, only_target: str | None, only_from: str | None) -> list[dict[str, object]]:
    """Own results, newest first, then each publication on one line; with a filter, every result that fits it.

    Args:
        only_model: Text in the name of the model, whatever its case.
        only_target: In that of the target, or of its group.
        only_from: In that of the publication or command.
    """
    known = known_results()
    own = {name: known.own.columns[name] for name in (*_SHOWN, "weights", "group")}
    shipped = [*known.shipped, *_imagenet()]
    if only_model is None and only_target is None and only_from is None:
        unpublished = [place for place in known.places if own["weights"][place] != PUBLISHED_WEIGHTS]
        published = [known.own.record(place) for place in known.places if own["weights"][place] == PUBLISHED_WEIGHTS]
        return [*_own_lines(known, unpublished), *_publications([*published, *shipped])]
    chosen = [
        place
        for place in known.places
        if _holds(only_model, own["model"][place])
        and _holds(only_target, own["target"][place], own["group"][place])
        and _holds(only_from, own["from"][place])
    ]
    of_shipped = (
        _line(row)
        for row in shipped
        if _holds(only_model, row.model) and _holds(only_target, row.target, row.target_group) and _holds(only_from, row.origin)
    )
    return [*_own_lines(known, chosen), *map(dict[str, object], of_shipped)]


def _own_lines(known: KnownResults, places: Sequence[int]) -> list[dict[str, object]]:
    """Lines of own results by their places in the file."""
    shown = [known.own.columns[name] for name in _SHOWN]
    cells = zip(*([column[place] for place in places] for column in shown), strict=True)
    return [dict(zip(_SHOWN, line, strict=True)) for line in cells]


def _imagenet() -> list[KnownResult]:
    """ImageNet top-1, from which networks that no table knows have their prior."""
    return [
        KnownResult(
            model=result.model,
            weights=PUBLISHED_WEIGHTS,
            source="as published",
            target="ImageNet",
            protocol="as pretrained",
            metric="accuracy",
            value=result.top1_percent / 100,
            origin="torchvision" if result.model.startswith(TORCHVISION_PREFIX) else "timm",
        )
        for result in imagenet_results().values()
    ]


def _holds(text: str | None, *names: str) -> bool:
    return text is None or any(text.lower() in name.lower() for name in names)


def _line(row: KnownResult) -> dict[str, str]:
    return {
        "model": row.model,
        "from": row.origin,
        "target": row.target,
        "metric": row.metric,
        "value": f"{row.value:.4f}",
        "interval": "" if row.low is None or row.high is None else f"[{row.low:.4f}, {row.high:.4f}]",
        "method": row.method,
        "source": row.source,
    }


def _publications(rows: Sequence[KnownResult]) -> list[dict[str, object]]:
    tables: dict[tuple[str, str, str], list[KnownResult]] = {}
    for row in rows:
        tables.setdefault((row.origin, row.protocol, row.metric), []).append(row)
    return [
        {
            "model": counted(len({row.identity for row in members}), "model"),
            "from": origin,
            "target": members[0].target
            if len(targets := {row.target for row in members}) == 1
            else counted(len(targets), "target"),
            "metric": metric,
            "value": counted(len(members), "result"),
            "interval": "",
            "method": members[0].method,
            "source": counted(len(sources), "source")
            if len(sources := {row.source for row in members}) > 1
            else members[0].source,
        }
        for (origin, _, metric), members in tables.items()
    ]
