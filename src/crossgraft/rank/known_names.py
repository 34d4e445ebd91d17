"""Which weights a known result is about, by the names of timm, torchvision or the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from crossgraft.models.spec import TORCHVISION_PREFIX
from crossgraft.rank.known_record import KnownResult
from crossgraft.rank.published.aliases import architecture_name, naming_table, timm_name
from crossgraft.rank.published.sources import thesis_datasets
from crossgraft.rank.published.tables import imagenet_results, published_table, published_tables

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
