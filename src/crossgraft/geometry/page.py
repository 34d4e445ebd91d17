"""Geometry on a page: weights (how sharp, what lies between two) and features (a plane, one class, what a body still knows)."""

from __future__ import annotations

from functools import partial

from crossgraft.geometry.plots import (
    MOST_DRAWN_NETWORKS,
    attention_figure,
    feature_map_figure,
    filters_figure,
    interpolation_path_figure,
    tsne_figure,
)
from crossgraft.geometry.record import (
    AttentionRecord,
    FeatureMapRecord,
    FiltersRecord,
    ForgettingRecord,
    InterpolationPathRecord,
    SharpnessRecord,
    TsneRecord,
)
from crossgraft.metrics.page import reasons_of_no_interval
from crossgraft.report.blocks import Block, Figure, Gallery, Items, Paragraph, Section, figure_for_screens
from crossgraft.report.plots.intervals import DotRow, IntervalRow, dot_rows_figure, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, Table, interval, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, counted, joined, percent

_TWO, _THREE = NumberFormat(decimals=2), NumberFormat(decimals=3)


def sharpness_section(source: Source[SharpnessRecord]) -> Section:
    """The rise of the loss within the ball, after one step and after several."""
    record = source.record
    series = ["one step", f"best of {counted(record.steps, 'step')}"]
    rows = [DotRow(row.network, (row.one_step, row.many_steps)) for row in record.rows]
    draw = partial(dot_rows_figure, rows, series, x_label="Rise of the loss (sharpness)")
    flattest = min(record.rows, key=lambda row: row.many_steps)
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
    blocks.append(figure_for_screens(draw, identifier=f"{source.prefix}sharpness", caption=caption))
    return Section(name="sharpness", title="Sharpness", part="evidence", blocks=[*blocks, _sharpness_table(record)])


def _format(record: SharpnessRecord) -> NumberFormat:
    return NumberFormat.for_column([row.one_step for row in record.rows] + [row.many_steps for row in record.rows])


def _sharpness_table(record: SharpnessRecord) -> Table:
    rises = _format(record)
    has_batches = any(row.per_batch is not None for row in record.rows)
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


def path_section(source: Source[InterpolationPathRecord]) -> Section:
    """Loss and similarity of what was measured between two networks."""
    record = source.record
    inside, between = len(record.points) - 2, sum(record.between.values())
    answer = (
        f"Of {counted(inside, 'network')} between {record.start} and {record.end}, {between} "
        f"{'has' if between == 1 else 'have'} both loss and similarity between those of the two ends."
    )
    gaps = not all(record.is_joined(index) for index in range(len(record.points) - 1))
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
        figure_for_screens(
            partial(interpolation_path_figure, record), identifier=f"{source.prefix}interpolation-path", caption=caption
        ),
        table,
    ]
    return Section(name="interpolation-path", title="Between the two networks", part="evidence", blocks=blocks)


def attention_section(source: Source[AttentionRecord], *, name: str = "attention") -> Section:
    """Maps of some images, overlaps of all; the images themselves where the page may show them.

    Args:
        source: Attention of several networks.
        name: Anchor and name of the table, for a page with several such sections (rollout, images of the source).
    """
    record = source.record
    what = (
        "Rollout over all blocks: what reaches the end from each patch"
        if record.is_rollout
        else f"Attention of the {record.asked} to each patch in {record.layer}, mean over heads"
    )
    most = f" The first {MOST_DRAWN_NETWORKS} networks are drawn." if len(record.networks) > MOST_DRAWN_NETWORKS else ""
    caption = (
        f"{what}, for {record.images}. Full colour is the largest value of a map, none the smallest. Overlap: intersection over "
        f"union of the fewest patches that hold {percent(record.top_mass)} of the attention, with {record.reference}.{most} "
        "Attention is not an explanation: a patch that is attended to need not change the answer."
    )
    title = "Where the networks look, over all blocks" if record.is_rollout else "Where the networks look"
    shown = {number + 1: number for number in record.drawn}
    pictures = {
        f"Image {thumbnail.row}": [thumbnail.png_base64]
        for thumbnail in source.thumbnails
        if thumbnail.row in shown and not thumbnail.answers
    }
    blocks: list[Block] = [Gallery(pictures, noun="row", in_columns=True)] if pictures else []
    others = [row for row in record.networks if row.network != record.reference]
    blocks.append(figure_for_screens(partial(attention_figure, record), identifier=f"{source.prefix}{name}", caption=caption))
    if not others:
        return Section(name=name, title=title, part="evidence", blocks=blocks)
    blocks += [
        table_of(
            others,
            [
                (Column("Network"), lambda row: words(row.network)),
                (Column("Mean overlap", numeric=True), lambda row: number(row.overlap, _TWO)),
                (INTERVAL, lambda row: interval(row.overlap_low, row.overlap_high, _TWO)),
            ],
            caption=f"Attention that is shared with {record.reference}",
            file_name=name,
            notes=[f"Mean over {counted(record.num_images, 'image')}, with its interval.", *reasons_of_no_interval(others)],
        )
    ]
    return Section(name=name, title=title, part="evidence", blocks=blocks)


