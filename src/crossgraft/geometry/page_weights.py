"""Weights of networks: how sharp the loss is around them, how far they moved, and what lies between two of them."""

from __future__ import annotations

from collections.abc import Callable

from crossgraft.geometry.plots import interpolation_path_figure
from crossgraft.geometry.record import (
    CentreTaskRow,
    DistanceRow,
    InterpolationPathRecord,
    ParameterDistanceRecord,
    SharpnessRecord,
    WeightDistance,
)
from crossgraft.metrics.page import reasons_of_no_interval
from crossgraft.metrics.words import metric_name_in_words
from crossgraft.report.blocks import Block, Figure, Paragraph, Section
from crossgraft.report.plots.intervals import DotRow, IntervalRow, dot_rows_figure, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, table_of, words
from crossgraft.words.formatting import NumberFormat, count, counted, joined

_THREE = NumberFormat(decimals=3)
_WIDE, _SMALL_SCREEN = 560, 340  # pixels


def sharpness_section(source: Source[SharpnessRecord]) -> Section:
    """The rise of the loss within the ball, after one step and after several."""
    record = source.record
    series = ["one step", f"best of {counted(record.steps, 'step')}"]
    rows = [DotRow(each.network, (each.one_step, each.many_steps)) for each in record.rows]
    wide, narrow = (
        dot_rows_figure(
            rows, series, x_label="Rise of the loss (sharpness)", identifier=f"{source.prefix}sharpness{ending}", width=width
        )
        for ending, width in (("", _WIDE), ("-narrow", _SMALL_SCREEN))
    )
    flattest = min(record.rows, key=lambda each: each.many_steps)
    summed = " The loss is summed over labels." if record.sums_labels else ""
    answer = (
        f"{flattest.network} is the flattest: its loss rises by {_format(record)(flattest.many_steps)} at most."
        if len(record.rows) > 1
        else f"The loss of {flattest.network} rises by {_format(record)(flattest.many_steps)} at most."
    )
    caption = (
        f"Largest rise of the mean loss over {counted(record.num_images, 'image')} when all weights together move by at most "
        f"{record.rho:g} (Euclidean): along the gradient, and after {record.steps} ascents. Further left is flatter.{summed} The "
        "value depends on how large weights are: networks of one architecture and one way of training can be compared."
    )
    blocks: list[Block] = [Paragraph(answer, tone="lead")] if record.is_comparable else []
    blocks.append(Figure([wide], caption=caption, narrow=[narrow]))
    return Section(name="sharpness", title="Sharpness", part="evidence", blocks=[*blocks, _sharpness_table(record)])


def _format(record: SharpnessRecord) -> NumberFormat:
    return NumberFormat.for_column([each.one_step for each in record.rows] + [each.many_steps for each in record.rows])


def _sharpness_table(record: SharpnessRecord) -> Table:
    rises = _format(record)
    has_batches = any(each.per_batch is not None for each in record.rows)
    return table_of(
        record.rows,
        [
            (Column("Network"), lambda row: words(row.network)),
            (Column("Loss", numeric=True), lambda row: number(row.loss, _THREE)),
            (Column("One step", numeric=True), lambda row: number(row.one_step, rises)),
            (Column(f"{record.steps} steps", numeric=True), lambda row: number(row.many_steps, rises)),
            *([(Column("Per batch", numeric=True), lambda row: number(row.per_batch, rises))] if has_batches else []),
            (Column("ρ · gradient", numeric=True), lambda row: number(row.first_order, rises)),
        ],
        caption="Sharpness",
        file_name="sharpness",
        notes=[
            "ρ · gradient: the rise if the loss were a plane. One step far from it means strong curvature.",
            *([f"Per batch: each {counted(record.batch_size, 'image')} climb by themselves."] if has_batches else []),
        ],
    )


def distance_section(source: Source[ParameterDistanceRecord]) -> Section:
    """Distances to start and centre, and what the centre is good for."""
    record = source.record
    has_start = record.start is not None
    series = [*(["to the start"] if has_start else []), "to the centre"]
    rows = [DotRow(row.network, [*([_l2(row.to_start)] if has_start else []), _l2(row.to_centre)]) for row in record.rows]
    wide, narrow = (
        dot_rows_figure(
            rows,
            series,
            x_label="Distance of weights (Euclidean)",
            identifier=f"{source.prefix}weight-distances{ending}",
            width=width,
        )
        for ending, width in (("", _WIDE), ("-narrow", _SMALL_SCREEN))
    )
    start = f" The start is {record.start}." if has_start else ""
    caption = (
        f"Distance of {count(record.num_weights)} weights in front of the head; heads and statistics of BatchNorm are left "
        f"out.{start} The centre is the mean of the weights of {joined([row.network for row in record.rows])}."
    )
    blocks: list[Block] = [Figure([wide], caption=caption, narrow=[narrow]), _distance_table(record)]
    if record.tasks:
        blocks += _centre_blocks(source)
    return Section(name="weight-distances", title="How far weights moved", part="evidence", blocks=blocks)


def _l2(distance: WeightDistance | None) -> float | None:
    return None if distance is None else distance.l2


