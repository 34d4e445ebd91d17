"""Names under which people know published networks, and what each stands for: a table, with licence and gate."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class PublishedName:
    """One row of the table. What it says of a licence is a hint of 2026; the model card decides.

    Attributes:
        name: What people type.
        source: What it stands for, in the form of its library.
        trained_on: Images of the pretraining, in a word or two.
        licence: Licence of the weights.
        licence_from: Where that was read: ``timm``, the ``package``, the ``card``, another source by name, or ``not checked``.
        gated: Whether its terms have to be accepted on the hub first.
        commercial: ``yes``, ``no`` or ``on its terms``.
        tried: What the tests of this package, or whoever wrote the row, have run of it; weights of the hub never.
        arguments: Arguments of the architecture, where the card gives more than ``config.json`` does.
    """

    name: str
    source: str
    trained_on: str
    licence: str
    licence_from: str
    gated: bool
    commercial: str
    tried: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@cache
def published_names() -> Mapping[str, PublishedName]:
    """All of them, by name."""
    text = resources.files("crossgraft.models").joinpath("published_names.csv").read_text(encoding="utf-8")
    rows: list[dict[str, Any]] = [
        {**row, "gated": row["gated"] == "yes", "arguments": json.loads(row["arguments"] or "{}")}
        for row in csv.DictReader(text.splitlines())
    ]
    return {row["name"]: PublishedName(**row) for row in rows}


_NO = "not for commercial use"
_ITS_OWN = "has terms of its own, which decide about commercial use"
_NOT_COMMERCIAL = re.compile(r"(^|[-_ ])(nc|non-?commercial|research-only)($|[-_ ])", re.IGNORECASE)


def licence_in_words(licence: str | None, model: str) -> str:
    """The licence of a model's weights, and in words if it forbids or limits commercial use.

    Args:
        licence: As the library, the header or the zoo file says it.
        model: Name of the model, which may be one of the table.

    >>> licence_in_words("cc-by-nc-4.0", "convnextv2_nano")
    'cc-by-nc-4.0: not for commercial use'
    >>> licence_in_words("apache-2.0", "resnet18"), licence_in_words(None, "mine")
    ('apache-2.0', 'not stated')
    """
    if licence is None:
        return "not stated"
    rows = published_names().values()
    commercial = {each.commercial for each in rows if each.licence == licence and model in (each.name, each.source)}
    commercial = commercial or {each.commercial for each in rows if each.licence == licence}
    if _NOT_COMMERCIAL.search(licence) or commercial == {"no"}:
        return f"{licence}: {_NO}"
    return f"{licence}: {_ITS_OWN}" if commercial == {"on its terms"} else licence


def terms_in_words(source: str) -> str | None:
    """What has to be known before the weights are fetched; None where nothing is known of this source.

    >>> terms_in_words("hf-hub:MahmoodLab/UNI")
    'Its licence is cc-by-nc-nd-4.0: not for commercial use. Its terms have to be accepted on the hub first.'
    """
    known = next((each for each in published_names().values() if each.source == source), None)
    if known is None:
        return None
    gate = " Its terms have to be accepted on the hub first." if known.gated else ""
    return f"Its licence is {licence_in_words(known.licence, known.name)}.{gate}"
