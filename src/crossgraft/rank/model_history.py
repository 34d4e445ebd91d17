"""What is known of the models of a zoo from other targets: which rows of the results store are about them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache

from crossgraft.data import Dataset
from crossgraft.errors import DataError, UnknownNameError
from crossgraft.models import ModelSpec
from crossgraft.models.record import ModelRecord
from crossgraft.models.spec import PRETRAINED, TORCHVISION_PREFIX
from crossgraft.progress import Reporter
from crossgraft.rank.published.tables import COMPRESSED, TARGETS, compressed, shipped, weights_called
from crossgraft.rank.results_store import (
    PUBLISHED_WEIGHTS,
    KnownModel,
    KnownResults,
    KnownTable,
    full_name,
    known_results,
    one_metric,
    published_results,
    results_at_hand,
    results_of,
    weights_of_identity,
)
from crossgraft.records.base import CheckRecord
from crossgraft.running.unattended import is_unattended

_PREFIXES: Mapping[str, str] = {**TARGETS, "chestmnist": "Chest"}
"""How names of data begin that are of a target of MedMNIST (``bloodmnist_64``)."""
_TORCHVISION_TAG = "tv_in1k"
"""timm's tag of the weights that torchvision calls IMAGENET1K_V1."""


def find_history(models: Sequence[ModelRecord], specs: Sequence[ModelSpec], dataset: Dataset, known: KnownResults) -> KnownTable:
    """Results of ``models`` on other targets; those on the target at hand, or on a related one, are left out.

    Own results are found by the fingerprint of the weights, published ones by what the zoo says (``known_as``), or by the
    weights themselves where the publication names them: those of torchvision.
    """
    by_name = {spec.name: spec for spec in specs}
    wanted = [
        KnownModel(
            by_name[model.name].known_as or published_identity(by_name[model.name]),
            model.weights_fingerprint,
            published_name(by_name[model.name]),
        )
        for model in models
    ]
    rows = known.about(wanted)
    own = [row for row in rows if row.weights != PUBLISHED_WEIGHTS]
    shipped = one_metric([row for row in rows if row.weights == PUBLISHED_WEIGHTS])
    return results_of(
        wanted, [*own, *shipped], without_target=group_of_target(dataset.name, known.targets), fingerprint=dataset.fingerprint
    )


def look_up_known_results(specs: Sequence[ModelSpec], reporter: Reporter) -> tuple[KnownResults, list[CheckRecord]]:
    """Own and shipped results, which are a control of the ranking: where the own ones are damaged it does without them.

    A job of a study has the shipped ones alone: with those that jobs beside it add, an order would depend on which ended first.

    Returns:
        The results, and what the report says of damage.

    Raises:
        UnknownNameError: No result has the name that a model of the zoo is ``known_as``.
    """
    published = results_at_hand(published_results())
    try:
        known = known_results()
    except DataError as error:
        text = f"{error} The ranking does without your own results; the same command looks at them again."
        reporter.warn(text)
        return published, [CheckRecord(title="Known results not read", severity="warning", text=text)]
    check_known_names(specs, known.identities)
    return published if is_unattended() else known, []


def check_known_names(specs: Sequence[ModelSpec], known: Collection[str]) -> None:
    """Check, before the long work, that there is a known result of every ``known_as``.

    Args:
        specs: The zoo.
        known: ``KnownResult.identity`` of all results.

    Raises:
        UnknownNameError: With the nearest names.
        DataError: Published tables mean different weights by it; the message names them.
    """
    for spec in specs:
        if spec.known_as is not None and spec.known_as not in known and weights_called(spec.known_as) is None:
            raise UnknownNameError(f"known result (known_as of {spec.name})", spec.known_as, sorted(known))


def published_identity(spec: ModelSpec) -> str | None:
    """How the shipped tables call these weights; None if they do not speak of them.

    >>> published_identity(ModelSpec("a", "torchvision:resnet18")), published_identity(ModelSpec("a", "resnet18.tv_in1k"))
    ('resnet/imagenet', 'resnet/imagenet')
    >>> published_identity(ModelSpec("a", "resnet18.a1_in1k"))
    """
    if spec.weights not in (None, PRETRAINED):
        return None
    name, _, tag = spec.source.partition(".")
    if spec.source.startswith(TORCHVISION_PREFIX):
        column = _torchvision_columns().get(spec.source.removeprefix(TORCHVISION_PREFIX))
    else:
        column = _torchvision_columns().get(name) if tag == _TORCHVISION_TAG else None
    return None if column is None else f"{column}/imagenet"


def published_name(spec: ModelSpec) -> str | None:
    """The full name of a spec's weights, by which published tables are found.

    None for weights from a file, unless they are ``known_as`` a shipped result.

    >>> published_name(ModelSpec("a", "torchvision:resnet18")), published_name(ModelSpec("a", "convnext_tiny.fb_in1k"))
    ('resnet18.tv_in1k', 'convnext_tiny.fb_in1k')
    >>> published_name(ModelSpec("a", "resnet18", weights="mine.safetensors"))
    """
    if spec.known_as is not None:
        return weights_of_identity(spec.known_as)
    if spec.weights not in (None, PRETRAINED) or spec.is_factory:
        return None
    return full_name(spec.source)


def group_of_target(name: str, targets: Sequence[tuple[str, str]]) -> str | None:
    """The group of the known target that data called ``name`` are; None if there is none.

    Args:
        name: Name of the data.
        targets: Known targets, each with its group.

    >>> targets = [("OrganA", "Organ"), ("Birds 2", "Birds 2")]
    >>> group_of_target("organamnist_64", targets), group_of_target("OrganA", targets), group_of_target("cars", targets)
    ('Organ', 'Organ', None)
    """
    wanted = _plain(name)
    for target, group in targets:
        aliases = [_plain(alias) for alias, known in _PREFIXES.items() if known == target]
        same = wanted in (_plain(target), *printed_names().get(target, ()))
        if same or any(wanted.startswith(alias) for alias in aliases):
            return group
    return None


@cache
def printed_names() -> Mapping[str, tuple[str, ...]]:
    """A target of the shipped tables → how publications write it (``oxford_flowers102``), in plain letters."""
    spellings: dict[str, dict[str, None]] = {}
    for name in COMPRESSED:
        document = compressed(name)
        for target, printed in zip(document["targets"], document["names_in_source"], strict=True):
            spellings.setdefault(target, {})[_plain(printed)] = None
    return {target: tuple(names) for target, names in spellings.items()}


def _torchvision_columns() -> Mapping[str, str]:
    """An architecture's name in torchvision → its column in Table 6.3."""
    tables = shipped("thesis")
    return dict(zip(tables["settings"]["model"]["architectures"], tables["model"]["sources"], strict=True))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
