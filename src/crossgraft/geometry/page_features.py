"""Features of networks as pictures with numbers: a common plane, one class, and what bodies know of other images."""

from __future__ import annotations

from crossgraft.geometry.maps_record import FeatureMapRecord, MappedNetworkRow, TsneRecord
from crossgraft.geometry.plot_feature_map import feature_map_figure, tsne_figure
from crossgraft.geometry.record import ForgettingRecord, ProbeRow
from crossgraft.report.blocks import Block, Figure, Items, Paragraph, Section
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, interval, number, table_of, words
from crossgraft.words.formatting import NumberFormat, counted, joined

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
            f"features. In all dimensions: in radii (root mean square) of {record.reference}.",
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
            differences,
            x_label=f"Accuracy minus that of {record.reference}",
            marked=0,
            identifier=f"{source.prefix}forgetting",
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
        f"{joined(lost)} {'tells' if len(lost) == 1 else 'tell'} less of {record.data} than {record.reference}"
        if lost
        else "",
        f"{joined(gained)} {'tells' if len(gained) == 1 else 'tell'} more of it" if gained else "",
    ]
    found = "; ".join(each for each in said if each)
    return f"{found}." if found else f"No body tells clearly less of {record.data} than {record.reference}."
