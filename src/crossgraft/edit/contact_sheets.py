"""``show_confounders``: a contact sheet of every confounder, on images of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from crossgraft.data.dataset import Dataset
from crossgraft.data.describe import THUMBNAIL_PIXELS, describe_dataset, open_examples, thumbnail_png
from crossgraft.data.given_images import location_of, refuse_opening
from crossgraft.edit.contact_sheet import (
    ContactSheet,
    Example,
    coloured_change,
    contact_sheet,
    sheet_png,
    shrink_change,
    shrink_picture,
)
from crossgraft.edit.edits import choose_edits, edits_by_place, options_with_units
from crossgraft.edit.options import SheetOptions
from crossgraft.edit.record import ContactSheetRow, ContactSheetsRecord, ShownImageRow
from crossgraft.edit.words import sheets_in_words
from crossgraft.errors import UsageError
from crossgraft.options._option import configuration
from crossgraft.options.data import ClassOptions, SourceOptions, Unreadable
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference, Thumbnail
from crossgraft.result import Result
from crossgraft.running.command_line import portable_name
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.words.formatting import joined

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "sheets"
MOST_IMAGES = 12
"""More images on one sheet are too small for a screen."""
_SHADES = 8
"""Shades of blue, and of orange, in the small pictures of a page: noise in more of them takes several times the room."""


@dataclass(frozen=True, eq=False, repr=False)
class ShownConfounders(Result[ContactSheetsRecord]):
    """Every confounder on a few images: ``record`` says what each changed.

    Attributes:
        pictures: Name of each edit → its contact sheet, a PNG file.
    """

    pictures: Mapping[str, bytes] = field(default_factory=dict[str, bytes], kw_only=True)

    def summary(self) -> str:
        """How many edits can be put into the images."""
        return sheets_in_words(self.record)

    def to_frame(self) -> pd.DataFrame:
        """One row per edit."""
        import pandas as pd

        return pd.DataFrame([row.model_dump() for row in self.record.sheets])

    def places(self) -> Mapping[str, object]:
        """The report, and the folder of the pictures."""
        return {**super().places(), **({} if self.out is None else {"Sheets": self.out / FOLDER})}


@verb("list confounders", SheetOptions)
def show_confounders(options: SheetOptions, run: Run) -> ShownConfounders:
    """Show every confounder and every other edit on a few of your images: without it, with it, and what changed.

    Edits have their default options and are done at the size that images have. An edit that cannot be done to these images
    stands there with its reason.

    Args:
        {options}

    Returns:
        What each edit changed, and its sheet in ``pictures``; with ``out`` also ``report.html``, ``report.json``, ``run.json``
        and a picture per edit in ``sheets/`` there.

    Raises:
        DataError: The data are missing, have no image, or cannot be read.
        UnreadableImageError: An image that was drawn cannot be decoded, and ``skip_unreadable`` is off.
        UsageError: An argument is wrong.
        StorageError: The folder cannot be written.

    Cost: only the images on the sheets are decoded; each is edited once per edit.
    """
    if not 1 <= options.num_images <= MOST_IMAGES:
        raise UsageError(f"--images must be at least 1 and at most {MOST_IMAGES}, got {options.num_images}.")
    if isinstance(options.data, Dataset):
        refuse_opening(options, SourceOptions, ClassOptions, Unreadable)
    location = location_of(options.data)
    typed = {**configuration(options), "data": location}
    with run.directory(location, typed=typed, resolved={}, out=options.out) as directory:
        data, numbers = open_examples(options.data, options, options.num_images, seed=options.seed, reporter=run.reporter)
        images = [
            ShownImageRow(number=number, class_names=[name for k, name in enumerate(data.class_names) if data.members(k)[row]])
            for row, number in enumerate(numbers)
        ]
        if directory is not None:
            directory.describe_data(data.fingerprint)
        shown = _show(data, images, options, directory, run.reporter)
        record = ContactSheetsRecord(
            dataset=describe_dataset(data),
            images=images,
            sheets=shown.rows,
            seed=options.seed,
            references=[Reference(key=each.edit.title, text=f"{each.edit.reference}.") for each in edits_by_place()],
        )
        result = ShownConfounders(record, pictures=shown.pictures)
        if directory is None:
            return result
        page = publish(directory, record, run.reporter, thumbnails=lambda: shown.thumbnails)
        return replace(result, out=directory.path, report=page)


@dataclass
class _Shown:
    """What is found edit by edit."""

    rows: list[ContactSheetRow] = field(default_factory=list[ContactSheetRow])
    pictures: dict[str, bytes] = field(default_factory=dict[str, bytes])
    thumbnails: list[Thumbnail] = field(default_factory=list[Thumbnail])


def _show(
    data: Dataset, images: Sequence[ShownImageRow], options: SheetOptions, directory: RunDirectory | None, reporter: Reporter
) -> _Shown:
    """Every edit on every image; each picture is written when it is drawn."""
    examples = [Example(data.read(row), data.image_digests[row].hex()) for row in range(len(data))]
    headings = [(joined(image.class_names), f"image {image.number}") for image in images]
    every, shown = edits_by_place(), _Shown()
    with reporter.stage("Drawing contact sheets", total=len(every), unit="edits") as stage:
        for placed in every:
            (edit,) = choose_edits(placed.name)
            sheet = contact_sheet(edit, examples, seed=options.seed)
            picture = sheet_png(placed, sheet, headings)
            name = f"{FOLDER}/{portable_name(placed.name)}.png"
            if directory is not None:
                directory.write(name, picture)
            shown.pictures[placed.name] = picture
            shown.rows.append(
                ContactSheetRow(
                    edit=placed.name,
                    title=placed.edit.title,
                    place=placed.place,
                    scope=placed.scope,
                    options=options_with_units(placed.edit),
                    sheet=(None if directory is None else name),
                    num_images=sheet.num_edited,
                    **{field: value for field, value in sheet._asdict().items() if field != "images"},
                )
            )
            shown.thumbnails += _thumbnails(placed.name, sheet, images)
            stage.advance()
    return shown


def _thumbnails(edit: str, sheet: ContactSheet, images: Sequence[ShownImageRow]) -> list[Thumbnail]:
    """The rows of a sheet, as small as a page may show them."""
    thumbnails: list[Thumbnail] = []
    for image, row in zip(sheet.images, images, strict=True):
        pictures: dict[str, np.ndarray] = {"without": shrink_picture(image.without, THUMBNAIL_PIXELS)}
        if image.edited is not None and image.change is not None:
            step = (sheet.limit or 1.0) / _SHADES
            change = step * np.rint(shrink_change(image.change, THUMBNAIL_PIXELS) / step)
            pictures["with"] = shrink_picture(image.edited, THUMBNAIL_PIXELS)
            pictures["change"] = coloured_change(change, None, sheet.limit)
        thumbnails += [
            Thumbnail(class_name=f"{edit}: {what}", row=row.number, png_base64=thumbnail_png(pixels))
            for what, pixels in pictures.items()
        ]
    return thumbnails
