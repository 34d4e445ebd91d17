"""Folders of images that need no labels: whether their names are the classes of the model, and why not, where they nearly are."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.data._look_alikes import look_alikes
from crossgraft.data.sources._source import SourceRequest

NAMES_IN_MESSAGE = 5
NO_LABELS = (
    "Folders were not taken for labels: not all are called like classes of the model, or images lie beside them."
)


def almost_labels(folders: Sequence[str], request: SourceRequest, *, has_loose: bool) -> list[str]:
    """Why folders are no labels, where some are called, or almost called, like classes."""
    classes = request.known_classes
    alike = {name: pair for name in folders if name not in classes for pair in _alike(name, classes)}
    if not alike and not set(folders) & set(classes):
        return []
    others = [name for name in folders if name not in classes]
    beside = [f"{shown(others)} {'is none' if len(others) == 1 else 'are none'}"] if others else []
    beside += ["there are images beside them"] if has_loose else []
    wanted = [f"rename {name} to {meant}" for name, meant in alike.items()]
    if has_loose or len(alike) < len(others):
        wanted.append("take out what is in no folder of a class")
    return [
        f"Folders are taken for labels only where each of them is a class of the model ({shown(classes)}), and "
        f"{' and '.join(beside)}, so nothing is measured. To measure, {'; '.join(wanted)}."
    ]


def shown(names: Sequence[str]) -> str:
    """The first few in a row."""
    return ", ".join(names[:NAMES_IN_MESSAGE]) + (" …" if len(names) > NAMES_IN_MESSAGE else "")


def _alike(name: str, classes: Sequence[str]) -> list[str]:
    """The class that it differs from by case, white space or the form of its letters."""
    return [meant for each in look_alikes([*classes, name]) if name in each.names for meant in each.names[:1]]
