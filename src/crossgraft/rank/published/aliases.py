"""Names that papers print, and the weights that they mean by the names of timm, torchvision or the Hugging Face hub.

``data/names.json`` has one entry a table, which says why a name means these weights. A name whose weights the publication leaves
open is no alias: it stays with its architecture, so its results speak of relatives only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from crossgraft.errors import DataError
from crossgraft.rank.published.sources import shipped


class Names(NamedTuple):
    """Names of one table.

    Attributes:
        why: Reason for which these names mean these weights.
        certain: Printed name → full name of the weights.
        architecture: Printed name → architecture, where the publication leaves the weights open.
    """

    why: str
    certain: Mapping[str, str]
    architecture: Mapping[str, str]


_SAME = {"dart": "tmlr", "medmnistplus_accuracy": "medmnistplus", "medmnistplus_auc": "medmnistplus"}
"""Tables that use the names of another."""


@cache
def printed_names() -> Mapping[str, Names]:
    """Table → its names."""
    return {table: Names(**names) for table, names in shipped("names").items()}


def timm_name(name: str, *, table: str) -> str | None:
    """The weights that ``table`` means by ``name``; a hub name means itself, and an open one has none."""
    names = printed_names()[naming_table(table)]
    return names.certain.get(name) or (
        name if "/" in name and table == "shift" and name not in names.architecture else None
    )


def naming_table(table: str) -> str:
    """The table whose names ``table`` uses: publications of one group of authors, or of two metrics, share theirs."""
    return _SAME.get(table, table)


def architecture_name(name: str, *, table: str) -> str | None:
    """The architecture of a name whose weights ``table`` leaves open."""
    return printed_names()[naming_table(table)].architecture.get(name)


def weights_called(name: str) -> str | None:
    """The weights that a printed name means, whichever table prints it; None where no table does.

    Raises:
        DataError: Two tables mean different weights by it, or one leaves them open; the message names the tables.

    >>> weights_called("EfficientNet-B4"), weights_called("resnet34"), weights_called("anything")
    ('efficientnet_b4.ra2_in1k', 'resnet34.tv_in1k', None)
    """
    meanings: dict[str, list[str]] = {}
    for table, names in printed_names().items():
        if name in names.certain:
            meanings.setdefault(names.certain[name], []).append(table)
        elif name in names.architecture:
            meanings.setdefault(f"{names.architecture[name]} with weights that are not said", []).append(table)
    if len(meanings) > 1 or any(" " in meaning for meaning in meanings):
        said = " and ".join(f"{' and '.join(tables)} means {meaning}" for meaning, tables in meanings.items())
        raise DataError(f"{name} is ambiguous: {said}. Write the full name of the weights, as timm or torchvision do.")
    return next(iter(meanings), None)
