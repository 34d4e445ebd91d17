"""Edits of images on their way into a verb: what the options name, who carries them, and what was done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from jaxtyping import Bool

from crossgraft.audit._image_edit import ImageEdit
from crossgraft.audit.edits import Editing, choose_edits
from crossgraft.audit.injection import draw_carriers
from crossgraft.data import Dataset
from crossgraft.data.splits import PARTS
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._option import given, options_of
from crossgraft.options.editing import EditsBefore
from crossgraft.options.tuning import TuneOptions
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference
from crossgraft.records.editing import ALL_PARTS, EditedImagesRecord, EditedPartRow, EditRow
from crossgraft.tune.choice import spell
from crossgraft.tune.parts import TuningRows
from crossgraft.words.editing_words import edited_images_in_words

Carriers = Bool[np.ndarray, " num_images"]
TuneT = TypeVar("TuneT", bound=TuneOptions)


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


def read_edits(options: TuneT) -> tuple[TuneT, AskedEdits | None]:
    """What ``tune`` is to do to images, and its options with all of that as text.

    Raises:
        UnknownNameError: There is no such edit or part; the message gives the nearest names.
        UsageError: An option has no meaning.
    """
    said = [name for name in options_of(EditsBefore) if name in given(options)]
    if not said:
        return options, None
    if not options.edits:
        raise UsageError(
            f"{_flag(said[0])} says which images are edited, and no edit is named. Add one, for example --with tag."
        )
    asked = AskedEdits.of(
        options.edits,
        share=options.edit_share,
        among=options.edit_among,
        unit=options.edit_unit,
        strength=options.edit_strength,
        seed=options.seed,
        flags="--edit-",
    )
    parts = _parts(options)
    texts = {"edits": tuple(map(spell, asked.edits)), "edit_among": asked.among, "edit_parts": ",".join(parts)}
    return replace(options, **cast("dict[str, Any]", texts)), asked


def edit_rows(rows: TuningRows, asked: AskedEdits | None, options: TuneOptions, reporter: Reporter) -> TuningRows:
    """The rows with edited images; as they are where nothing is asked for. Arguments as ``read_edits`` gives them.

    Raises:
        DataError: An edit cannot be done to an image; the message names it.
        UnknownNameError: There is no such class.
        UsageError: Patients are to be drawn, and the data have no groups.
    """
    if asked is None:
        return rows
    edited = _edited_rows(rows, asked, names_between_commas(options.edit_parts), reporter)
    if edited.edits is not None and not edited.edits.num_edited and asked.share:
        reporter.warn(edited_images_in_words(edited.edits))
    return edited


def edited_again(rows: TuningRows, record: EditedImagesRecord | None, reporter: Reporter) -> TuningRows:
    """The rows with the edits of an earlier run; arguments and errors otherwise as of ``edit_rows``."""
    if record is None:
        return rows
    asked = AskedEdits.of(
        [row.edit for row in record.edits],
        share=record.share,
        among=record.among,
        unit=record.unit,
        strength=record.strength,
        seed=record.seed,
    )
    return _edited_rows(rows, asked, record.chosen_parts, reporter)


def _edited_rows(rows: TuningRows, asked: AskedEdits, chosen: Sequence[str], reporter: Reporter) -> TuningRows:
    """Each part has its own share; with folds, where an image is in every part once, all images are one part."""
    dataset = rows.dataset
    used, parts = np.zeros(len(dataset), dtype=bool), np.full(len(dataset), "", dtype="U5")
    for fold in rows.parts:
        for part in PARTS:
            used[fold.rows(part)] = part in chosen
            parts[fold.rows(part)] = ALL_PARTS if rows.num_folds is not None else part
    carriers = asked.carriers(dataset, parts, rows=used)
    found = asked.apply(dataset, carriers, reporter)
    names = [ALL_PARTS] if rows.num_folds is not None else PARTS
    record = EditedImagesRecord(
        edits=found.rows(),
        parts=[
            EditedPartRow(name=name, num_images=int(here.sum()), num_edited=int((here & carriers).sum()))
            for name in names
            if (here := parts == name).any()
        ],
        chosen_parts=list(chosen),
        among=None if asked.among is None else list(asked.among),
        share=asked.share,
        strength=asked.strength,
        unit=asked.unit,
        seed=asked.seed,
        unedited_fingerprint=dataset.fingerprint,
        references=found.references(),
    )
    return replace(rows, dataset=found.dataset, edits=record, unedited=dataset)


def _parts(options: TuneOptions) -> tuple[str, ...]:
    """Parts of the data whose images are edited, in their usual order."""
    named = names_between_commas(options.edit_parts)
    for name in named:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    if not named:
        raise UsageError("--edit-parts names no part. Leave it out to edit images of train, val and test alike.")
    if options.folds is not None and set(named) != set(PARTS):
        raise UsageError(
            "With --folds each image is in every part once, so that --edit-parts has no meaning. Leave it out."
        )
    return tuple(part for part in PARTS if part in named)


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


def _flag(name: str) -> str:
    return options_of(EditsBefore)[name].flag