def filters_section(source: Source[FiltersRecord]) -> Section:
    """Filters of each network, and how much they look like Gabor filters."""
    record = source.record
    drawings = [filters_figure(row, identifier=f"{source.prefix}filters-{index}") for index, row in enumerate(record.networks)]
    has_fits = any(row.r2 for row in record.networks)
    caption = (
        "First filters of the first convolution, as the pattern that their input channels share: orange above, blue below its "
        f"mean.{' Below each: R² of the best Gabor function.' if has_fits else ''}"
    )
    table = table_of(
        record.networks,
        [
            (Column("Network"), lambda row: words(row.network)),
            (Column("Filters", numeric=True), lambda row: whole(row.num_filters)),
            (Column("Pixels"), lambda row: words(f"{row.height_pixels}×{row.width_pixels}")),
            (
                Column("Gabor-likeness", numeric=True),
                lambda row: words("not assessable") if row.gabor_likeness is None else number(row.gabor_likeness, _TWO),
            ),
            (Column("Random filters", numeric=True), lambda row: number(row.random_likeness, _TWO)),
        ],
        caption="First-layer filters",
        file_name="filters",
        notes=[
            "Gabor-likeness: mean R² of the best two-dimensional Gabor function over all filters; random filters of the same "
            "size "
            "are what anything reaches."
        ],
    )
    alike: dict[str, list[str]] = {}
    for row in record.networks:
        if row.reason is not None:
            alike.setdefault(row.reason, []).append(row.network)
    reasons = [f"{joined(names)}: {reason}." for reason, names in alike.items()]
    reasons += [
        f"{row.network}: {counted(row.num_flat, 'filter')} without a pattern"
        f"{'.' if row.gabor_likeness is None else ', left out of the mean.'}"
        for row in record.networks
        if row.num_flat
    ]
    blocks: list[Block] = [Figure(drawings, caption=caption), table]
    return Section(
        name="filters", title="First-layer filters", part="evidence", blocks=[*blocks, *([Items(reasons)] if reasons else [])]
    )


def feature_map_section(source: Source[FeatureMapRecord]) -> Section:
    """All networks in one plane, each over the reference."""
    record = source.record
    others = [row for row in record.networks if row.network != record.reference]
    drawn = len(record.networks[0].points)
    some = f", of which {drawn} are dots" if drawn < record.num_images else ""
    caption = (
        f"Features of {counted(record.num_images, 'image')} ({record.images}){some} along the first two principal components "
        "of all "
        f"networks together, with the same axes in every panel. Stronger colour is denser; dashed lines are the density of "
        f"{record.reference}. Two components are a view of many: see the distance in all dimensions."
    )
    has_gaussians = any(row.bhattacharyya is not None for row in record.networks)
    table = table_of(
        others,
        [
            (Column("Network"), lambda row: words(row.network)),
            (Column("Overlap", numeric=True), lambda row: number(row.overlap, _TWO)),
            (Column("Distance in the plane", numeric=True), lambda row: number(row.distance, _TWO)),
            (Column("Distance in all dimensions", numeric=True), lambda row: number(row.relative_distance, _TWO)),
            *([(Column("Bhattacharyya", numeric=True), lambda row: number(row.bhattacharyya, _TWO))] if has_gaussians else []),
        ],
        caption=f"Compared with {record.reference}",
        file_name="feature-map",
        notes=[
            "Overlap: area that both densities of the plane share, 0 to 1. Distance in the plane: of the means, in units of the "
            f"features. In all dimensions: in radii (root mean square) of {record.reference}."
        ],
    )
    reasons = [f"{row.reason}." for row in others if row.reason is not None]
    blocks: list[Block] = [
        figure_for_screens(partial(feature_map_figure, record), identifier=f"{source.prefix}feature-map", caption=caption),
        table,
    ]
    return Section(
        name="feature-map",
        title="Features in one plane",
        part="evidence",
        blocks=[*blocks, *([Items(reasons)] if reasons else [])],
    )


