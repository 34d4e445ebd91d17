"""Edits of images on their way into a verb: what the options name, who carries them, and what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Bool

from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.edits import Editing, choose_edits
from crossgraft.edit.injection import draw_carriers
from crossgraft.edit.record import EditRow
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference

Carriers = Bool[np.ndarray, " num_images"]


@dataclass(frozen=True)
class AskedEdits:
    """What is done to which images.

    Attributes:
        edits: In their order.
        share: Share of the images that is edited.
        among: Classes whose images are edited; None: all.
        unit: ``image`` or ``patient``: what is drawn.
        strength: Multiple of what an edit changes.
        seed: Random seed.
        flags: Beginning of the flags, for messages: ``--`` or ``--edit-``.
    """

    edits: Sequence[ImageEdit]
    share: float
    among: tuple[str, ...] | None
    unit: Any
    strength: float
    seed: int
    flags: str = "--"

    @classmethod
    def of(
        cls,
        edits: str | Sequence[Any],
        *,
        share: float,
        among: str | Sequence[str] | None,
        unit: str,
        strength: float,
        seed: int,
        flags: str = "--",
    ) -> AskedEdits:
        """Look every name up; of classes it is not known yet which there are.

        Raises:
            UnknownNameError: There is no such edit; the message gives the nearest names.
            UsageError: No edit is named, a number is out of its range, or a unit is none.
        """
        chosen = choose_edits(edits)
        for name, value, most in (("share", share, 1.0), ("strength", strength, np.inf)):
            _refuse_number(f"{flags}{name}", value, most)
        if unit not in ("image", "patient"):
            raise UsageError(f"{flags}unit must be image or patient, got {unit!r}.")
        classes = None if among is None else names_between_commas(among)
        if classes == ():
            raise UsageError(f"{flags}among names no class. Leave it out to edit images of all classes.")
        return cls(chosen, float(share), classes, unit, float(strength), seed, flags)

    def carriers(self, dataset: Dataset, parts: np.ndarray | None, *, rows: Carriers | None = None) -> Carriers:
        """Which images are edited: the share of each part of the data.

        Args:
            dataset: Images as they came.
            parts: (n,) part of each image; None: one part.
            rows: (n,) images that may be edited; None: all.

        Raises:
            UnknownNameError: There is no such class.
            UsageError: Patients are to be drawn, and the data have no groups.
        """
        candidates = np.full(len(dataset), self.among is None)
        for name in self.among or ():
            if name not in dataset.class_names:
                raise UnknownNameError("class", name, dataset.class_names)
            candidates |= dataset.members(dataset.class_names.index(name))
        if self.unit == "patient" and dataset.groups is None:
            raise UsageError(
                f"{self.flags}unit patient draws patients, and these images have none. Name their column: --group-column."
            )
        return draw_carriers(
            candidates if rows is None else candidates & rows,
            self.share,
            [digest.hex() for digest in dataset.image_digests],
            parts=parts,
            groups=dataset.groups if self.unit == "patient" else None,
            seed=self.seed,
        )

    def apply(self, dataset: Dataset, carriers: Carriers, reporter: Reporter) -> EditedImages:
        """Edit the images of ``carriers``.

        Raises:
            DataError: An edit cannot be done to an image; the message names it.
        """
        editing = Editing(self.edits, strength=self.strength, seed=self.seed)
        shown: set[str] = set()
        with reporter.stage("Editing images", total=int(carriers.sum())) as stage:

            def told(pixels: np.ndarray, identity: str) -> np.ndarray:
                edited = editing(pixels, identity)
                if identity not in shown:
                    shown.add(identity)
                    stage.advance()
                return edited

            changed = dataset.edited(told, carriers) if carriers.any() else dataset
        return EditedImages(changed, editing)


@dataclass(frozen=True, eq=False)
class EditedImages:
    """What came of it.

    Attributes:
        dataset: All rows, with the pixels that they have now.
        editing: Knows what was done.
    """

    dataset: Dataset
    editing: Editing

    def rows(self) -> list[EditRow]:
        """One row per edit."""
        return [
            EditRow(edit=spell(edit), title=edit.title, leaf=getattr(edit, "leaf", None), **facts._asdict())
            for edit, facts in zip(self.editing.edits, self.editing.facts(), strict=True)
        ]

    def references(self) -> list[Reference]:
        """Where the edits come from."""
        return [Reference(key=edit.title, text=f"{edit.reference}.") for edit in self.editing.edits]


def names_between_commas(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names in one text with commas, or in a sequence."""
    several = given.split(",") if isinstance(given, str) else given
    return tuple(name for each in several if (name := str(each).strip()))


def _refuse_number(flag: str, value: object, most: float) -> None:
    try:
        number = float(cast("float", value))
    except (TypeError, ValueError):  # a program may give anything
        number = np.nan
    if not (np.isfinite(number) and 0 <= number <= most):
        bounds = "lie in [0, 1]" if most == 1 else "be a number of at least 0"
        raise UsageError(f"{flag} must {bounds}, got {value!r}.")
