"""Names under which people know published networks, and what each stands for: a table, with licence and gate."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class PublishedName:
    """One row of the table. What it says of a licence is a hint of 2026; the model card decides.

    Attributes:
        name: What people type.
        source: What it stands for, in the form of its library.
        trained_on: Images of the pretraining, in a word or two.
        licence: Licence of the weights.
        licence_from: Where that was read: ``timm``, the ``package``, the ``card``, or ``not checked``.
        gated: Whether its terms have to be accepted on the hub first.
        commercial: ``yes``, ``no`` or ``on its terms``.
        arguments: Arguments of the architecture, where the card gives more than ``config.json`` does.
    """

    name: str
    source: str
    trained_on: str
    licence: str
    licence_from: str
    gated: bool
    commercial: str
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@cache
def published_names() -> Mapping[str, PublishedName]:
    """All of them, by name."""
    text = resources.files("crossgraft.models").joinpath("published_names.csv").read_text(encoding="utf-8")
    return {
        row["name"]: PublishedName(
            name=row["name"],
            source=row["source"],
            trained_on=row["trained_on"],
            licence=row["licence"],
            licence_from=row["licence_from"],
            gated=row["gated"] == "yes",
            commercial=row["commercial"],
            arguments=json.loads(row["arguments"] or "{}"),
        )
        for row in csv.DictReader(text.splitlines())
    }


def terms_in_words(source: str) -> str | None:
    """What has to be known before the weights are fetched; None where nothing is known of this source.

    >>> terms_in_words("hf-hub:MahmoodLab/UNI")
    'Its licence is cc-by-nc-nd-4.0: no commercial use. Its terms have to be accepted on the hub first.'
    """
    known = next((each for each in published_names().values() if each.source == source), None)
    if known is None:
        return None
    use = {"yes": "", "no": ": no commercial use", "on its terms": ", which has terms of its own"}[known.commercial]
    gate = " Its terms have to be accepted on the hub first." if known.gated else ""
    return f"Its licence is {known.licence}{use}.{gate}"