def tsne_section(source: Source[TsneRecord]) -> Section:
    """One class as t-SNE draws it, with numbers that say whether a gap is there."""
    record = source.record
    blocks: list[Block] = []
    if any(row.points for row in record.networks):
        caption = (
            f"{counted(record.num_images, 'image')} of class {record.class_name} as t-SNE draws them for each network by itself "
            "(perplexity "
            f"{record.perplexity:.3g}, seed {record.seed}). Places, directions and sizes mean nothing; t-SNE draws gaps "
            "where there are none. "
            "Trust a gap only where it is there among the features, too."
        )
        blocks.append(figure_for_screens(partial(tsne_figure, record), identifier=f"{source.prefix}tsne", caption=caption))
    blocks.append(
        table_of(
            record.networks,
            [
                (Column("Network"), lambda row: words(row.network)),
                (Column("Gap, features", numeric=True), lambda row: number(row.gap, _TWO)),
                (Column("Gap, drawn", numeric=True), lambda row: number(row.drawn_gap, _TWO)),
                (Column("Trustworthiness", numeric=True), lambda row: number(row.trustworthiness, _TWO)),
            ],
            caption="What the picture is worth",
            file_name="tsne",
            notes=[
                "Gap: silhouette of two clusters, from −1 to 1; one even cloud has about 0.1 to 0.4. Trustworthiness: 1 "
                "where all "
                "near neighbours in the picture are near among the features."
            ],
        )
    )
    reasons = [f"{row.reason}." for row in record.networks if row.reason is not None]
    return Section(
        name="tsne",
        title=f"Inside the class {record.class_name}",
        part="evidence",
        blocks=[*blocks, *([Items(reasons)] if reasons else [])],
    )


def forgetting_section(source: Source[ForgettingRecord]) -> Section:
    """Linear probes of all bodies on other images."""
    record = source.record
    differences = [
        IntervalRow(row.network, Interval(row.difference, row.difference_low, row.difference_high))
        for row in record.rows
        if row.difference is not None
    ]
    blocks: list[Block] = [Paragraph(_forgotten(record), tone="lead")]
    if differences:
        drawn = intervals_figure(
            differences, x_label=f"Accuracy minus that of {record.reference}", marked=0, identifier=f"{source.prefix}forgetting"
        )
        unit = "patients" if record.num_groups is not None else "images"
        caption = (
            f"Linear probes on {record.data}: what a body tells of images that fine-tuning was not about, compared image by "
            "image, with "
            f"95 % intervals over {unit}. Below 0 is forgotten."
        )
        blocks.append(Figure([drawn], caption=caption))
    table = table_of(
        record.rows,
        [
            (Column("Body"), lambda row: words(row.network)),
            (Column("Accuracy", numeric=True), lambda row: number(row.accuracy, _THREE)),
            (INTERVAL, lambda row: interval(row.low, row.high, _THREE)),
            (Column(f"Minus {record.reference}", numeric=True), lambda row: number(row.difference, _THREE)),
            (
                Column("Its interval", numeric=True, csv_titles=("difference_low", "difference_high")),
                lambda row: interval(row.difference_low, row.difference_high, _THREE),
            ),
        ],
        caption=f"Linear probes on {record.data}",
        file_name="forgetting",
        notes=[
            f"Fitted to {counted(record.num_train, 'image')}, tested on {record.num_test}. Always saying the commonest class "
            "is right for "
            f"{_THREE(record.majority)}."
        ],
    )
    return Section(name="forgetting", title="What was forgotten", part="evidence", blocks=[*blocks, table])


def _forgotten(record: ForgettingRecord) -> str:
    lost = [row.network for row in record.rows if row.difference_high is not None and row.difference_high < 0]
    gained = [row.network for row in record.rows if row.difference_low is not None and row.difference_low > 0]
    phrases = [
        f"{joined(lost)} {'tells' if len(lost) == 1 else 'tell'} less of {record.data} than {record.reference}" if lost else "",
        f"{joined(gained)} {'tells' if len(gained) == 1 else 'tell'} more of it" if gained else "",
    ]
    answer = "; ".join(phrase for phrase in phrases if phrase)
    return f"{answer}." if answer else f"No body tells clearly less of {record.data} than {record.reference}."
