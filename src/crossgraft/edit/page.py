"""The report of an edit: what was done to which images, and how far it can be seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from urllib.parse import quote

from crossgraft.data.page import data_facts, data_gallery
from crossgraft.edit.record import (
    ContactSheetRow,
    ContactSheetsRecord,
    EditedClassRow,
    EditedImagesRecord,
    EditedPartRow,
    EditRecord,
    EditRow,
    ShownImageRow,
)
from crossgraft.edit.words import (
    answer_in_words,
    change_in_words,
    edits_and_advice,
    faint_edits,
    lost_in_rounding,
    named,
    scale_in_words,
    sheets_in_words,
)
from crossgraft.models.on_this_machine import new_folder, with_models_here
from crossgraft.options.command import DATA, Flag
from crossgraft.report.blocks import Block, Facts, Gallery, Heading, Paragraph, Section, Subheading
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, columns_of, table_of, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    in_one_line,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import counted, joined


def edits_table(rows: Sequence[EditRow]) -> Table:
    """Each edit with what it changed."""
    return table_of(
        rows,
        [
            *columns_of(EditRow, "edit"),
            (Column("Kind"), lambda row: words("takes cues away" if row.leaf is None else row.leaf)),
            *columns_of(EditRow, "num_images", "rms", "share_changed", "psnr"),
        ],
        caption="Edits",
        file_name="edits",
        notes=[
            "rms: root mean square of what changed, in grey levels of 8 bits. Changed: share of the samples. PSNR: below 40 dB a "
            "person sees it."
        ],
    )


def edited_blocks(edits: EditedImagesRecord | None) -> list[Block]:
    """What was done to the images of a fine-tuning, and to how many of each part; nothing where they are as they came."""
    if edits is None:
        return []
    parts = table_of(
        edits.parts,
        columns_of(EditedPartRow, "name", "num_images", "num_edited"),
        caption="Edited images of each part",
        file_name="edited-parts",
    )
    drawn = [
        ("Edited parts", joined(edits.chosen_parts)),
        ("Edited classes", "all" if edits.among is None else joined(edits.among)),
        ("Edited share", f"{edits.share:g}, drawn by {edits.unit}"),
        ("Strength of the edits", f"{edits.strength:g}"),
        ("Seed of the edits", str(edits.seed)),
    ]
    return [edits_table(edits.edits), parts, Facts(drawn)]


def edited_with(edits: EditedImagesRecord | None) -> list[str]:
    """What stands in the line below the title."""
    return [] if edits is None or not edits.num_edited else [f"images edited with {named(edits.edits)}"]


def edited_caveat(edits: EditedImagesRecord | None) -> Caveat | None:
    """The numbers are about edited images, and nothing edits those that are predicted."""
    return None if edits is None else Caveat(edits_and_advice(edits), Gravity.LIMITED)


_MOST_CHARACTERS = 1_800_000
"""Characters of base64 on a page, so that it stays below two megabytes."""
_ROWS = ("without", "with", "change")
_MOST_PLACES = 5
_PATIENTS = (
    "What lies in the patient (sex, age, anatomy) is not painted: crossgraft audit --attribute chooses images by a column "
    "instead."
)


def sheets_heading(source: Source[ContactSheetsRecord]) -> Heading:
    """The data and the number of edits."""
    record = source.record
    return Heading(
        title=f"Confounders in {record.dataset.name}",
        summary=f"{counted(len(record.sheets), 'edit')} at default options · {record.dataset.rows_used}",
        advice=in_one_line(sheets_in_words(record), caveats_of(source, SHEET_CAVEATS)),
    )


def sheets_verdict_section(source: Source[ContactSheetsRecord]) -> Section:
    """How many edits these images can carry."""
    caveats = caveats_of(source, SHEET_CAVEATS)
    return verdict_section(sheets_in_words(source.record), caveats, after_sheets(source))


def tree_section(source: Source[ContactSheetsRecord]) -> Section:
    """MICCAT: a table of edits per place."""
    notes = [
        "rms: root mean square of what changed, in grey levels of 8 bits. Changed: share of the samples. Mask: share of the "
        "image that a local edit touches. PSNR: below 40 dB a person sees it.",
        *_problems_in_words(source.record),
        _PATIENTS,
    ]
    places = _places(source.record)
    blocks = [_place_table(source, place, notes if place == places[-1] else []) for place in places]
    return Section(name="edits", title="The tree", part="evidence", blocks=blocks)


def _place_table(source: Source[ContactSheetsRecord], place: str, notes: Sequence[str]) -> Table:
    def sheet(row: ContactSheetRow) -> Cell:
        return Cell("PNG", (row.sheet,), href=_picture_link(source, row))

    def edit(row: ContactSheetRow) -> Cell:
        return words(row.edit, href=f"#{_anchor(source, row)}" if source.thumbnails else None)

    return table_of(
        [row for row in source.record.sheets if row.place == place],
        [
            (Column("Edit"), edit),
            *columns_of(ContactSheetRow, "num_images", "rms", "share_changed", "share_touched", "psnr"),
            *([(Column("Picture", page_only=True), sheet)] if source.thumbnails else []),
        ],
        caption=_capital(place),
        file_name=f"edits-{_places(source.record).index(place) + 1}",
        notes=notes,
    )


def _places(record: ContactSheetsRecord) -> list[str]:
    return list(dict.fromkeys(row.place for row in record.sheets))


def _capital(place: str) -> str:
    return place[:1].upper() + place[1:]


def _problems_in_words(record: ContactSheetsRecord) -> list[str]:
    """What keeps edits from images, each reason once."""
    edits: defaultdict[str, list[str]] = defaultdict(list)
    for row in record.sheets:
        for problem in row.problems:
            edits[problem].append(row.edit)
    every = len(record.sheets)
    return [f"{'All edits' if len(names) == every else joined(names)}: {problem}" for problem, names in edits.items()]


def place_section(source: Source[ContactSheetsRecord], *, place_number: int) -> Section | None:
    """The sheets of one place: None where there are fewer places, or no images."""
    places = _places(source.record)
    if place_number >= len(places) or not source.thumbnails:
        return None
    place, pictures = places[place_number], _pictures(source)
    blocks: list[Block] = [] if place_number else [Paragraph(_columns_in_words(source), tone="quiet")]
    for row in (row for row in source.record.sheets if row.place == place):
        changed = change_in_words(row.rms, row.share_changed, row.psnr, row.share_touched)
        colours = f"Full colours are {' and '.join(scale_in_words(row.limit))}." if row.limit else ""
        own = pictures[row.edit]
        blocks += [
            Subheading(_anchor(source, row), row.title, href=_picture_link(source, row)),
            Paragraph(" ".join(filter(None, [changed, colours, *row.problems]))),
            Paragraph(f"{row.edit}: {row.options or 'no options'}", tone="quiet"),
            Gallery(own if row.num_images else {"without": own["without"]}, noun="row", in_rows=True),
        ]
    return Section(
        name=f"place-{place_number + 1}", title=_capital(place), part="evidence", blocks=blocks, is_first=place_number == 0
    )


def sheet_data_section(source: Source[ContactSheetsRecord]) -> Section:
    """The images on the sheets."""
    record = source.record
    blocks: list[Block] = [Facts([*data_facts(record.dataset), ("Seed", str(record.seed))])]
    return Section(name="data", title="Data", part="checks", blocks=blocks)


def _columns_in_words(source: Source[ContactSheetsRecord]) -> str:
    """Which image stands in which column, and what the rows are."""
    shown, every = _columns(source), source.record.images
    columns = joined([f"{joined(image.class_names)} (image {image.number})" for image in shown])
    more = "" if len(shown) == len(every) else f" The pictures have all {len(every)}; this page is kept small."
    return (
        f"From left to right: {columns}.{more} A title leads to the picture. Rows: without, with, and what changed, where blue "
        "is darker and orange brighter. Images of more than 8 bits go from their darkest to their brightest sample, with the "
        "edit as without."
    )


def _columns(source: Source[ContactSheetsRecord]) -> list[ShownImageRow]:
    """As many images as keep the page small; classes take turns."""
    images = source.record.images
    characters = Counter[int | None]()
    for each in source.thumbnails:
        characters[each.row] += len(each.png_base64)
    classes = [image.class_names for image in images]
    turns = sorted(range(len(images)), key=lambda place: (classes[:place].count(classes[place]), place))
    shown, room = turns[:1], _MOST_CHARACTERS - characters[images[turns[0]].number]
    for place in turns[1:]:
        room -= characters[images[place].number]
        if room >= 0:
            shown.append(place)
    return [images[place] for place in sorted(shown)]


def _pictures(source: Source[ContactSheetsRecord]) -> Mapping[str, Mapping[str, list[str]]]:
    """Edit → row → images."""
    pictures = {(each.class_name, each.row): each.png_base64 for each in source.thumbnails}
    shown = _columns(source)
    return {
        row.edit: {what: [pictures.get((f"{row.edit}: {what}", image.number), "") for image in shown] for what in _ROWS}
        for row in source.record.sheets
    }


def _anchor(source: Source[ContactSheetsRecord], row: ContactSheetRow) -> str:
    return f"{source.prefix}sheet-{source.record.sheets.index(row) + 1}"


def _picture_link(source: Source[ContactSheetsRecord], row: ContactSheetRow) -> str | None:
    return quote(row.sheet) if source.is_at_home and row.sheet is not None else None


def impossible_edits(source: Source[ContactSheetsRecord]) -> Caveat | None:
    """These images cannot carry them."""
    names = [row.edit for row in source.record.sheets if row.num_images < len(source.record.images)]
    if not names:
        return None
    what = "No edit" if len(names) == len(source.record.sheets) else f"{joined(names)} cannot"
    can = " can" if what == "No edit" else ""
    return Caveat(f"{what}{can} be put into all of these images; the reasons stand below the table.", Gravity.HARM)


def faint_in_these(source: Source[ContactSheetsRecord]) -> Caveat | None:
    """Nobody learns from what rounding hides."""
    names = faint_edits(source.record)
    if not names:
        return None
    verb = "changes" if len(names) == 1 else "change"
    return Caveat(
        f"At default options {joined(names)} {verb} less than rounding to 8 bits (0.3 grey levels). Stronger options make it "
        "visible.",
        Gravity.LIMITED,
    )


def few_images(source: Source[ContactSheetsRecord]) -> Caveat:
    """Other images may differ."""
    return Caveat(
        f"{counted(len(source.record.images), 'image')} say little about the others. Draw others with --seed.", Gravity.LIMITED
    )


SHEET_CAVEATS: tuple[CaveatOf[ContactSheetsRecord], ...] = (impossible_edits, faint_in_these, few_images)
"""The most severe first, in the order of ``report.verdict``."""


def after_sheets(source: Source[ContactSheetsRecord]) -> Following:
    """To put one of them into a data set."""
    typed, faint = source.typed, faint_edits(source.record)
    named = next((row.edit for row in source.record.sheets if row.num_images and row.edit not in faint), "tag")
    flags = [("--with", named), ("--share", "0.5")]
    line = typed.then("edit", typed.value("--data") or DATA, new_folder("edited"), flags=flags)
    return Following(line, "to put one into half of your images")


_PLACES: list[Callable[[Source[ContactSheetsRecord]], Section | None]] = [
    partial(place_section, place_number=place) for place in range(_MOST_PLACES)
]
CONTACT_SHEETS = Kind(
    ContactSheetsRecord,
    sheets_heading,
    (sheets_verdict_section, tree_section, *_PLACES, sheet_data_section, provenance_section, references_section),
    tables_answer=True,
    terminal=(tree_section, sheets_verdict_section),
)


VISIBLE_DECIBELS = 40.0
"""Below this a person sees the edit."""


def edit_heading(source: Source[EditRecord]) -> Heading:
    """The data and the edits."""
    record = source.record
    drawn = "" if record.share == 1 else f" · share {record.share:g}, drawn by {record.unit}"
    return Heading(
        title=f"{record.dataset.name}, edited",
        summary=f"{counted(record.num_edited, 'image')} edited{drawn}",
        advice=in_one_line(answer_in_words(record), caveats_of(source, EDIT_CAVEATS)),
    )


def edit_verdict_section(source: Source[EditRecord]) -> Section:
    """What was done, what limits it, and images before and after."""
    record = source.record
    caveats, gallery = caveats_of(source, EDIT_CAVEATS), data_gallery(source.thumbnails)
    return verdict_section(answer_in_words(record), caveats, after_edit(source), *gallery)


def edits_section(source: Source[EditRecord]) -> Section:
    """Each edit with what it changed, and the classes."""
    record = source.record
    classes = table_of(
        record.classes,
        [
            *columns_of(EditedClassRow, "class_name", "num_images", "num_edited"),
            *([(Column("Merged into"), lambda row: words(row.merged or ""))] if record.classes[0].merged else []),
        ],
        caption="Classes",
        file_name="classes",
    )
    return Section(name="edits", title="Edits", part="evidence", blocks=[edits_table(record.edits), classes])


def edited_data_section(source: Source[EditRecord]) -> Section:
    """The data as they were, and what was written."""
    record = source.record
    written = Facts(
        [("Labels", record.table), ("Drawn by", record.unit), ("Seed", str(record.seed)), ("Strength", f"{record.strength:g}")]
    )
    blocks: list[Block] = [Facts(data_facts(record.dataset)), written]
    return Section(name="data", title="Data", part="checks", blocks=blocks)


def nothing_edited(source: Source[EditRecord]) -> Caveat | None:
    """The share is too small for these images."""
    record = source.record
    if record.num_edited:
        return None
    return Caveat("No image was edited: the share of these images is below half an image. Raise --share.", Gravity.WRONG)


def cannot_be_seen(source: Source[EditRecord]) -> Caveat | None:
    """Rounding hides it."""
    lost = lost_in_rounding(source.record.edits)
    return None if lost is None else Caveat(lost, Gravity.EMPTY)


def can_be_seen(source: Source[EditRecord]) -> Caveat | None:
    """A person would notice."""
    names = [row.edit for row in source.record.edits if row.num_images and row.psnr < VISIBLE_DECIBELS]
    return Caveat(f"A person sees {joined(names)} (PSNR below 40 dB).", Gravity.LIMITED) if names else None


def patients_are_numbers(source: Source[EditRecord]) -> Caveat | None:
    """What was not passed on."""
    if source.record.dataset.num_groups is None:
        return None
    return Caveat(
        "Groups are numbers in the table that was written; other columns are as they were, whatever they say.", Gravity.LIMITED
    )


EDIT_CAVEATS: tuple[CaveatOf[EditRecord], ...] = (nothing_edited, cannot_be_seen, can_be_seen, patients_are_numbers)
"""The most severe first, in the order of ``report.verdict``."""


def after_edit(source: Source[EditRecord]) -> Following:
    """To rank models for the edited images."""
    record = source.record
    has_one_class = recorded_task(record.dataset).partitions
    labels = "label" if has_one_class else ",".join(record.dataset.class_names)
    flags: list[Flag] = [("--label-column", labels)]
    if has_one_class and record.classes[0].merged is None:
        in_order = record.dataset.class_names == sorted(record.dataset.class_names)
        flags += [] if in_order else [("--class-names", f"{source.typed.out}/classes.txt")]
        flags += [("--ordinal", None)] if record.dataset.ordinal else []
    flags += [] if record.dataset.num_groups is None else [("--group-column", "group")]
    line = source.typed.then("rank", f"{source.typed.out}/{record.table}", flags=flags, carried=[])
    return with_models_here(line, "for the edited images")


EDIT = Kind(
    EditRecord,
    edit_heading,
    (edit_verdict_section, edits_section, edited_data_section, provenance_section, references_section),
    terminal=(edits_section, edit_verdict_section),
)
REPORT = (EDIT, CONTACT_SHEETS)