def _distance_table(record: ParameterDistanceRecord) -> Table:
    def part(
        of: Callable[[DistanceRow], WeightDistance | None], name: str, as_text: NumberFormat
    ) -> Callable[[DistanceRow], Cell]:
        return lambda row: number(getattr(of(row), name, None), as_text)

    centre = NumberFormat.for_column([_l2(row.to_centre) for row in record.rows])
    small = NumberFormat.for_column([row.to_centre.rms for row in record.rows if row.to_centre is not None])
    columns: list[tuple[Column, Callable[[DistanceRow], Cell]]] = [
        (Column("Network"), lambda row: words(row.network)),
        (Column("To the centre", numeric=True), part(lambda row: row.to_centre, "l2", centre)),
        (Column("rms", numeric=True), part(lambda row: row.to_centre, "rms", small)),
        (Column("Relative", numeric=True), part(lambda row: row.to_centre, "relative", _THREE)),
    ]
    if record.start is not None:
        start = NumberFormat.for_column([_l2(row.to_start) for row in record.rows])
        columns += [
            (Column("To the start", numeric=True), part(lambda row: row.to_start, "l2", start)),
            (Column("Relative to the start", numeric=True), part(lambda row: row.to_start, "relative", _THREE)),
        ]
    whole = record.centre_to_start
    notes = [
        "rms: root mean square over weights. Relative: over the norm of the weights of the start, or of the centre without one."
    ]
    if whole is not None:
        notes.append(f"From the start to the centre: {NumberFormat.for_column([whole.l2])(whole.l2)}.")
    return table_of(record.rows, columns, caption="Distances of weights", file_name="weight-distances", notes=notes)


def _centre_blocks(source: Source[ParameterDistanceRecord]) -> list[Block]:
    record = source.record
    drawn = intervals_figure(
        [IntervalRow(row.task, Interval(row.accuracy_change, row.change_low, row.change_high)) for row in record.tasks],
        x_label="Accuracy at the centre minus own",
        marked=0,
        identifier=f"{source.prefix}centre",
    )
    rules = {
        "estimate": "Statistics of BatchNorm are estimated on the training images of the task.",
        "mix": "Statistics of BatchNorm are means over runs.",
    }
    title = metric_name_in_words(record.metric)
    title = title[:1].upper() + title[1:]
    table = table_of(
        record.tasks,
        [
            (Column("Task"), lambda row: words(row.task)),
            (Column(f"{title}, own", numeric=True), lambda row: number(row.own, _THREE)),
            (Column("95 % interval, own", numeric=True, csv_titles=("own_low", "own_high")), _own_interval),
            (Column("At the centre", numeric=True), lambda row: number(row.centre, _THREE)),
            (Column("95 % interval", numeric=True, csv_titles=("low", "high")), _centre_interval),
        ],
        caption="The centre under the head of each task",
        file_name="centre",
        notes=reasons_of_no_interval(record.tasks),
    )
    caption = (
        "What the mean of all bodies loses under the head of each task, image by image, with 95 % intervals. "
        f"{rules.get(record.batch_norm or '', '')}"
    )
    return [Figure([drawn], caption=caption.strip()), table]


def _own_interval(row: CentreTaskRow) -> Cell:
    return interval(row.own_low, row.own_high, _THREE)


def _centre_interval(row: CentreTaskRow) -> Cell:
    return interval(row.centre_low, row.centre_high, _THREE)


def path_section(source: Source[InterpolationPathRecord]) -> Section:
    """Loss and similarity of what was measured between two networks."""
    record = source.record
    wide, narrow = (
        interpolation_path_figure(record, identifier=f"{source.prefix}interpolation-path{ending}", is_wide=is_wide)
        for ending, is_wide in (("", True), ("-narrow", False))
    )
    inside, between = len(record.points) - 2, sum(record.between.values())
    answer = (
        f"Of {counted(inside, 'network')} between {record.start} and {record.end}, {between} "
        f"{'has' if between == 1 else 'have'} both loss and similarity between those of the two ends."
    )
    gaps = not all(record.is_joined(place) for place in range(len(record.points) - 1))
    caption = (
        f"Each dot is a network that was measured on {counted(record.num_images, 'image')}; thin level lines are the values of "
        "the ends. Proposition 8 of RepSim promises networks between both pairs of lines on some path, not on this straight one."
    )
    if gaps:
        caption += " Where no line joins two dots, nothing is known of what lies between."
    if record.num_batch_norms and record.batch_norm == "estimate":
        caption += (
            f" The ends have statistics of their own in {counted(record.num_batch_norms, 'BatchNorm layer')}; between them "
            "statistics are estimated on training images."
        )
    table = table_of(
        record.points,
        [
            (Column("Share of the end", numeric=True), lambda row: number(row.alpha, NumberFormat(decimals=2))),
            (Column("Loss", numeric=True), lambda row: number(row.loss, _THREE)),
            (Column("CKA", numeric=True), lambda row: number(row.cka, _THREE)),
            (Column("CKA, debiased", numeric=True), lambda row: number(row.cka_debiased, _THREE)),
        ],
        caption="Networks on the line",
        file_name="interpolation-path",
    )
    blocks: list[Block] = [
        *([Paragraph(answer, tone="lead")] if inside else []),
        Figure([wide], caption=caption, narrow=[narrow]),
        table,
    ]
    return Section(name="interpolation-path", title="Between the two networks", part="evidence", blocks=blocks)
