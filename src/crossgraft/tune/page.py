"""What came of a fine-tuning: the verdict, and every metric on images that nothing was chosen on."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.data.summary import describe_classes, describe_groups, known_split
from crossgraft.edit.page_edits import edited_with
from crossgraft.metrics.page import (
    interval_of,
    metrics_by_class,
    metrics_by_name,
    metrics_figure,
    metrics_table,
    name_of,
)
from crossgraft.metrics.plot_confusion import MOST_CONFUSED_CLASSES, confusion_figure
from crossgraft.metrics.plot_roc import roc_figure
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import guessing, metric_format, metric_in_words, overall, rows_in_words
from crossgraft.report.blocks import Block, Figure, Folded, Heading, Items, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, Table, interval, number, table_of, whole, words
from crossgraft.report.verdict import caveats_of, in_one_line, verdict_blocks
from crossgraft.tasks import recorded_task
from crossgraft.tune.caveats import TUNING_CAVEATS, UNSEEN, after_tuning, headline, num_choices
from crossgraft.tune.page_curves import curves_section
from crossgraft.tune.page_data import parts_in_words, tuning_checks_section, tuning_data_section
from crossgraft.tune.page_decisions import calibration_section, thresholds_section
from crossgraft.tune.page_gradients import gradients_section
from crossgraft.tune.page_mistakes import mistakes_section
from crossgraft.tune.page_similarity import similarity_section
from crossgraft.tune.page_training import folds_section, grid_section, plan_section
from crossgraft.tune.plan_words import kind_in_words
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import counted, joined

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
    named = [plugin.title for plugin in record.plugins if kind_in_words(plugin) in ("method", "regulariser")]
    return joined(named) or "fine-tuned"


def tuning_verdict_section(source: Source[TuningRecord]) -> Section:
    """The metric with its interval beside what guessing gives, its biggest caveat, and what to type next."""
    record = source.record
    blocks = [
        *verdict_blocks(_answer(record), caveats_of(source, TUNING_CAVEATS), after_tuning(source)),
        Paragraph(_picked(record)),
    ]
    found = headline(record)
    split = found.split if found is not None else "test"
    rows = [row for row in overall(record.metrics) if row.split == split and _is_a_share(row)]
    blocks += metrics_figure(
        [IntervalRow(row.title, interval_of(row), row.metric == record.primary_metric) for row in rows],
        x_label="Value (1 is best)",
        identifier=f"{source.prefix}headline",
        caption=f"Each dot is a metric on {rows_in_words(split)}, the line through it its 95 % interval; the square is the "
        "one that this page is about.",
    )
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def _answer(record: TuningRecord) -> str:
    found = headline(record)
    if found is None:
        return "No metric was measured, so nothing can be said about this model."
    which = _THAT_ARE_NEW if found.split in UNSEEN else f"of {found.split}"
    return f"{metric_in_words(found, guess=guessing(found.metric, num_choices(record)), which=which)}."


_THAT_ARE_NEW = "that had no part in training or in picking the model"


def _picked(record: TuningRecord) -> str:
    stored = f" The weights are in the folder {record.saved_model}, with a model card." if record.saved_model else ""
    reason = f" There is no single model: {record.saved_model_reason}." if record.saved_model_reason else ""
    return f"{record.selection_rule.rstrip('.')}.{stored}{reason}"


def _is_a_share(row: MetricRecord) -> bool:
    return row.higher_is_better and row.value is not None and 0 <= row.value <= 1


def metrics_section(source: Source[TuningRecord]) -> Section | None:
    """Every metric over all classes and images, one table a part of the data."""
    record = source.record
    rows = overall(record.metrics)
    if not rows:
        return None
    first = [split for split in UNSEEN if any(row.split == split for row in rows)]
    splits = [*first, *dict.fromkeys(row.split for row in rows if row.split not in first)]
    blocks: list[Block] = [Paragraph(_about_intervals(rows), page_only=True)]
    for split in splits:
        here = [row for row in rows if row.split == split]
        table = metrics_table(here, caption=f"Metrics on {rows_in_words(split)}", file_name=f"metrics-{split}")
        blocks.append(table if split == splits[0] else Folded(f"On {rows_in_words(split)}", [table]))
    meanings = dict.fromkeys(
        f"{row.title}: {row.explanation}" for row in rows if row.explanation and row.split == splits[0]
    )
    if meanings:
        blocks.append(Folded("What each metric says", [Items(list(meanings))]))
    return Section(name="metrics", title="Metrics", part="evidence", blocks=blocks)


def _about_intervals(rows: Sequence[MetricRecord]) -> str:
    if any(row.num_groups is not None for row in rows):
        return "Intervals count groups, not images: several images of one patient tell less than as many patients."
    return (
        "Without groups every image counts as independent. If patients have several images, intervals are too narrow."
    )


def classes_section(source: Source[TuningRecord]) -> Section | None:
    """Metrics of each class, the confusion matrix and the ROC curves."""
    record = source.record
    found = headline(record)
    split = found.split if found is not None else "test"
    rows = [r for r in record.metrics if r.class_name is not None and r.attribute is None and r.split == split]
    task = recorded_task(record.dataset)
    blocks: list[Block] = []
    if rows:
        what = task.noun.capitalize()
        caption = f"Metrics of each {what.lower()} on {rows_in_words(split)}"
        blocks.append(metrics_by_class(rows, caption=caption, first=what, file_name="metrics-by-class"))
    blocks += _confusion(source)
    if record.roc:
        blocks.append(_roc(source))
    if not blocks:
        return None
    return Section(name="classes", title=task.nouns.capitalize(), part="evidence", blocks=blocks)


def _confusion(source: Source[TuningRecord]) -> list[Block]:
    confusion = source.record.confusion
    if confusion is None:
        return []
    table = Table(
        caption="Images by true class (rows) and predicted class (columns)",
        columns=[Column("True class"), *(Column(name, numeric=True) for name in confusion.class_names)],
        rows=[
            [words(name), *(whole(images) for images in counts)]
            for name, counts in zip(confusion.class_names, confusion.counts, strict=True)
        ],
        file_name="confusion",
    )
    if len(confusion.class_names) > MOST_CONFUSED_CLASSES:
        return [Folded("Confusion matrix", [table])]
    identifier = f"{source.prefix}confusion"
    wide = confusion_figure(confusion, identifier=identifier)
    narrow = confusion_figure(confusion, identifier=f"{identifier}-narrow", is_narrow=True)
    caption = (
        f"On {rows_in_words(confusion.split)}: each row holds the images of one true class, each column those that were taken "
        "for a class. The diagonal is right, everything beside it wrong; the stronger the colour of a cell, the larger its share "
        "of its row."
    )
    return [Figure([wide], caption=caption, narrow=[narrow]), Folded("The same as a table", [table])]


def _roc(source: Source[TuningRecord]) -> Figure:
    curves = source.record.roc
    drawing = roc_figure(curves, identifier=f"{source.prefix}roc")
    marks = " The mark on a curve is the threshold that was fitted." if any(c.at_threshold for c in curves) else ""
    left_out = f" Not drawn: {len(curves) - 6} more." if len(curves) > 6 else ""
    caption = (
        f"One curve per class against all others, on {rows_in_words(curves[0].split)}. A curve near the upper left corner "
        f"separates well; on the dashed line it guesses.{marks}{left_out}"
    )
    return Figure([drawing], caption=caption)


def subgroups_section(source: Source[TuningRecord]) -> Section | None:
    """The primary metric in each subgroup, one figure and table an attribute; None without attributes."""
    record = source.record
    found = headline(record)
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
        overall_row = [] if found is None else [IntervalRow("all images", interval_of(found), is_overall=True)]
        blocks += metrics_figure(
            [*overall_row, *(IntervalRow(f"{attribute}: {name_of(row)}", interval_of(row)) for row in primary)],
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
        metrics_section,
        classes_section,
        mistakes_section,
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
        tuning_verdict_section,
    ),
)
