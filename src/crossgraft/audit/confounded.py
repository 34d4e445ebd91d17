"""One artefact, and the images of an audit without it and with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from crossgraft.audit.rows import AuditRows
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.confounders._lettering import Lettering
from crossgraft.edit.edits import EditFacts, Editing
from crossgraft.types import Preprocessing

LEAST_LETTER_PIXELS = 6.0
"""Smaller letters are a gray spot."""


@dataclass(frozen=True, eq=False)
class Confounded:
    """An artefact and where it is.

    Attributes:
        name: As it was written, with its options.
        edit: The artefact.
        editing: What an image that carries it gets.
        images: All images as it finds them.
        clean: All images as those that do not carry it are.
        edited: All images; those that a model may see with it have it.
        facts: What it changes, in grey levels of 8 bits.
        absent: What an image that does not carry it gets; None: it stays as it is.
    """

    name: str
    edit: ImageEdit
    editing: Editing
    images: Dataset
    clean: Dataset
    edited: Dataset
    facts: EditFacts
    absent: Editing | None = None

    def too_small(self, preprocessing: Preprocessing) -> str | None:
        """Why it cannot be seen at the input of a network, in words; None where that is not known beforehand."""
        if not isinstance(self.edit, Lettering):
            return None
        native = float(np.median([min(fact.height, fact.width) for fact in self.clean.facts]))
        high = self.edit.size * min(native, preprocessing.height_pixels, preprocessing.width_pixels)
        if high >= LEAST_LETTER_PIXELS:
            return None
        return f"Letters are {high:.1f} pixels high at the input of the network; below {LEAST_LETTER_PIXELS:g} they are a spot."


class Without(NamedTuple):
    """Images that no artefact was put into.

    Attributes:
        images: All of them, as artefacts find them.
        clean: As those that do not carry an artefact are.
        instead: What was done to these; None: nothing.
    """

    images: Dataset
    clean: Dataset
    instead: Editing | None


def without_artefact(images: Dataset, absent: Sequence[ImageEdit], *, seed: int) -> Without:
    """What artefacts are put into, and what is done to images that do not carry one.

    Args:
        images: All of them, as they are or as a network gets them.
        absent: Edits of images that carry none; without any they stay as they are.
        seed: Random seed of the edits.

    Raises:
        DataError: An image cannot be edited.
    """
    if not absent:
        return Without(images, images, None)
    instead = Editing(list(absent), seed=seed)
    return Without(images, images.edited(instead), instead)


def confound(
    rows: AuditRows, edit: ImageEdit, without: Without, *, strength: float, negatives: float, seed: int
) -> Confounded:
    """Put an artefact into all test images, and into those others that may carry it.

    Args:
        rows: What each image is for.
        edit: The artefact.
        without: What it is put into.
        strength: Multiple of what it changes.
        negatives: Share of the training negatives that carry it.
        seed: Random seed of the edit; each image has random numbers of its own.

    Raises:
        DataError: An image cannot be edited, for example because a text does not fit into it.
    """
    editing = Editing([edit], strength=strength, seed=seed)
    edited = without.images.edited(editing, rows.may_carry(negatives))
    facts = editing.facts()[0]
    return Confounded(spell(edit), edit, editing, without.images, without.clean, edited, facts, without.instead)
