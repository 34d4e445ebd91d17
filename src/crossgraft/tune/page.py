"""What came of a fine-tuning: the verdict, and every metric on images that nothing was chosen on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from crossgraft.data.describe import describe_classes, describe_groups, known_split
from crossgraft.data.page import data_facts, data_gallery, split_counts_figure
from crossgraft.edit.page import edited_blocks, edited_with
from crossgraft.metrics.page import metrics_by_class, metrics_by_name, metrics_figure, metrics_table, name_of
from crossgraft.metrics.plots import CURVES_TOGETHER, MOST_CURVES, roc_figure
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import guessing, metric_format, metric_in_words, overall, rows_in_words
from crossgraft.records.base import CheckRecord, Thumbnail
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Gallery, Heading, Items, Paragraph, Section, figure_for_screens
from crossgraft.report.checklists_of_runs import checklists_section
from crossgraft.report.explorer import DIAGONAL_IS_RIGHT, explorer_of
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, Table, interval, number, table_of, whole, words
from crossgraft.report.verdict import (
    caveats_of,
    checks_section,
    in_one_line,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.split.page import parts_table
from crossgraft.tasks import Task, num_choices, recorded_task
from crossgraft.tune.caveats import TUNING_CAVEATS, UNSEEN, after_tuning, headline, is_new
from crossgraft.tune.checklist_answers import TUNING_ANSWERS
from crossgraft.tune.page_curves import curves_of_several, curves_section, gradients_section
from crossgraft.tune.page_domains import marks_oracle, unseen_domains_section, unseen_in_words
from crossgraft.tune.page_training import calibration_section, folds_section, grid_section, plan_section, thresholds_section
from crossgraft.tune.record import MOST_PICTURES, MistakeRecord, MistakesRecord, TuningRecord
from crossgraft.tune.words import ADAPTED, CKA, NUMBERS, kind_in_words, meaning_of, similarity_rows
from crossgraft.words.formatting import NumberFormat, count, counted, joined

_WHAT_IT_IS = (
    "CKA says how alike two networks make the features of the test images: 1 is the same up to rotation and scale. The debiased "
    "one of unrelated features is about 0, however few images there are."
)
_STATISTICS = (
    "BatchNorm layers keep means and variances of the images that they were trained on. Images of another kind have others, and "
    "features change with them although no weight does."
)


@marks_oracle
def similarity_section(source: Source[TuningRecord]) -> Section | None:
    """Similarity of the fine-tuned network, and of untouched weights under other statistics; None where it was not measured."""
    record = source.record
    if not record.similarity:
        return None
    meaning = meaning_of(record.similarity, record.batch_norm, from_scratch=record.model.from_scratch)
    blocks: list[Block] = [similarity_table(record.similarity)]
    if meaning is not None:
        blocks.append(Paragraph(meaning))
    blocks.append(Paragraph(_WHAT_IT_IS if meaning is None else f"{_WHAT_IT_IS} {_STATISTICS}", tone="quiet"))
    return Section(name="similarity", title="Similarity to the pretrained network", part="evidence", blocks=blocks)


def similarity_table(similarity: Mapping[str, float]) -> Table:
    """One row of a network without BatchNorm, and two of one that has some; the terminal shows what is debiased."""
    rows = similarity_rows(similarity)
    kinds, has_statistics = next(iter(rows.values())), len(rows) > 1
    return Table(
        caption="Features of the test images, compared with those of the pretrained network",
        columns=[Column("Network"), *(Column(CKA[name], numeric=True, page_only="debiased" not in name) for name in kinds)],
        rows=[[words(name), *(number(value, NUMBERS) for value in values.values())] for name, values in rows.items()],
        file_name="similarity",
        muted_rows=frozenset([1] if has_statistics else []),
        notes=[ADAPTED] if has_statistics else [],
    )


_PROBABILITY = NumberFormat(decimals=3)


@marks_oracle
def answers_section(source: Source[TuningRecord]) -> Section | None:
    """What was taken for what, and every image with its answer; without images, a table of the most certain mistakes."""
    record = source.record
    mistakes, confusion = record.mistakes, record.confusion
    blocks: list[Block] = []
    if mistakes is not None:
        blocks.append(Paragraph(_how_many_wrong(mistakes)))
    pictures = [each for each in source.thumbnails if each.answers]
    if pictures or confusion is not None:
        blocks.append(
            explorer_of(
                source.thumbnails,
                record.dataset.class_names,
                identifier=f"{source.prefix}explorer",
                caption=_about_pictures(pictures, recorded_task(record.dataset)),
                confusion=None if confusion is None else (confusion.counts, DIAGONAL_IS_RIGHT),
            )
        )
    if not pictures and mistakes is not None:
        blocks += _most_certain(mistakes, source)
    if not blocks:
        return None
    return Section(name="answers", title="What it gets right and wrong", part="evidence", blocks=blocks, is_first=True)


def _how_many_wrong(mistakes: MistakesRecord) -> str:
    if not mistakes.num_wrong:
        return f"All {counted(mistakes.num_images, 'image')} had a right answer."
    return f"{count(mistakes.num_wrong)} of {counted(mistakes.num_images, 'image')} had a wrong answer."


def _about_pictures(pictures: Sequence[Thumbnail], task: Task) -> str:
    """How to read them, and how many there are no pictures of."""
    sure = "the probability of the answer" if task.partitions else task.surest.lower()
    full = (
        f" {count(MOST_PICTURES)} images are here, as evenly from all cells as there are."
        if len(pictures) == MOST_PICTURES
        else ""
    )
    return (
        "Wrong answers come first, the surest of them at the front: a label may be wrong, or the picture may show what the model "
        f"really goes by. Certainty is {sure}. Val images took part in picking the model.{full}"
    )


def _most_certain(mistakes: MistakesRecord, source: Source[TuningRecord]) -> list[Block]:
    """Mistakes of a run without answered images: those of an earlier version, or no images at all."""
    shown = len(mistakes.most_certain)
    if not shown:
        return []
    which = f"The {shown} most certain" if shown < mistakes.num_wrong else "All"
    text = Paragraph(f"{which} of them, the surest first; numbers are rows of the data, from 1.")
    pictures = {each.row: each.png_base64 for each in source.thumbnails if each.row is not None}
    if gallery := {_caption(each): [pictures[each.row]] for each in mistakes.most_certain if each.row in pictures}:
        return [text, Gallery(gallery, noun="mistake", in_columns=True)]
    return [text, _table(mistakes.most_certain), Paragraph(_NO_IMAGES, tone="quiet")]


_NO_IMAGES = "No images are shown: none were kept with this run (--no-images)."


def _caption(row: MistakeRecord) -> str:
    return f"Row {row.row}: {row.answer} ({_PROBABILITY(row.probability)}), true {row.target}"


def _table(rows: Sequence[MistakeRecord]) -> Table:
    return table_of(
        rows,
        [
            (Column("Row"), lambda row: whole(row.row)),
            (Column("Answer"), lambda row: words(row.answer)),
            (Column("Probability", numeric=True), lambda row: number(row.probability, _PROBABILITY)),
            (Column("True"), lambda row: words(row.target)),
        ],
        caption="Most certain mistakes",
        file_name="mistakes",
    )


def parts_in_words(record: Any) -> str:
    """The images of each part, or the number of folds.

    >>> parts_in_words(TuningRecord.model_construct(folds=[None, None], splits=[]))
    '2 folds'
    """
    if isinstance(record, TuningRecord) and record.folds:
        return f"{len(record.folds)} folds"
    unseen = record.unseen_domains if isinstance(record, TuningRecord) else None
    if unseen is not None and unseen.is_each:
        return f"{len(unseen.domains)} trainings, each without one {unseen.column}"
    return ", ".join(f"{count(split.num_images)} {split.name}" for split in record.splits)


def tuning_checks_section(source: Source[Any]) -> Section:
    """The checks with the one of leakage, then what the command warned of."""
    record = source.record
    titles = {check.title for check in record.checks}
    checks = list(record.checks)
    if not any("patient" in title.casefold() for title in titles):
        severity = "passed" if record.leakage_checked else "not assessed"
        checks.append(CheckRecord(title="Patient leakage", severity=severity, text=record.leakage))
    section = checks_section(source.showing(record.model_copy(update={"checks": checks})))
    blocks: list[Block] = [*section.blocks]
    if record.warnings:
        blocks += [Paragraph("The command warned:"), Items(record.warnings)]
    return Section(name=section.name, title=section.title, part=section.part, blocks=blocks)


def tuning_data_section(source: Source[Any]) -> Section:
    """The parts of the data with the images of each class, then the facts and small images."""
    record = source.record
    data = record.dataset
    blocks: list[Block] = [Paragraph(record.leakage)]
    if record.splits:
        names = [
            split.name.removeprefix("test of ").removeprefix("test ") for split in record.splits
        ]  # of folds: no room for more
        drawn = data.class_names, names, [split.class_counts for split in record.splits]
        shown = " The first 20 are drawn." if len(data.class_names) > 20 else ""
        task = recorded_task(data)
        caption = f"Images {task.of} each {task.noun} in each part of the data.{shown}"
        figure = figure_for_screens(partial(split_counts_figure, *drawn), identifier=f"{source.prefix}splits", caption=caption)
        blocks += [figure, parts_table(record.splits)]
    blocks += [*edited_blocks(record.edits), Facts(data_facts(data)), *data_gallery(source.thumbnails)]
    return Section(name="data", title="Data and split", part="checks", blocks=blocks)


_GAP = "_gap"  # ends the name of a metric that is the difference of two subgroups


def tuning_heading(source: Source[TuningRecord]) -> Heading:
    """The model and the data, and the verdict in one sentence."""
    record = source.record
    data = record.dataset
    images = f"{counted(data.num_images, 'image')} ({parts_in_words(record)})"
    about = [*known_split(data), describe_classes(data), describe_groups(data), _method(record)]
    summary = " · ".join([images, *about, *edited_with(record.edits)])
    return Heading(
        title=f"{record.model.name} on {data.name}",
        summary=summary,
        advice=in_one_line(_answer(record), caveats_of(source, TUNING_CAVEATS)),
    )


def _method(record: TuningRecord) -> str:
    """What was trained, by the titles of the plug-ins that say it."""
    named = [plugin.named for plugin in record.plugins if kind_in_words(plugin) in ("method", "regulariser")]
    return joined(named) or "fine-tuned"


def tuning_verdict_section(source: Source[TuningRecord]) -> Section:
    """The metric with its interval beside what guessing gives, its biggest caveat, and what to type next."""
    record = source.record
    caveats, picked = caveats_of(source, TUNING_CAVEATS), Paragraph(_picked(record))
    return verdict_section(_answer(record), caveats, after_tuning(source), picked)


def _answer(record: TuningRecord) -> str:
    primary = headline(record)
    if primary is None:
        return "No metric was measured, so nothing can be said about this model."
    if record.unseen_domains is not None:
        return unseen_in_words(record.unseen_domains, num_choices=num_choices(record.dataset))
    held_out = "that each fold held out" if primary.split == "out of fold" else f"of {primary.split}"
    which = _THAT_ARE_NEW if is_new(record, primary) else held_out
    return f"{metric_in_words(primary, guess=guessing(primary.metric, num_choices(record.dataset)), which=which)}."


_THAT_ARE_NEW = "that had no part in training or in picking the model"


def _picked(record: TuningRecord) -> str:
    stored = f" The weights are in the folder {record.saved_model}, with a model card." if record.saved_model else ""
    reason = f" There is no single model: {record.saved_model_reason}." if record.saved_model_reason else ""
    return f"{record.selection_rule.rstrip('.')}.{stored}{reason}"


def _is_a_share(row: MetricRecord) -> bool:
    return row.higher_is_better and row.value is not None and 0 <= row.value <= 1


@marks_oracle
def metrics_section(source: Source[TuningRecord]) -> Section | None:
    """Every metric over all classes and images, one table a part of the data."""
    record = source.record
    rows = overall(record.metrics)
    if not rows:
        return None
    first = [split for split in UNSEEN if any(row.split == split for row in rows)]
    splits = [*first, *dict.fromkeys(row.split for row in rows if row.split not in first)]
    blocks: list[Block] = [Paragraph(_about_intervals(rows), page_only=True)]
    if record.unseen_domains is None or not record.unseen_domains.is_each:  # the figure is about all images at once
        blocks += _of_all_images(source)
    for split in splits:
        here = [row for row in rows if row.split == split]
        table = metrics_table(here, caption=f"Metrics on {rows_in_words(split)}", file_name=f"metrics-{split}")
        blocks.append(table if split == splits[0] else Folded(f"On {rows_in_words(split)}", [table]))
    meanings = dict.fromkeys(f"{row.title}: {row.explanation}" for row in rows if row.explanation and row.split == splits[0])
    if meanings:
        blocks.append(Folded("What each metric says", [Items(list(meanings))]))
    return Section(name="metrics", title="Metrics", part="evidence", blocks=blocks)


def _of_all_images(source: Source[TuningRecord]) -> list[Block]:
    record = source.record
    primary = headline(record)
    split = primary.split if primary is not None else "test"
    rows = [row for row in overall(record.metrics) if row.split == split and _is_a_share(row)]
    return metrics_figure(
        [IntervalRow(row.title, Interval.of(row), row.metric == record.primary_metric) for row in rows],
        x_label="Value (1 is best)",
        identifier=f"{source.prefix}headline",
        caption=f"Each dot is a metric on {rows_in_words(split)}, the line through it its 95 % interval; the square is the "
        "one that this page is about.",
    )


def _about_intervals(rows: Sequence[MetricRecord]) -> str:
    if any(row.num_groups is not None for row in rows):
        return "Intervals count groups, not images: several images of one patient tell less than as many patients."
    return "Without groups every image counts as independent. If patients have several images, intervals are too narrow."


@marks_oracle
def classes_section(source: Source[TuningRecord]) -> Section | None:
    """Metrics of each class, and the ROC curves."""
    record = source.record
    primary = headline(record)
    split = primary.split if primary is not None else "test"
    rows = [r for r in record.metrics if r.class_name is not None and r.attribute is None and r.split == split]
    task = recorded_task(record.dataset)
    blocks: list[Block] = []
    if rows:
        what = task.noun.capitalize()
        caption = f"Metrics of each {what.lower()} on {rows_in_words(split)}"
        blocks.append(metrics_by_class(rows, caption=caption, first=what))
    if record.roc:
        blocks.append(_roc(source))
    if not blocks:
        return None
    return Section(name="classes", title=task.nouns.capitalize(), part="evidence", blocks=blocks)


def _roc(source: Source[TuningRecord]) -> Figure:
    """Every curve, a few in each drawing."""
    curves = source.record.roc
    drawn = curves[:MOST_CURVES]
    drawings = [
        roc_figure(drawn[first : first + CURVES_TOGETHER], identifier=f"{source.prefix}roc-{first}")
        for first in range(0, len(drawn), CURVES_TOGETHER)
    ]
    marks = " The mark on a curve is the threshold that was fitted." if any(c.at_threshold for c in curves) else ""
    left_out = f" {len(curves) - len(drawn)} more stand in report.json." if len(curves) > len(drawn) else ""
    caption = (
        f"One curve per class against all others, on {rows_in_words(curves[0].split)}. A curve near the upper left corner "
        f"separates well; on the dashed line it guesses.{marks}{left_out}"
    )
    return Figure(drawings, caption=caption)


@marks_oracle
def subgroups_section(source: Source[TuningRecord]) -> Section | None:
    """The primary metric in each subgroup, one figure and table an attribute; None without attributes."""
    record = source.record
    whole_metric = headline(record)
    attributes = list(dict.fromkeys(row.attribute for row in record.metrics if row.attribute is not None))
    if not attributes:
        return None
    blocks: list[Block] = [
        Paragraph("A subgroup with few images has a wide interval; overlapping intervals do not show a difference.")
    ]
    for place, attribute in enumerate(attributes):
        rows = [
            row
            for row in record.metrics
            if row.attribute == attribute and row.class_name is None and not row.metric.endswith(_GAP)
        ]
        primary = [row for row in rows if row.metric == record.primary_metric]
        overall_row = [] if whole_metric is None else [IntervalRow("all images", Interval.of(whole_metric), is_overall=True)]
        blocks += metrics_figure(
            [*overall_row, *(IntervalRow(f"{attribute}: {name_of(row)}", Interval.of(row)) for row in primary)],
            x_label=primary[0].title if primary else "",
            identifier=f"{source.prefix}subgroup-{place}",
            caption=f"{primary[0].title if primary else ''} by {attribute}, with 95 % intervals.",
        )
        caption = f"Metrics by {attribute}"
        blocks.append(metrics_by_name(rows, caption=caption, first=attribute, file_name=f"metrics-by-{place}"))
        gaps = [row for row in record.metrics if row.attribute == attribute and row.metric.endswith(_GAP)]
        if gaps:
            blocks.append(_gaps(gaps, attribute, place))
    return Section(name="subgroups", title="Subgroups", part="evidence", blocks=blocks)


def _gaps(rows: Sequence[MetricRecord], attribute: str, place: int) -> Table:
    """The largest difference between two subgroups, one row per metric."""
    as_text = metric_format(rows)
    return table_of(
        rows,
        [
            (Column("Metric"), lambda row: words(row.title)),
            (Column("Between"), lambda row: words(row.attribute_value)),
            (Column("Difference", numeric=True), lambda row: number(row.value, as_text)),
            (INTERVAL, lambda row: interval(row.low, row.high, as_text)),
        ],
        caption=f"Largest differences between values of {attribute}",
        file_name=f"gaps-{place}",
    )


REPORT = Kind(
    TuningRecord,
    tuning_heading,
    (
        tuning_verdict_section,
        answers_section,
        unseen_domains_section,
        metrics_section,
        classes_section,
        subgroups_section,
        calibration_section,
        thresholds_section,
        similarity_section,
        curves_section,
        gradients_section,
        folds_section,
        grid_section,
        tuning_checks_section,
        tuning_data_section,
        plan_section,
        checklists_section,
        provenance_section,
        references_section,
    ),
    terminal=(
        plan_section,
        grid_section,
        folds_section,
        metrics_section,
        classes_section,
        calibration_section,
        thresholds_section,
        similarity_section,
        tuning_checks_section,
        unseen_domains_section,
        tuning_verdict_section,
    ),
    together=curves_of_several,
    answers=TUNING_ANSWERS,
)
