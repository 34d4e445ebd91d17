"""What a model says about new images: how many of each class, how sure it is, and which images to look at."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.metrics.harms import errors_of_classes, errors_of_labels, missed_classes, missed_in_words
from crossgraft.metrics.page import metrics_by_class, metrics_table
from crossgraft.metrics.words import NOT_SEEN, guessing, looks_in_words, metric_in_words, overall, too_few_in_words
from crossgraft.models.published_names import licence_in_words
from crossgraft.options.command import DATA, RUN, TypedCommand
from crossgraft.options.models import CodeOptions
from crossgraft.predict.checklist_answers import PREDICTION_ANSWERS
from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Block, Checks, Facts, Figure, Folded, Gallery, Heading, Items, Paragraph, Section
from crossgraft.report.checklists_of_runs import checklists_section
from crossgraft.report.explorer import DIAGONAL_IS_RIGHT, explorer_of
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import certainty_figure
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, whole, words
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
from crossgraft.tasks import num_choices, recorded_task
from crossgraft.tune.page_training import thresholds_table
from crossgraft.tune.predictions import UNREADABLE
from crossgraft.tune.record import MOST_PICTURES, PredictionRecord, PredictionRow
from crossgraft.words.formatting import NumberFormat, count, counted, joined, percent, short_fingerprint

FEWEST_WAYS = 5
"""Classes of an episode of the usual sampler, unless it is told another number."""

OTHER_IMAGES = (
    "Whether these images are like those of training (scanner, hospital, patients) was not checked. The model also answers for "
    "pictures that show none of its classes."
)
SAME_IMAGES = (
    "These rows are a part of the data that the model was fine-tuned on, and of the same kind (scanner, hospital): on other "
    "images it may do worse, and they say no more than the report of the fine-tuning."
)
NOT_KNOWN = (
    "Whether the model has learned from some of these images is not known: it was handed over without its run. Give the run "
    "directory to have them found."
)
SEEN, NEW = "seen in training", "not seen in training"
"""Parts of the images, where it is known what the model has learned from."""
_TEST_ROWS = ("--use-split", "test")
_LABELLED = "LABELLED_IMAGES"


def worth_in_words(record: PredictionRecord) -> str:
    """The best evidence of how far to trust the answers: measured here, else on the test images of the fine-tuning."""
    here, before = _told(record)
    if here:
        return f"{here.rstrip('.')}."
    if before:
        return f"When it was fine-tuned: {before.rstrip('.')}."
    return "How good such predictions are was not measured: neither here nor on test images of the model."


def _told(record: PredictionRecord) -> tuple[str, str]:
    """The primary metric in words: here, and on test images of the model; empty where it was not measured."""
    headline = recorded_task(record).primary_metric  # as where it was fine-tuned
    guess = guessing(headline, num_choices(record))
    is_too_high = any(NOT_SEEN in text for text in record.warnings)
    which = "that it had not seen" if record.num_seen and not is_too_high else ""
    here = [metric_in_words(row, guess=guess, which=which) for row in overall(record.metrics) if row.metric == headline]
    before = [
        metric_in_words(row, guess=guess, which=f"of {row.split}")
        for row in overall(record.training_metrics)
        if row.split in ("test", "out of fold", "unseen domains") and row.metric == headline
    ]
    return next(iter(here), ""), next(iter(before), "")


def _warned(source: Source[PredictionRecord]) -> Caveat | None:
    """What the command warned of, images of the fine-tuning above all."""
    record = source.record
    if not record.warnings:
        return None
    seen = next((text for text in record.warnings if NOT_SEEN in text), None)
    if seen is None:
        return Caveat(" ".join(record.warnings), Gravity.LIMITED)
    typed = source.typed
    has_test = _TEST_ROWS[0] in seen and typed.verb == "predict" and typed.value(_TEST_ROWS[0]) != _TEST_ROWS[1]
    line = typed.again(_TEST_ROWS) if has_test else _of_others(typed)
    return Caveat(seen, Gravity.WRONG, Following(line, "to predict images that had no part in it"))


def _may_be_guessing(source: Source[PredictionRecord]) -> Caveat | None:
    """The interval that was measured here contains what guessing gives."""
    primary = recorded_task(source.record).primary_metric
    known = [row for row in overall(source.record.metrics) if row.metric == primary]
    doubt = too_few_in_words(known[0], num_choices(source.record)) if known else None
    return None if doubt is None else Caveat(doubt, Gravity.EMPTY)


def _missed_class(source: Source[PredictionRecord]) -> Caveat | None:
    """A class that is missed, or taken for another, more often than the others, of images that the model had not seen."""
    record = source.record
    task = recorded_task(record)
    if not record.metrics:
        return None
    if not task.partitions:
        return missed_in_words(missed_classes(errors_of_labels(record.metrics)), task)
    return missed_in_words(missed_classes(errors_of_classes(record.class_names, _counted(record), record.metrics)), task)


def _counted(record: PredictionRecord) -> list[list[int]]:
    """Images of each true class (rows) and answer; those that the model has learned from only where it has from all."""
    places = {name: place for place, name in enumerate(record.class_names)}
    counts = [[0] * len(places) for _ in places]
    every_row = all(row.seen for row in record.rows if row.target is not None)
    for row in record.rows:
        if row.target in places and row.decision in places and (every_row or not row.seen):
            counts[places[row.target]][places[row.decision]] += 1
    return counts


def _not_measured(source: Source[PredictionRecord]) -> Caveat | None:
    """The true classes are not known."""
    here, before = _told(source.record)
    if here:
        return None
    text = "The true classes of these images are not known, so how good these predictions are was not measured"
    carried = "; the result of the fine-tuning carries over only to images of the same kind" if before else ""
    measure = Following(_of_others(source.typed, _LABELLED), "to measure it on images whose classes are known")
    return Caveat(f"{text}{carried}.", Gravity.EMPTY, measure)


def _unreadable(source: Source[PredictionRecord]) -> Caveat | None:
    number = source.record.num_unreadable
    are = "is" if number == 1 else "are"
    return Caveat(f"{counted(number, 'image')} could not be read and {are} left out.", Gravity.HARM) if number else None


def _looked_at_before(source: Source[PredictionRecord]) -> Caveat | None:
    """Which model is the best was seen on these images."""
    text = looks_in_words(source.record.looks, recorded_task(source.record).primary_metric)
    return None if text is None else Caveat(text, Gravity.FLATTERED)


def _same_images(source: Source[PredictionRecord]) -> Caveat | None:
    """The test images of the fine-tuning tell nothing that its report does not."""
    record = source.record
    if not record.is_of_run or any(NOT_SEEN in text for text in record.warnings):
        return None
    return Caveat(
        SAME_IMAGES, Gravity.LIMITED, Following(_of_others(source.typed, _LABELLED), "to measure it on images from elsewhere")
    )


def _other_images(source: Source[PredictionRecord]) -> Caveat | None:
    return None if source.record.is_of_run else Caveat(OTHER_IMAGES, Gravity.UNCHECKED)


def seen_is_unknown(record: PredictionRecord) -> bool:
    """Whether some of the images may be among those that the model has learned from."""
    return record.num_seen is None and not record.is_of_run and not any(NOT_SEEN in text for text in record.warnings)


def _perhaps_seen(source: Source[PredictionRecord]) -> Caveat | None:
    """Metrics may be too high."""
    return Caveat(NOT_KNOWN, Gravity.EMPTY) if source.record.metrics and seen_is_unknown(source.record) else None


def _not_calibrated(source: Source[PredictionRecord]) -> Caveat | None:
    """What the probabilities of a few-shot head are not."""
    record = source.record
    if record.head is None:
        return None
    images = counted(record.num_support or 0, "image")
    return Caveat(
        f"The head learned from {images}, and its probabilities are not calibrated: they say an order and no risk.",
        Gravity.LIMITED,
    )


PREDICTION_CAVEATS: tuple[CaveatOf[PredictionRecord], ...] = (
    *(_warned, _not_measured, _perhaps_seen, _may_be_guessing, _missed_class, _unreadable),
    *(_not_calibrated, _looked_at_before, _same_images, _other_images),
)
"""The most severe first, in the order of ``report.verdict``."""


def after_prediction(source: Source[PredictionRecord]) -> Following:
    """To hand the model on, or to measure the head on many tasks."""
    typed = source.typed
    record = source.record
    if record.head is not None:
        heads = ",".join(dict.fromkeys([typed.value("--head") or record.head, "ncc", "logistic"]))
        flags = [("--heads", heads), ("--model", typed.value("--model") or record.model.name)]
        if len(record.class_names) < FEWEST_WAYS:
            flags.append(("--sampler", f"meta_dataset:min_ways={len(record.class_names)}"))
        line = typed.then("fewshot", typed.value("--support") or DATA, flags=flags)
        return Following(line, "to measure such heads on many tasks drawn from labelled images, if there are more")
    return Following(typed.then("export", _run(typed)), "to hand the model on without crossgraft")


def _of_others(typed: TypedCommand, images: str = "OTHER_IMAGES") -> str:
    if typed.has("--support"):
        return typed.again(("--query", images))
    return typed.then("predict", _run(typed), images, carried=[CodeOptions])


def _run(typed: TypedCommand) -> str:
    return typed.inputs[0] if typed.verb == "predict" and len(typed.inputs) > 1 else RUN


_PROBABILITY = NumberFormat(decimals=3)
_MOST_ROWS = 500
_MOST_CLASSES = 12


def prediction_heading(source: Source[PredictionRecord]) -> Heading:
    """The data and the model."""
    record = source.record
    images, classes = _images_used(record), joined(record.class_names)
    calibrated = "calibrated" if record.temperature is not None else "probabilities not calibrated"
    summary = f"{images} · {record.model.name}, {_learned(record)} · {classes} · {calibrated}"
    return Heading(
        title=f"Predictions for {record.data_name}",
        summary=summary,
        advice=in_one_line(_answer(record), caveats_of(source, PREDICTION_CAVEATS)),
    )


def _images_used(record: PredictionRecord) -> str:
    """How many, and which part of the data, where not all of them were asked for."""
    images = counted(record.num_images, "image")
    return f"{images}, {record.rows_used}" if record.rows_used and not record.rows_used.startswith("all ") else images


def _learned(record: PredictionRecord) -> str:
    if record.head is None:
        return f"fine-tuned on {record.model_trained_on}"
    return f"{record.head} adapted to {counted(record.num_support or 0, 'image')} of {record.model_trained_on}"


def prediction_verdict_section(source: Source[PredictionRecord]) -> Section:
    """How many images of each class, and how good such answers were on the test images of the model."""
    record = source.record
    return verdict_section(_answer(record), caveats_of(source, PREDICTION_CAVEATS), after_prediction(source))


def counts_section(source: Source[PredictionRecord]) -> Section:
    """Images of each predicted class, and how sure the model is of them."""
    blocks: list[Block] = [_counts(source.record), _certainty(source)]
    return Section(name="counts", title="How many of each class, and how sure", part="evidence", blocks=blocks)


def _answer(record: PredictionRecord) -> str:
    """How good such answers are, and how many images got which."""
    counts = sorted(record.predicted_counts.items(), key=lambda item: -item[1])
    shares = [f"{name}: {count(number)} ({percent(number / max(record.num_images, 1))})" for name, number in counts if number]
    more = f" and {counted(len(shares) - _MOST_CLASSES, 'more class', 'more classes')}" if len(shares) > _MOST_CLASSES else ""
    several = "" if recorded_task(record).partitions else "; an image may have several"
    predicted = f"Predicted for {counted(record.num_images, 'image')} – {'; '.join(shares[:_MOST_CLASSES])}{more}{several}."
    return f"{worth_in_words(record)} {predicted}"


def _counts(record: PredictionRecord) -> Table:
    task = recorded_task(record)
    what = task.noun.capitalize()
    true = [row.target for row in record.rows if row.target is not None]
    columns = [Column(what), Column("Predicted", numeric=True), Column("Share", numeric=True)]
    if true and task.partitions:
        columns.append(Column("True", numeric=True))
    rows = [
        [
            words(name),
            whole(images, count(images)),
            number(images / max(record.num_images, 1), NumberFormat(decimals=2)),
            *([whole(true.count(name))] if len(columns) > 3 else []),
        ]
        for name, images in record.predicted_counts.items()
    ]
    return Table(caption=f"Images of each {what.lower()}", columns=columns, rows=rows, file_name="counts")


def _certainty(source: Source[PredictionRecord]) -> Figure:
    record = source.record
    certainties = [row.certainty for row in record.rows if row.certainty is not None]
    task = recorded_task(record)
    lowest = task.lowest_certainty(len(record.class_names))
    drawing = certainty_figure(certainties, x_label=task.surest, lowest=lowest, identifier=f"{source.prefix}certainty")
    how = "calibrated by the temperature of the model" if record.temperature is not None else "not calibrated"
    shade = f" Below {lowest:.2g} (shaded) it cannot be." if lowest else ""
    return Figure([drawing], caption=f"How sure the model is, {counted(len(certainties), 'image')}; {how}.{shade}")


def pictures_section(source: Source[PredictionRecord]) -> Section | None:
    """Every image with its answer, and what was taken for what where the true classes are known; None without images."""
    record = source.record
    pictures = [each for each in source.thumbnails if each.answers]
    if not pictures:
        return None
    first = "Wrong answers come first, the surest of them at the front" if record.metrics else "The least sure come first"
    full = f" {count(MOST_PICTURES)} images are here, as evenly from all answers as there are."
    is_known = recorded_task(record).partitions and any(row.target in record.class_names for row in record.rows)
    not_counted = (
        " Images that the model has learned from are not counted." if {SEEN, NEW} <= {each.split for each in pictures} else ""
    )
    explorer = explorer_of(
        pictures,
        record.class_names,
        identifier=f"{source.prefix}explorer",
        caption=f"{first}. Look at the surest as well: a mistake among them often shows what the model really goes by."
        f"{full if len(pictures) == MOST_PICTURES else ''}",
        confusion=(_counted(record), DIAGONAL_IS_RIGHT + not_counted) if is_known else None,
        without=SEEN,
    )
    return Section(name="answers", title="Image by image", part="evidence", blocks=[explorer], is_first=True)


def certain_section(source: Source[PredictionRecord]) -> Section | None:
    """The most and the least certain images, where not all are shown: in runs of earlier versions, and without images."""
    record = source.record
    if not record.most_certain or any(each.answers for each in source.thumbnails):
        return None
    pictures = {thumbnail.class_name: thumbnail.png_base64 for thumbnail in source.thumbnails}
    rows = {row.row: row for row in record.rows}
    blocks: list[Block] = [
        Paragraph(
            "Look at both: a mistake among the most certain images often shows what the model really goes by; the least certain "
            "ones are worth a second opinion."
        )
    ]
    for title, numbers in (("Most certain", record.most_certain), ("Least certain", record.least_certain)):
        chosen = [rows[row] for row in numbers]
        shown = {_caption(row, record): [pictures[str(row.row)]] for row in chosen if str(row.row) in pictures}
        blocks.append(Paragraph(f"{title}:") if shown else _table(chosen, record, caption=f"{title} images"))
        if shown:
            blocks.append(Gallery(shown, noun="row", in_columns=True))
    if not pictures:
        blocks.append(Paragraph("No images are shown: none were kept with this run (--no-images).", tone="quiet"))
    return Section(name="certain", title="Most and least certain images", part="evidence", blocks=blocks)


def _caption(row: PredictionRow, record: PredictionRecord) -> str:
    probability = row.probability_of_decision(record.class_names)
    true = f", true {row.target}" if row.target is not None else ""
    name = f" {row.name}" if row.name else ""
    return f"Row {row.row}{name}: {row.decision} ({_PROBABILITY(probability)}){true}"


def measured_section(source: Source[PredictionRecord]) -> Section | None:
    """Metrics on these images, where their true classes are known; None elsewhere."""
    record = source.record
    rows = overall(record.metrics)
    if not rows:
        return None
    blocks: list[Block] = [metrics_table(rows, caption="Metrics on these images", file_name="metrics")]
    by_class = [row for row in record.metrics if row.class_name is not None]
    if by_class:
        what = recorded_task(record).noun
        caption = f"Metrics of each {what} on these images"
        blocks.append(metrics_by_class(by_class, caption=caption, first=what.capitalize()))
    before = overall(record.training_metrics)
    if before:
        blocks.append(Folded("As measured when the model was fine-tuned", [_before(record)]))
    return Section(name="measured", title="How good the predictions are", part="evidence", blocks=blocks)


def _before(record: PredictionRecord) -> Table:
    caption = f"Metrics of the model on {record.model_trained_on}"
    return metrics_table(overall(record.training_metrics), caption=caption, file_name="metrics-before")


def rows_section(source: Source[PredictionRecord]) -> Section:
    """The first rows; all of them are in ``predictions.csv``."""
    record = source.record
    table = _table(record.rows[:_MOST_ROWS], record, caption="Predictions")
    left_out = len(record.rows) - _MOST_ROWS
    note = (
        f"{counted(left_out, 'more row')} are in predictions.csv." if left_out > 0 else "Names of files are in predictions.csv."
    )
    if record.rows_used and not record.rows_used.startswith("all "):
        note = f"Rows are counted from 1 among the images that were predicted, not among all of the data. {note}"
    blocks: list[Block] = [Paragraph(note), Folded(counted(min(len(record.rows), _MOST_ROWS), "row"), [table], page_only=False)]
    return Section(name="rows", title="Every image", part="evidence", blocks=blocks)


def _table(rows: Sequence[PredictionRow], record: PredictionRecord, *, caption: str) -> Table:
    classes = record.class_names[:_MOST_CLASSES]
    named = any(row.name for row in rows)
    with_targets = any(row.target is not None for row in rows)
    with_seen = any(row.seen for row in rows)
    columns = [
        Column("Row"),
        *([Column("Image")] if named else []),
        Column("Decision"),
        Column("Probability", numeric=True),
        *([Column("True")] if with_targets else []),
        *([Column("Seen")] if with_seen else []),
        *(Column(name, numeric=True, page_only=True) for name in classes),
    ]
    cells = [
        [
            whole(row.row),
            *([words(row.name)] if named else []),
            words(row.decision),
            number(row.probability_of_decision(record.class_names), _PROBABILITY),
            *([words(row.target)] if with_targets else []),
            *([words("yes" if row.seen else None)] if with_seen else []),
            *(number(value, _PROBABILITY) for value in (row.probabilities or [None] * len(classes))[: len(classes)]),
        ]
        for row in rows
    ]
    notes = [f"Row {row.row}: {row.reason.rstrip('.')}." for row in rows if row.reason]
    if len(record.class_names) > len(classes):
        notes.append(f"Probabilities of the first {len(classes)} of {len(record.class_names)} classes.")
    return Table(caption=caption, columns=columns, rows=cells, file_name=caption.lower().replace(" ", "-"), notes=notes)


def prediction_checks_section(source: Source[PredictionRecord]) -> Section:
    """Warnings, unreadable images, and what cannot be known."""
    record = source.record
    checks = [CheckRecord(title="Warning", severity="warning", text=text) for text in record.warnings]
    if record.num_unreadable:
        rows = [str(row.row) for row in record.rows if row.decision == UNREADABLE]
        verb = "cannot be decoded and has" if record.num_unreadable == 1 else "cannot be decoded and have"
        which = "row" if len(rows) == 1 else "rows"
        text = f"{counted(record.num_unreadable, 'image')} {verb} no prediction: {which} {joined(rows)}."
        checks.append(CheckRecord(title="Unreadable images", severity="warning", text=text))
    if seen_is_unknown(record):
        checks.append(CheckRecord(title="Images that were trained on", severity="not assessed", text=NOT_KNOWN))
    if record.is_of_run:
        checks.append(CheckRecord(title="Images of the fine-tuning", severity="notice", text=SAME_IMAGES))
    else:
        checks.append(CheckRecord(title="Other images than in training", severity="not assessed", text=OTHER_IMAGES))
    blocks: list[Block] = [Checks(checks), *([Items(record.notes)] if record.notes else [])]
    return Section(name="checks", title="What was checked", part="checks", blocks=blocks)


def model_section(source: Source[PredictionRecord]) -> Section:
    """The model, its temperature and its thresholds."""
    record = source.record
    model = record.model
    facts = [
        ("Model", f"{model.name}: {model.architecture} ({model.source}), {_learned(record)}"),
        ("Licence of the pretrained weights", licence_in_words(model.licence, model.name)),
        ("Images become", model.preprocessing.description),
        ("Temperature", "none" if record.temperature is None else f"{record.temperature:.3g}"),
        *([] if record.thresholds else [("Decision", recorded_task(record).default_decision)]),
        ("Fingerprint of the weights", short_fingerprint(record.model_fingerprint)),
        ("Images a second", "—" if record.images_per_second is None else f"{record.images_per_second:.0f}"),
    ]
    blocks: list[Block] = [Facts(facts), *([thresholds_table(record.thresholds)] if record.thresholds else [])]
    if overall(record.training_metrics) and not record.metrics:
        blocks.append(_before(record))
    return Section(name="model", title="Model", part="checks", blocks=blocks)


REPORT = Kind(
    PredictionRecord,
    prediction_heading,
    (
        prediction_verdict_section,
        pictures_section,
        counts_section,
        certain_section,
        measured_section,
        rows_section,
        prediction_checks_section,
        model_section,
        checklists_section,
        provenance_section,
        references_section,
    ),
    terminal=(rows_section, counts_section, measured_section, prediction_checks_section, prediction_verdict_section),
    only_in_the_file=("rows",),
    answers=PREDICTION_ANSWERS,
)
