"""Edits of the images of a training: read before anything is opened, and done to the rows before anything else sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from crossgraft.choice import spell
from crossgraft.data.splits import PARTS
from crossgraft.edit.options import EditsBefore
from crossgraft.edit.record import ALL_PARTS, EditedImagesRecord, EditedPartRow
from crossgraft.edit.words import edited_images_in_words
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._option import given, options_of
from crossgraft.progress import Reporter
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows

if TYPE_CHECKING:  # confounders need parts of SciPy that a training without edits does not
    from crossgraft.edit.edits import AskedEdits

TuneT = TypeVar("TuneT", bound=TuneOptions)


def read_edits(options: TuneT) -> tuple[TuneT, AskedEdits | None]:
    """What ``tune`` is to do to images, and its options with all of that as text.

    Raises:
        UnknownNameError: There is no such edit or part; the message gives the nearest names.
        UsageError: An option has no meaning.
    """
    about_edits = [name for name in options_of(EditsBefore) if name in given(options)]
    if not about_edits:
        return options, None
    if not options.edits:
        flag = options_of(EditsBefore)[about_edits[0]].flag
        raise UsageError(f"{flag} says which images are edited, and no edit is named. Add one, for example --with tag.")
    from crossgraft.edit.edits import AskedEdits

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
    edited = _edited_rows(rows, asked, _named_parts(options), reporter)
    if edited.edits is not None and not edited.edits.num_edited and asked.share:
        reporter.warn(edited_images_in_words(edited.edits))
    return edited


def edited_again(rows: TuningRows, record: EditedImagesRecord | None, reporter: Reporter) -> TuningRows:
    """The rows with the edits of an earlier run; arguments and errors otherwise as of ``edit_rows``."""
    if record is None:
        return rows
    from crossgraft.edit.edits import AskedEdits

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
    edited = asked.apply(dataset, carriers, reporter)
    names = [ALL_PARTS] if rows.num_folds is not None else PARTS
    record = EditedImagesRecord(
        edits=edited.editing.facts(),
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
        references=edited.editing.references(),
    )
    return replace(rows, dataset=edited.dataset, edits=record, unedited=dataset)


def _parts(options: TuneOptions) -> tuple[str, ...]:
    """Parts of the data whose images are edited, in their usual order."""
    named = _named_parts(options)
    for name in named:
        if name not in PARTS:
            raise UnknownNameError("part", name, PARTS)
    if not named:
        raise UsageError("--edit-parts names no part. Leave it out to edit images of train, val and test alike.")
    if options.folds is not None and set(named) != set(PARTS):
        raise UsageError("With --folds each image is in every part once, so that --edit-parts has no meaning. Leave it out.")
    return tuple(part for part in PARTS if part in named)


def _named_parts(options: TuneOptions) -> tuple[str, ...]:
    from crossgraft.edit.edits import names_between_commas

    return names_between_commas(options.edit_parts)
