"""Features of networks as pictures with numbers: a common plane, one class, and what bodies know of other images."""

from __future__ import annotations

from crossgraft.geometry.plots import MOST_DRAWN_NETWORKS, attention_figure, feature_map_figure, filters_figure, tsne_figure
from crossgraft.geometry.record import (
    AttentionRecord,
    AttentionRow,
    FeatureMapRecord,
    FiltersRecord,
    ForgettingRecord,
    MappedNetworkRow,
    ProbeRow,
    TsneRecord,
)
from crossgraft.metrics.page import reasons_of_no_interval
from crossgraft.report.blocks import Block, Figure, Gallery, Items, Paragraph, Section
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, interval, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, counted, joined, percent

_PICTURES_TWO = NumberFormat(decimals=2)


def attention_section(source: Source[AttentionRecord], *, name: str = "attention") -> Section:
    """Maps of some images, overlaps of all; the images themselves where the page may show them.

    Args:
        source: Attention of several networks.
        name: Anchor and name of the table, for a page with several such sections (rollout, images of the source).
    """
    record = source.record
    wide, narrow = (
        attention_figure(record, identifier=f"{source.prefix}{name}{ending}", is_wide=is_wide)
        for ending, is_wide in (("", True), ("-narrow", False))
    )
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
    pictures = {f"Image {each.row}": [each.png_base64] for each in source.thumbnails if each.row in shown}
    blocks: list[Block] = [Gallery(pictures, noun="row", in_columns=True)] if pictures else []
    others = [row for row in record.networks if row.network != record.reference]
    blocks.append(Figure([wide], caption=caption, narrow=[narrow]))
    if not others:
        return Section(name=name, title=title, part="evidence", blocks=blocks)
    blocks += [
        table_of(
            others,
            [
                (Column("Network"), lambda row: words(row.network)),
                (Column("Mean overlap", numeric=True), lambda row: number(row.overlap, _PICTURES_TWO)),
                (INTERVAL, _overlap_interval),
            ],
            caption=f"Attention that is shared with {record.reference}",
            file_name=name,
            notes=[f"Mean over {counted(record.num_images, 'image')}, with its interval.", *reasons_of_no_interval(others)],
        )
    ]
    return Section(name=name, title=title, part="evidence", blocks=blocks)


def _overlap_interval(row: AttentionRow) -> Cell:
    return interval(row.overlap_low, row.overlap_high, _PICTURES_TWO)


def filters_section(source: Source[FiltersRecord]) -> Section:
    """Filters of each network, and how much they look like Gabor filters."""
    record = source.record
    drawings = [filters_figure(row, identifier=f"{source.prefix}filters-{place}") for place, row in enumerate(record.networks)]
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
                lambda row: words("not assessable") if row.gabor_likeness is None else number(row.gabor_likeness, _PICTURES_TWO),
            ),
            (Column("Random filters", numeric=True), lambda row: number(row.random_likeness, _PICTURES_TWO)),
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


_TWO, _THREE = NumberFormat(decimals=2), NumberFormat(decimals=3)
_SIGNED = NumberFormat(decimals=3)


def feature_map_section(source: Source[FeatureMapRecord]) -> Section:
    """All networks in one plane, each over the reference."""
    record = source.record
    others = [row for row in record.networks if row.network != record.reference]
    wide, narrow = (
        feature_map_figure(record, identifier=f"{source.prefix}feature-map{ending}", is_wide=is_wide)
        for ending, is_wide in (("", True), ("-narrow", False))
    )
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
            *([(Column("Bhattacharyya", numeric=True), _gaussians)] if has_gaussians else []),
        ],
        caption=f"Compared with {record.reference}",
        file_name="feature-map",
        notes=[
            "Overlap: area that both densities of the plane share, 0 to 1. Distance in the plane: of the means, in units of the "
            f"features. In all dimensions: in radii (root mean square) of {record.reference}."
        ],
    )
    reasons = [f"{row.reason}." for row in others if row.reason is not None]
    blocks: list[Block] = [Figure([wide], caption=caption, narrow=[narrow]), table]
    return Section(
        name="feature-map",
        title="Features in one plane",
        part="evidence",
        blocks=[*blocks, *([Items(reasons)] if reasons else [])],
    )


def _gaussians(row: MappedNetworkRow) -> Cell:
    return number(row.bhattacharyya, _TWO)


def tsne_section(source: Source[TsneRecord]) -> Section:
    """One class as t-SNE draws it, with numbers that say whether a gap is there."""
    record = source.record
    blocks: list[Block] = []
    if any(row.points for row in record.networks):
        wide, narrow = (
            tsne_figure(record, identifier=f"{source.prefix}tsne{ending}", is_wide=is_wide)
            for ending, is_wide in (("", True), ("-narrow", False))
        )
        caption = (
            f"{counted(record.num_images, 'image')} of class {record.class_name} as t-SNE draws them for each network by itself "
            "(perplexity "
            f"{record.perplexity:.3g}, seed {record.seed}). Places, directions and sizes mean nothing; t-SNE draws gaps "
            "where there are none. "
            "Trust a gap only where it is there among the features, too."
        )
        blocks.append(Figure([wide], caption=caption, narrow=[narrow]))
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
            (Column(f"Minus {record.reference}", numeric=True), lambda row: number(row.difference, _SIGNED)),
            (Column("Its interval", numeric=True, csv_titles=("difference_low", "difference_high")), _difference),
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


def _difference(row: ProbeRow) -> Cell:
    return interval(row.difference_low, row.difference_high, _SIGNED)


def _forgotten(record: ForgettingRecord) -> str:
    lost = [row.network for row in record.rows if row.difference_high is not None and row.difference_high < 0]
    gained = [row.network for row in record.rows if row.difference_low is not None and row.difference_low > 0]
    said = [
        f"{joined(lost)} {'tells' if len(lost) == 1 else 'tell'} less of {record.data} than {record.reference}" if lost else "",
        f"{joined(gained)} {'tells' if len(gained) == 1 else 'tell'} more of it" if gained else "",
    ]
    found = "; ".join(each for each in said if each)
    return f"{found}." if found else f"No body tells clearly less of {record.data} than {record.reference}."
