"""What edits there are: confounders by their place in MICCAT, and edits that take cues away."""

from __future__ import annotations

from typing import Any, NamedTuple

from crossgraft.choice import option_fields
from crossgraft.edit.confounders import CONFOUNDERS
from crossgraft.edit.edits import SOURCE_EDITS

ELSEWHERE = "takes cues away"
_LEAVES = ("demographic", "anatomical", "external", "imaging")


class PlacedEdit(NamedTuple):
    """An edit and where it belongs.

    Attributes:
        place: ``environment › external`` and so on.
        scope: What it touches.
        name: Name of the edit.
        edit: Its class.
    """

    place: str
    scope: str
    name: str
    edit: type[Any]


def edits_by_place() -> list[PlacedEdit]:
    """Every edit that is installed, leaf by leaf."""
    found = [PlacedEdit(f"{each.level} › {each.leaf}", _scope(each.scope), name, each) for name, each in CONFOUNDERS]
    ordered = sorted(found, key=lambda row: _LEAVES.index(row.edit.leaf))
    return [*ordered, *(PlacedEdit(ELSEWHERE, _scope("global"), name, each) for name, each in SOURCE_EDITS)]


def options_with_units(edit: type[Any]) -> str:
    """Options with defaults and units, the first one first: it may stand without its name."""
    said = [
        f"{each.name}={each.default!r} ({each.metadata['unit']})"
        if each.metadata.get("unit")
        else f"{each.name}={each.default!r}"
        for each in option_fields(edit)
    ]
    return ", ".join(said)


def _scope(scope: str) -> str:
    return "a part of the image" if scope == "local" else "the whole image"
