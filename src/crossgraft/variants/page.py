"""Several fine-tunings of one model: the answer, quality against similarity, the numbers of each, and what differs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from crossgraft.data.describe import describe_classes, describe_groups, known_split
from crossgraft.edit.page import edited_with
from crossgraft.interpolate.plot_trade_off import TradeOff, trade_off_figure
from crossgraft.interpolate.record import InterpolationRecord, curve_of, joined_in
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import metric_name_in_words
from crossgraft.report.blocks import Block, Figure, Folded, Heading, Items, Paragraph, Section, figure_for_screens
from crossgraft.report.explorer import explorer_of
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.layers import MOST_NAMED_CLASSES, Panel, layer_pca_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, table_of, whole, words
from crossgraft.report.verdict import caveats_of, in_one_line, provenance_section, references_section, verdict_section
from crossgraft.tune.page import parts_in_words, tuning_checks_section, tuning_data_section
from crossgraft.tune.page_domains import marks_oracle
from crossgraft.tune.words import ADAPTED, CKA, untouched_in_words
from crossgraft.variants.page_domains import compared_domains_section
from crossgraft.variants.record import (
    ComparedTrainingRecord,
    ComparedVariantRecord,
    DifferenceRecord,
    FineTuningComparisonRecord,
    LayerPcaRecord,
    ValueRecord,
)
from crossgraft.variants.words import (
    COMPARISON_CAVEATS,
    NUMBERS,
    after_comparison,
    best_in_words,
    curve_in_words,
    details_in_words,
    untouched_similarity,
)
from crossgraft.words.formatting import NumberFormat, count, counted, duration, joined, magnitude, size


def layer_section(source: Source[FineTuningComparisonRecord]) -> Section | None:
    """One panel per variant, and the reasons where there is none; None where no layer was asked for."""
    pca = source.record.layer_pca
    if pca is None:
        return None
    panels = [Panel(each.variant, each.points, each.shares) for each in pca.panels if each.shares is not None]
    blocks: list[Block] = []
    if panels:
        draw = partial(layer_pca_figure, panels, pca.classes, pca.class_names)
        blocks.append(figure_for_screens(draw, identifier=f"{source.prefix}layer", caption=_caption(pca)))
    reasons = [f"{each.variant}: {each.reason}." for each in pca.panels if each.reason is not None]
    if reasons:
        blocks.append(Items(reasons))
    return Section(name="layer", title="Features of a layer", part="evidence", blocks=blocks)


def _caption(pca: LayerPcaRecord) -> str:
    drawn = len(pca.classes)
    some = f", of which {drawn} are drawn" if drawn < pca.num_images else ""
    unnamed = (
        f" The {len(set(pca.classes))} classes are too many to be named." if len(set(pca.classes)) > MOST_NAMED_CLASSES else ""
    )
    return (
        f"Output of the layer {pca.layer}, averaged over positions, for {counted(pca.num_images, 'test image')}{some}, with "
        f"seed {pca.seed}: a dot is an image, its mark the true class.{unnamed} Each network has principal components of its "
        "own, with the share of its variance along each of them, so shapes and shares can be compared between panels, but not "
        "places, directions and units. Signs are those nearest to the first panel. Two components are a view of many; classes "
        "that overlap here may be apart in others."
    )


def trade_off(record: FineTuningComparisonRecord, *, prefix: str) -> list[Block]:
    """Quality against similarity, biased as in the literature, then debiased; nothing without two variants to draw.

    All stand at their similarity to one network: the adapted one where a variant started from it. Where others did not, the
    figure of the network as it came is folded away below.
    """
    if sum(row.metric.value is not None and row.cka.value is not None for row in record.variants) < 2:
        return []
    modes = {row.batch_norm for row in record.variants if row.metric.value is not None}
    adapted = "adapt" in modes
    caption = _trade_off_caption(record, adapted=adapted)
    debiased = _trade_off(record, "cka_debiased", prefix, caption=_DEBIASED_CAPTION, adapted=adapted)
    blocks: list[Block] = [
        _trade_off(record, "cka", prefix, caption=caption, adapted=adapted),
        Folded("The same against the debiased CKA", [debiased]),
    ]
    if adapted and len(modes) > 1:
        figure = _trade_off(record, "cka", prefix, caption=_AS_IT_CAME_CAPTION)
        blocks.append(Folded("The same against the network as it came", [figure]))
    return blocks


_DEBIASED_CAPTION = (
    "The CKA that papers report is biased: that of unrelated features is above 0, the more the fewer images there are. The "
    "debiased one of unrelated features is about 0."
)


_AS_IT_CAME_CAPTION = (
    "Variants whose BatchNorm was not adapted started here. Of the others, and of the curve, re-estimated statistics lower this "
    "similarity before any weight has changed."
)


def _trade_off(record: FineTuningComparisonRecord, measure: str, prefix: str, *, caption: str, adapted: bool = False) -> Figure:
    kind, compared = (f"{measure}_adapted", "adapted") if adapted else (measure, "pretrained")
    short = "Similarity (CKA)" if measure == "cka" else "Similarity (debiased CKA)"
    label = short.replace("Similarity", f"Similarity to the {compared} features")
    points = [
        TradeOff(row.variant, Interval.of(_trade_off_similarity(row, kind)), Interval.of(row.metric), row.sweep, row.strength)
        for row in record.variants
    ]
    curve = curve_of(record.interpolation, kind, record.primary_metric)
    joined = joined_in(record.interpolation, kind)
    draw = partial(trade_off_figure, points, curve, joined, x_label=label, short=short, y_label=f"{record.metric_title} on test")
    return figure_for_screens(draw, identifier=f"{prefix}trade-off-{kind}", caption=caption)


def _trade_off_caption(record: FineTuningComparisonRecord, *, adapted: bool) -> str:
    several = len(record.seeds) > 1
    dot = f"the mean over {len(record.seeds)} seeds" if several else "one training"
    under = " under BatchNorm statistics of the training images, where a variant started" if adapted else ""
    text = f"Each dot is one way to fine-tune ({dot}): up is better, right is more like the pretrained network{under}. "
    text += "Thin lines are 95 % intervals, cut off at the frame. "
    if any(row.sweep is not None for row in record.variants):
        text += "Thick lines join one plug-in with different strengths; a number alone is such a strength. "
    if record.interpolation:
        text += (
            "The dashed curve interpolates the weights of the pretrained network and of full, which costs no training: a way to "
            "fine-tune is worth its time where it lies above. Its small dots were measured; a line joins two of them where the "
            "similarity changes little from one to the next, and a gap says that nothing is known there. "
        )
    return text.rstrip()


def _trade_off_similarity(row: ComparedVariantRecord, kind: str) -> ValueRecord:
    by_kind = {
        "cka": row.cka,
        "cka_debiased": row.cka_debiased,
        "cka_adapted": row.cka_adapted,
        "cka_debiased_adapted": row.cka_debiased_adapted,
    }
    return by_kind[kind] or ValueRecord(value=None)


_SECONDS = NumberFormat(decimals=1)
_RATIO = NumberFormat(decimals=2)


def comparison_heading(source: Source[FineTuningComparisonRecord]) -> Heading:
    """Model and data, and the answer."""
    record = source.record
    data = record.dataset
    many = f"{counted(len(record.variants), 'way', 'ways')} to fine-tune, {counted(len(record.seeds), 'seed')}"
    parts = parts_in_words(record)
    if record.domains is not None and record.domains.is_each:
        parts = f"each {record.domains.column} left out in turn"
    images = f"{counted(data.num_images, 'image')} ({parts})"
    about = [*known_split(data), describe_classes(data), describe_groups(data), many]
    summary = " · ".join([images, *about, *edited_with(record.edits)])
    return Heading(
        title=f"{record.model.name} on {data.name}",
        summary=summary,
        advice=in_one_line(best_in_words(record), caveats_of(source, COMPARISON_CAVEATS)),
    )


def comparison_verdict_section(source: Source[FineTuningComparisonRecord]) -> Section:
    """The answer, what limits it, and the figure of quality against similarity."""
    record = source.record
    caveats = caveats_of(source, COMPARISON_CAVEATS)
    shown = [caveat.text for caveat in caveats]
    more = [Paragraph(text) for text in (details_in_words(record), record.interval_words) if text and text not in shown]
    figure = trade_off(record, prefix=source.prefix)
    return verdict_section(best_in_words(record), caveats, after_comparison(source), *more, *figure)


def side_by_side_section(source: Source[FineTuningComparisonRecord]) -> Section | None:
    """Every test image with what each way to fine-tune said of it; None without images."""
    if not any(each.answers for each in source.thumbnails):
        return None
    seeds = f" Answers are those of the first seed, {source.record.seeds[0]}." if len(source.record.seeds) > 1 else ""
    explorer = explorer_of(
        source.thumbnails,
        source.record.dataset.class_names,
        identifier=f"{source.prefix}explorer",
        caption=f"Test images, those with a wrong answer first; open one to see all answers.{seeds}",
    )
    return Section(name="answers", title="Image by image", part="evidence", blocks=[explorer], is_first=True)


@marks_oracle
def variants_section(source: Source[FineTuningComparisonRecord]) -> Section:
    """Every variant with all that was measured, the best first, and what it sets."""
    record = source.record
    return Section(
        name="variants", title="Every way to fine-tune", part="evidence", blocks=[variants_table(record), *_settings(record)]
    )


def variants_table(record: FineTuningComparisonRecord) -> Table:
    """Every variant with all that was measured, the best first."""
    untouched = untouched_in_words(untouched_similarity(record))
    return table_of(
        record.variants,
        [
            (Column("Variant"), lambda row: words(row.named)),
            (Column(record.metric_title, numeric=True), lambda row: number(row.metric.value, NUMBERS)),
            (INTERVAL, lambda row: interval(row.metric.low, row.metric.high, NUMBERS)),
            (Column("Accuracy", numeric=True), lambda row: number(row.accuracy.value, NUMBERS)),
            (Column(CKA["cka"], numeric=True), lambda row: number(row.cka.value, NUMBERS)),
            (Column(CKA["cka_debiased"], numeric=True), lambda row: number(row.cka_debiased.value, NUMBERS)),
            *(_of_batch_norm() if any(row.batch_norm is not None for row in record.variants) else []),
            *(_of_cost() if any(row.multiply_adds is not None for row in record.variants) else []),
            (Column("Time / full", numeric=True), lambda row: number(row.time_ratio, _RATIO)),
            (Column("Seconds", numeric=True), lambda row: number(row.seconds, _SECONDS)),
            *([_done()] if len(record.seeds) > 1 or any(row.num_failed for row in record.variants) else []),
        ],
        caption="Ways to fine-tune, the best first",
        file_name="variants",
        notes=[*([] if untouched is None else [f"{untouched}.", ADAPTED]), f"Trained in {duration(record.seconds)} in all."],
    )


_FLOPS = (
    "#Trained: parameters that are trained, those of regularisers among them. #FLOPs: multiply–adds of the forward pass of an "
    "image in training, with reconstructors. Memory: of training, as planned."
)


def _of_cost() -> list[tuple[Column, Callable[[ComparedVariantRecord], Cell]]]:
    """What a variant takes beside time."""
    return [
        (Column("#Trained", numeric=True, page_only=True), lambda row: whole(row.num_trained)),
        (
            Column("#FLOPs", numeric=True, page_only=True),
            lambda row: whole(row.multiply_adds, None if row.multiply_adds is None else magnitude(row.multiply_adds)),
        ),
        (
            Column("Memory", numeric=True, page_only=True),
            lambda row: whole(row.peak_bytes, None if row.peak_bytes is None else size(row.peak_bytes)),
        ),
    ]


def _done() -> tuple[Column, Callable[[ComparedVariantRecord], Cell]]:
    """How many trainings of a variant ended with a model."""
    return (Column("Done", numeric=True), lambda row: whole(row.num_done, f"{row.num_done} of {row.num_done + row.num_failed}"))


def _of_batch_norm() -> list[tuple[Column, Callable[[ComparedVariantRecord], Cell]]]:
    """What only a network with BatchNorm has."""
    debiased = CKA["cka_debiased_adapted"]
    return [
        (Column(debiased, numeric=True), lambda row: number(_value(row.cka_debiased_adapted), NUMBERS)),
        (Column("BatchNorm"), lambda row: words(row.batch_norm)),
    ]


def _value(row: ValueRecord | None) -> float | None:
    return None if row is None else row.value


def _settings(record: FineTuningComparisonRecord) -> list[Block]:
    lines = [f"{row.named}: {', '.join(f'{name} {text}' for name, text in row.settings.items())}." for row in record.variants]
    has_cost = any(row.multiply_adds is not None for row in record.variants)
    return [Folded("What each of them sets", [Items(lines), *([Paragraph(_FLOPS)] if has_cost else [])])]


_Differences = tuple[ComparedVariantRecord, DifferenceRecord, DifferenceRecord]
_TO_THE_CURVE: tuple[tuple[Column, Callable[[_Differences], Cell]], ...] = (
    (Column("Minus curve", numeric=True), lambda line: number(line[2].value, NUMBERS)),
    (
        Column("95 % interval", numeric=True, csv_titles=("curve low", "curve high")),
        lambda line: interval(line[2].low, line[2].high, NUMBERS),
    ),
    (Column("To the curve"), lambda line: words(curve_in_words(line[0]))),
)


@marks_oracle
def differences_section(source: Source[FineTuningComparisonRecord]) -> Section | None:
    """Each variant minus full on the same images, and where it lies to the curve; None without full."""
    record = source.record
    full = record.full
    rows = [row for row in record.variants if row.difference is not None and row.num_done]
    if full is None or not rows:
        return None
    name = metric_name_in_words(record.primary_metric)
    reasons = dict.fromkeys(
        f"{row.variant}: {difference.reason}."
        for row in rows
        for difference in (row.difference, row.above_curve)
        if difference is not None and difference.reason is not None
    )
    missing = [] if record.interpolation_reason is None else [f"There is no curve: {record.interpolation_reason}."]
    nothing = DifferenceRecord(value=None)
    separable = {True: "yes", False: "no, may be chance", None: None}
    table = table_of(
        [(row, row.difference or nothing, row.above_curve or nothing) for row in rows],
        [
            (Column("Variant"), lambda line: words(line[0].named)),
            (Column(f"Minus {full.variant}", numeric=True), lambda line: number(line[1].value, NUMBERS)),
            (INTERVAL, lambda line: interval(line[1].low, line[1].high, NUMBERS)),
            (Column("Separable"), lambda line: words(separable[line[1].is_separable])),
            *(_TO_THE_CURVE if record.interpolation else ()),
        ],
        caption=f"Differences in {name} on the same test images",
        file_name="differences",
        notes=[*reasons, *missing],
    )
    alike = [f"{row.variant}: {joined(row.not_separable_from)}." for row in record.variants if row.not_separable_from]
    blocks: list[Block] = [table, Items(record.notes)]
    if alike:
        blocks.append(Folded("Which of them cannot be told apart", [Items(alike)]))
    return Section(name="differences", title="What differs", part="evidence", blocks=blocks)


@marks_oracle
def mixed_weights_section(source: Source[FineTuningComparisonRecord]) -> Section | None:
    """The curve as a table, and the point that val would pick; None without one."""
    record = source.record
    if not record.interpolation:
        return None
    first = record.interpolation[0]
    several = len(record.interpolation) > 1
    of_seed = f", mean over {len(record.interpolation)} seeds" if several else ""
    kinds = ["cka", "cka_debiased"]
    if any("cka_debiased_adapted" in point.similarity for point in first.points):
        kinds.append("cka_debiased_adapted")
    curves = [curve_of(record.interpolation, kind, record.primary_metric) for kind in kinds]
    table = Table(
        caption=f"Networks between {first.start} and full{of_seed}",
        columns=[
            Column("Share of full", numeric=True),
            Column(record.metric_title, numeric=True),
            *(Column(CKA[kind], numeric=True) for kind in kinds),
        ],
        rows=[
            [
                number(point.alpha, NumberFormat(decimals=1)),
                number(of_point[0][1], NUMBERS),
                *(number(alike, NUMBERS) for alike, _ in of_point),
            ]
            for point, *of_point in zip(first.points, *curves, strict=True)
        ],
        file_name="mixed-weights",
        notes=[ADAPTED] if len(kinds) > 2 else [],
    )
    lines = [_picked(each, record.primary_metric) for each in record.interpolation]
    return Section(
        name="mixed-weights", title="Mixed weights", part="evidence", blocks=[Items(lines), Folded("Every point", [table])]
    )


def _picked(record: InterpolationRecord, metric: str) -> str:
    point = record.picked
    row = None if point is None else point.metric(metric)
    if point is None or row is None:
        return f"Of the mixed networks, {record.picked_by}."
    alike = point.similarity.get("cka_debiased")
    return (
        f"Val picks the share {point.alpha:g} of full ({record.picked_by}): {row.title.lower()} {NUMBERS(row.value)} on test "
        f"{NUMBERS.interval(row.low, row.high)}, debiased CKA {NUMBERS(alike)}."
    )


@marks_oracle
def compared_trainings_section(source: Source[FineTuningComparisonRecord]) -> Section:
    """One row per training."""
    record = source.record
    nothing = ValueRecord(value=None)
    compared = [name for name in CKA if any(name in row.similarity for row in record.trainings)]
    named = {row.variant: row.named for row in record.variants}
    table = table_of(
        [(row, row.metric(record.primary_metric) or nothing) for row in record.trainings],
        [
            (Column("Variant"), lambda pair: words(named.get(pair[0].variant, pair[0].variant))),
            (Column("Seed", numeric=True), lambda pair: whole(pair[0].seed)),
            (Column("State"), lambda pair: words(pair[0].state)),
            (Column(record.metric_title, numeric=True), lambda pair: number(pair[1].value, NUMBERS)),
            (INTERVAL, lambda pair: interval(pair[1].low, pair[1].high, NUMBERS)),
            *((Column(CKA[name], numeric=True), partial(_similarity, name=name)) for name in compared),
            (Column("Epochs", numeric=True), lambda pair: whole(pair[0].num_epochs)),
            (Column("Best epoch", numeric=True), lambda pair: whole(pair[0].best_epoch)),
            (Column("Seconds", numeric=True), lambda pair: number(pair[0].seconds, _SECONDS)),
            (Column("Folder"), lambda pair: words(pair[0].folder)),
        ],
        caption="Trainings",
        file_name="trainings",
        notes=[f"{row.variant}, seed {row.seed}: {row.reason}" for row in record.trainings if row.reason is not None],
    )
    title = f"Trainings ({count(len(record.trainings))})"
    return Section(name="trainings", title=title, part="evidence", blocks=[Folded("Every training", [table])])


def _similarity(pair: tuple[ComparedTrainingRecord, MetricRecord | ValueRecord], *, name: str) -> Cell:
    return number(pair[0].similarity.get(name), NUMBERS)


REPORT = Kind(
    FineTuningComparisonRecord,
    comparison_heading,
    (
        comparison_verdict_section,
        side_by_side_section,
        compared_domains_section,
        variants_section,
        differences_section,
        mixed_weights_section,
        layer_section,
        compared_trainings_section,
        tuning_checks_section,
        tuning_data_section,
        provenance_section,
        references_section,
    ),
    terminal=(variants_section, differences_section, tuning_checks_section, compared_domains_section, comparison_verdict_section),
)
