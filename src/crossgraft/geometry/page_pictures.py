"""What networks look at: attention to patches, and filters of the first layer."""

from __future__ import annotations

from crossgraft.geometry.maps_record import AttentionRecord, AttentionRow, FiltersRecord
from crossgraft.geometry.plot_attention import MOST_DRAWN_NETWORKS, attention_figure
from crossgraft.geometry.plot_filters import filters_figure
from crossgraft.metrics.page import reasons_of_no_interval
from crossgraft.report.blocks import Block, Figure, Gallery, Items, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, interval, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, counted, joined, percent

_TWO = NumberFormat(decimals=2)


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
                (Column("Mean overlap", numeric=True), lambda row: number(row.overlap, _TWO)),
                (INTERVAL, _overlap_interval),
            ],
            caption=f"Attention that is shared with {record.reference}",
            file_name=name,
            notes=[
                f"Mean over {counted(record.num_images, 'image')}, with its interval.",
                *reasons_of_no_interval(others),
            ],
        ),
    ]
    return Section(name=name, title=title, part="evidence", blocks=blocks)


def _overlap_interval(row: AttentionRow) -> Cell:
    return interval(row.overlap_low, row.overlap_high, _TWO)


def filters_section(source: Source[FiltersRecord]) -> Section:
    """Filters of each network, and how much they look like Gabor filters."""
    record = source.record
    drawings = [
        filters_figure(row, identifier=f"{source.prefix}filters-{place}") for place, row in enumerate(record.networks)
    ]
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
        name="filters",
        title="First-layer filters",
        part="evidence",
        blocks=[*blocks, *([Items(reasons)] if reasons else [])],
    )
