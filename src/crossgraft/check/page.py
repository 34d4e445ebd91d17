"""What a check of the data found: the verdict, the findings with the images they are about, what was looked at."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from crossgraft.data.checks.record import DataCheckRecord, FindingRecord
from crossgraft.data.describe import describe_classes, describe_groups
from crossgraft.data.page import class_balance_figure, split_counts_figure, split_in_words
from crossgraft.models.on_this_machine import with_models_here
from crossgraft.options.command import DATA
from crossgraft.records.base import Severity, Thumbnail
from crossgraft.report.blocks import (
    Block,
    Checks,
    Facts,
    Figure,
    Folded,
    Gallery,
    Heading,
    Paragraph,
    Section,
    Strip,
    Strips,
    figure_for_screens,
)
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, counts, number, table_of, whole, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    caveats_of,
    found_by_checks,
    in_one_line,
    of_check,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import NumberFormat, count, counted, short_fingerprint


def checked_in_words(record: DataCheckRecord) -> str:
    """What is unsound and what to do about it, or that nothing is, in how many images; what else was found, by name."""
    unsound = _of_severity(record, "unsound")
    warnings = [finding.title.lower() for finding in _of_severity(record, "warning")]
    if unsound:
        also = f" Also unsound: {'; '.join(finding.title.lower() for finding in unsound[1:])}." if unsound[1:] else ""
        return f"Not sound. {unsound[0].text} {unsound[0].advice}".rstrip() + also
    data = record.dataset
    images = f"{counted(data.num_images, 'image')} of {describe_classes(data)}"
    named = f", but {counted(len(warnings), 'warning')}: {'; '.join(dict.fromkeys(warnings))}" if warnings else ""
    return f"Nothing unsound was found in {images}{named}."


def _of_severity(record: DataCheckRecord, severity: Severity) -> list[FindingRecord]:
    return [finding for finding in record.findings if finding.severity == severity]


def worst_finding(source: Source[DataCheckRecord]) -> Caveat | None:
    """What was found beside the first unsound finding, which is the answer."""
    findings = [*_of_severity(source.record, "unsound")[1:], *_of_severity(source.record, "warning")]
    return of_check(_with_advice(findings[0])) if findings else None


def _with_advice(finding: FindingRecord) -> FindingRecord:
    return finding.model_copy(update={"text": f"{finding.text} {finding.advice}".rstrip()})


def left_open(source: Source[DataCheckRecord]) -> Caveat | None:
    """The first question that was left open."""
    return of_check(found_by_checks(source.record.findings, "not assessed"))


CHECK_CAVEATS: tuple[CaveatOf[DataCheckRecord], ...] = (worst_finding, left_open)
"""The most severe first, in the order of ``report.verdict``."""


def after_check(source: Source[DataCheckRecord]) -> Following:
    """To rank models where nothing is unsound, else to check again."""
    typed = source.typed
    if not source.record.is_sound:
        of_images = any(finding.images for finding in _of_severity(source.record, "unsound"))
        names = [("--show-names", None)] if of_images else []
        again = typed.again(*names, ("--verbose", None)) if typed.verb == "check" else typed.then("check", DATA)
        return Following(again, f"to see {'which files these are' if of_images else 'more'}, and again when that is repaired")
    line = typed.then("rank", typed.data)
    return with_models_here(line, "for these images")


_ADVISORY = ("unsound", "warning", "notice")


def data_check_heading(source: Source[DataCheckRecord]) -> Heading:
    """Name of the data, and how much was looked at."""
    record = source.record
    data = record.dataset
    summary = f"{counted(data.num_images, 'image')}, {data.rows_used} · {describe_classes(data)} · "
    groups = "patient leakage not assessed (no group column)" if data.group_column is None else describe_groups(data)
    return Heading(
        title=data.name, summary=summary + groups, advice=in_one_line(checked_in_words(record), caveats_of(source, CHECK_CAVEATS))
    )


def data_check_verdict_section(source: Source[DataCheckRecord]) -> Section:
    """The answer, and what it means for a program."""
    record = source.record
    meaning = (
        "Unsound findings make results wrong and give the exit code 3."
        if not record.is_sound
        else "Warnings and notices are advice; they do not change the exit code."
    )
    caveats = caveats_of(source, CHECK_CAVEATS)
    return verdict_section(checked_in_words(record), caveats, after_check(source), Paragraph(meaning))


def each_class_section(source: Source[DataCheckRecord]) -> Section:
    """A strip of images for each class with those that look least like it; without images, how many it has."""
    record = source.record
    noun = recorded_task(record.dataset).noun
    strips: defaultdict[str, list[Strip]] = defaultdict(list)
    for each in source.thumbnails:
        if each.row is not None:
            strips[each.class_name].append(_strip(each))
    if not strips:
        return Section(name="classes", title=f"Images of each {noun}", part="evidence", blocks=[_counts(source)], is_first=True)
    blocks: list[Block] = [Strips(dict(strips), caption=_ODD.format(noun=noun))]
    if len(record.dataset.class_names) > len(strips):
        blocks.append(Paragraph(f"The first {len(strips)} are shown.", tone="quiet"))
    return Section(name="classes", title=f"Each {noun}, and its odd ones out", part="evidence", blocks=blocks, is_first=True)


_ODD = (
    "Right of the line stand the images that differ most from the mean picture of their {noun}, the farthest first, with the "
    "difference in grey levels of 255; a frame marks those far beyond the others. It shows empty, inverted and foreign images, "
    "and no fine detail."
)


def _strip(thumbnail: Thumbnail) -> Strip:
    name = f"Row {thumbnail.row}, {thumbnail.class_name}"
    if thumbnail.distance is None:
        return Strip(thumbnail.uri, name, "", is_apart=False, is_marked=False)
    levels = f"{thumbnail.distance:.0f}"
    far = ", far from the others" if thumbnail.is_far else ""
    label = f"{name}: {levels} grey levels from the mean picture{far}"
    return Strip(thumbnail.uri, label, levels, is_apart=True, is_marked=thumbnail.is_far)


def findings_section(source: Source[DataCheckRecord]) -> Section:
    """What needs attention, most severe first, and all of it as a table."""
    findings = [finding for finding in source.record.findings if finding.severity in _ADVISORY]
    if not findings:
        blocks: list[Block] = [Paragraph("Nothing that needs attention was found.")]
    else:
        blocks = [
            Checks(list(map(_with_advice, findings))),
            *_tables(source.record, [finding for finding in findings if finding.images]),
        ]
    return Section(name="findings", title="What needs attention", part="evidence", blocks=blocks, is_first=True)


def alike_section(source: Source[DataCheckRecord]) -> Section | None:
    """Thumbnails of pictures that are the same or look alike, two of a group; None when there are none."""
    record = source.record
    if not any(len(group) > 1 for finding in record.findings for group in finding.images):
        return None
    blocks: list[Block] = []
    galleries: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for thumbnail in (each for each in source.thumbnails if each.row is None):
        title, _, caption = thumbnail.class_name.partition(": ")
        galleries[title][caption].append(thumbnail.png_base64)
    for finding in record.findings:
        if gallery := galleries.get(finding.title):
            shown = f"The first {len(gallery)} of {count(finding.num_groups)}" if finding.num_groups > len(gallery) else "All"
            blocks += [
                Paragraph(f"{finding.title}. {shown}; numbers are rows of the data, from 1."),
                Gallery(gallery, "pair", in_columns=True),
            ]
    if not blocks:
        blocks.append(Paragraph("No images are shown: none were kept with this run (--no-images).", tone="quiet"))
    return Section(name="alike", title="Pictures that belong together", part="evidence", blocks=blocks)


def columns_section(source: Source[DataCheckRecord]) -> Section | None:
    """How much each column tells of the label; None when there was nothing to measure."""
    columns = source.record.columns
    if not columns:
        return None
    share = NumberFormat(decimals=3)
    label = [(Column("Label"), lambda column: words(column.label))] if any(column.label for column in columns) else []
    table = table_of(
        columns,
        [
            (Column("Column"), lambda column: words(column.column)),
            *label,
            (Column("Balanced accuracy", numeric=True), lambda column: number(column.balanced_accuracy, share)),
            (Column("Guessing", numeric=True), lambda column: number(column.chance, share)),
        ],
        caption="Telling the label from one column alone, on held-out images",
        file_name="columns",
        notes=[
            "Mean over the classes of the share of images told right (fraction) by the class in which the value is most "
            "frequent, cross-validated over five folds; numbers are cut into ten bins of equal counts.",
            "A value that the other folds do not have counts as a guess, so a column of names does not tell anything.",
        ],
    )
    return Section(name="columns", title="Columns and labels", part="evidence", blocks=[table])


def split_differences_section(source: Source[DataCheckRecord]) -> Section | None:
    """How much val and test differ from train; None where there was nothing to compare."""
    differences = source.record.split_differences
    if not differences:
        return None
    share = NumberFormat(decimals=3)
    table = table_of(
        differences,
        [
            (Column("Train against"), lambda each: words(each.split)),
            (Column("Fact of the images"), lambda each: words(each.fact)),
            (Column("Effect", numeric=True), lambda each: number(each.effect, share)),
            (Column("p", numeric=True), lambda each: number(each.p_value, share)),
            (Column("Found"), lambda each: words(each.found)),
            (Column("Warning"), lambda each: words("yes" if each.matters else "no")),
        ],
        caption="Differences between the splits that came with the data",
        file_name="split_differences",
        notes=[
            "Effect: 0 (alike) to 1. For numbers the largest gap of the two distribution functions, else the share of images "
            "that would need another value; with several labels per image the largest difference of one label's share.",
            "p: permutation test that moves whole groups, adjusted by Holm over all rows of this table. Small p and small effect "
            "together are no warning: in many images every difference is more than chance.",
        ],
    )
    return Section(name="split_differences", title="Train against other splits", part="evidence", blocks=[table])


def looked_at_section(source: Source[DataCheckRecord]) -> Section:
    """What could not be assessed and what was found in order."""
    others = [finding for finding in source.record.findings if finding.severity not in _ADVISORY]
    blocks: list[Block] = [Checks(others)] if others else [Paragraph("Every check found something.", tone="quiet")]
    return Section(name="checks", title="What else was checked", part="checks", blocks=blocks)


def checked_data_section(source: Source[DataCheckRecord]) -> Section:
    """Counts, split, groups and kinds of images."""
    data = source.record.dataset
    kinds = sorted(data.image_kinds.items(), key=lambda item: -item[1])
    facts = Facts(
        [
            ("Images", f"{count(data.num_images)} from {data.source.replace('_', ' ')}"),
            ("Rows looked at", data.rows_used),
            ("Split", split_in_words(data)),
            ("Groups", describe_groups(data)),
            ("Kinds of images", "; ".join(f"{kind} ({counted(images, 'image')})" for kind, images in kinds)),
            ("Unreadable images", count(data.num_skipped_unreadable)),
            ("Fingerprint", short_fingerprint(data.fingerprint)),
        ],
        essential=("Split", "Kinds of images", "Unreadable images"),
    )
    counts = Folded("Images of each class as a table", [_counts_table(source.record)], page_only=False)
    figure = [_counts(source)] if any(each.row is not None for each in source.thumbnails) else []  # otherwise it comes first
    return Section(name="data", title="Data", part="checks", blocks=[*figure, facts, counts])


def _counts_table(record: DataCheckRecord) -> Table:
    """The images of each class, of all rows and of each split."""
    data = record.dataset
    what = recorded_task(data).noun.capitalize()
    splits = [Column(name, numeric=True) for name in record.split_names]
    rows = [
        [words(name), *(counts(number) for number in [images, *(each[place] for each in record.split_counts)])]
        for place, (name, images) in enumerate(zip(data.class_names, data.class_counts, strict=True))
    ]
    columns = [Column(what), Column("Images", numeric=True), *splits]
    return Table(caption=f"Images of each {what.lower()}", columns=columns, rows=rows, file_name="images")


def _counts(source: Source[DataCheckRecord]) -> Figure:
    record = source.record
    data = record.dataset
    identifier = f"{source.prefix}classes"
    task = recorded_task(data)
    if record.split_names:
        drawn = data.class_names, record.split_names, record.split_counts
        caption = f"Images {task.of} each {task.noun} in {', '.join(record.split_names)}; {count(data.num_images)} in all."
        return figure_for_screens(partial(split_counts_figure, *drawn), identifier=identifier, caption=caption)
    caption = f"Images {task.of} each {task.noun}, {count(data.num_images)} in all; there is no split."
    return Figure([class_balance_figure(data, identifier=identifier)], caption=caption)


def _tables(record: DataCheckRecord, findings: list[FindingRecord]) -> list[Block]:
    """The rows that findings are about, in one table; none where no finding is about single images."""
    if not findings:
        return []
    return [
        table_of(
            findings,
            [
                (Column("Finding"), lambda finding: words(finding.title)),
                (Column("Rows"), lambda finding: _rows(finding, record)),
                (Column("Groups of images", numeric=True), lambda finding: whole(finding.num_groups or None)),
                (Column("Severity"), lambda finding: words(finding.severity)),
            ],
            caption="Findings and their images",
            file_name="findings",
            notes=["Rows count from 1; a + joins images that belong together. findings.csv of the run lists up to 1000 groups."],
        )
    ]


_MOST_LISTED_IMAGES = 16  # in a cell of the table; the CSV beside the page lists more


def _rows(finding: FindingRecord, record: DataCheckRecord) -> Cell:
    """Row numbers, as many as fit; names too where the run has them."""
    shown: list[str] = []
    images = 0
    for group in finding.images:
        images += len(group)
        if images > _MOST_LISTED_IMAGES:
            shown.append("…")
            break
        shown.append(" + ".join(_named(row, record) for row in group))
    return words(", ".join(shown) or None)


def _named(row: int, record: DataCheckRecord) -> str:
    return f"{row} ({record.image_names[row]})" if row in record.image_names else str(row)


REPORT = Kind(
    DataCheckRecord,
    data_check_heading,
    (
        data_check_verdict_section,
        each_class_section,
        findings_section,
        alike_section,
        columns_section,
        split_differences_section,
        looked_at_section,
        checked_data_section,
        provenance_section,
        references_section,
    ),
    terminal=(checked_data_section, findings_section, looked_at_section, data_check_verdict_section),
)
