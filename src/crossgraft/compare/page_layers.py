"""Layers of two models beside each other: CKA of all pairs, and CCA of those at the same place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from markupsafe import Markup

from crossgraft.compare.record import LayerCca, LayerGrid, ModelComparisonRecord, ModelGeometry, ModelPair, WeightsApart
from crossgraft.compare.words import NUMBERS, TITLES, geometry_in_words, pair_in_words
from crossgraft.geometry.page import (
    attention_section,
    feature_map_section,
    filters_section,
    forgetting_section,
    path_section,
    sharpness_section,
    tsne_section,
)
from crossgraft.report.blocks import Block, Figure, Items, Paragraph, Section, Subheading
from crossgraft.report.kinds import SectionBuilder
from crossgraft.report.plots.layers import LayerCurve, layer_curves_figure, layer_grid_figure
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, counts, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, counted

_THREE = NumberFormat(decimals=3)
Comparison = Source[ModelComparisonRecord]


def weights_section(source: Source[ModelComparisonRecord], rows: list[WeightsApart]) -> Section:
    """Distances of weights, a row per pair of models."""
    lengths = NumberFormat.for_column([row.distance.l2 for row in rows])
    small = NumberFormat.for_column([row.distance.rms for row in rows])
    table = table_of(
        rows,
        [
            (Column("From"), lambda row: words(row.first)),
            (Column("To"), lambda row: words(row.second)),
            (Column("Distance", numeric=True), lambda row: number(row.distance.l2, lengths)),
            (Column("rms", numeric=True), lambda row: number(row.distance.rms, small)),
            (Column("Relative", numeric=True), lambda row: number(row.distance.relative, _THREE)),
            (Column("Weights", numeric=True), lambda row: counts(row.num_weights)),
        ],
        caption="Distances of weights in front of the head",
        file_name="weight-distances",
        notes=[
            "Distance: Euclidean; rms: root mean square over weights; relative: over the length of the weights it starts from. "
            "Heads and statistics of BatchNorm are left out."
        ],
    )
    return Section(name="weight-distances", title=TITLES["parameter_distance"], part="evidence", blocks=[table])


def _section_of_measure(source: Comparison, record: ModelGeometry, name: str) -> Section | None:
    """The section of one measure; None where it has no numbers."""
    makers: dict[str, Callable[[], Section | None]] = {
        "feature_map": lambda: record.feature_map and feature_map_section(source.showing(record.feature_map)),
        "parameter_distance": lambda: weights_section(source, record.parameter_distance) if record.parameter_distance else None,
        "interpolation_path": lambda: record.interpolation_path and path_section(source.showing(record.interpolation_path)),
        "sharpness": lambda: record.sharpness and sharpness_section(source.showing(record.sharpness)),
        "filters": lambda: record.filters and filters_section(source.showing(record.filters)),
        "attention": lambda: record.attention and attention_section(source.showing(record.attention)),
        "source_attention": lambda: record.source_attention and _source_attention(source, record),
        "tsne": lambda: record.tsne and tsne_section(source.showing(record.tsne)),
    }
    return makers[name]()


def _source_attention(source: Comparison, record: ModelGeometry) -> Section | None:
    """Without pictures: thumbnails are those of the images that the models are compared on."""
    maps = record.source_attention
    if maps is None:
        return None
    made = attention_section(replace(source.showing(maps), thumbnails=()), name="attention-source")
    return replace(made, title=TITLES["source_attention"])


def _section_of(name: str) -> SectionBuilder:
    def section(source: Comparison) -> Section | None:
        record = source.record.geometry
        if record is None:
            return None
        made, notes = _section_of_measure(source, record, name), record.notes.get(name, [])
        if made is None:
            if not notes:
                return None
            blocks: list[Block] = [Paragraph(each) for each in notes]
            return Section(name=name.replace("_", "-"), title=TITLES[name], part="evidence", blocks=blocks)
        return replace(made, blocks=[*made.blocks, *([Items(notes)] if notes else [])])

    return section


def forgotten_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """Linear probes on other images, where some were given."""
    record = source.record.geometry
    if record is None or record.forgetting is None:
        return None
    return forgetting_section(source.showing(record.forgetting))


def geometry_text_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """For the terminal: a line per measure; what was forgotten is part of the answer."""
    record = source.record.geometry
    if record is None:
        return None
    lines = geometry_in_words(record)
    return Section(name="geometry", title="Weights and features", part="evidence", blocks=[Items(lines)]) if lines else None


GEOMETRY_SECTIONS: tuple[SectionBuilder, ...] = (forgotten_section, *(_section_of(name) for name in TITLES))
"""In the order of the page."""


_NARROW = 340


def layer_pairs_section(source: Source[ModelComparisonRecord]) -> Section:
    """A grid for each pair of models, and that of untrained networks beside it."""
    blocks: list[Block] = []
    for place, pair in enumerate(source.record.pairs):
        if pair.cka is None:
            blocks.append(Paragraph(f"{pair_in_words(pair)}: {pair.cka_reason}"))
            continue
        drawn = [(pair.cka, "These networks", (pair.first, pair.second))]
        if pair.cka_untrained is not None:
            drawn.append((pair.cka_untrained, "Untrained networks", (f"like {pair.first}", f"like {pair.second}")))
        figures: list[list[Markup]] = [[], []]
        for number_of, (grid, title, labels) in enumerate(drawn):
            for is_narrow in (False, True):
                identifier = f"{source.prefix}grid-{place}-{number_of}{'-narrow' if is_narrow else ''}"
                figures[is_narrow].append(
                    layer_grid_figure(
                        title,
                        grid.rows,
                        grid.columns,
                        grid.values,
                        row_label=labels[0],
                        column_label=labels[1],
                        identifier=identifier,
                        is_narrow=is_narrow,
                    )
                )
        sentences = [
            f"{label}: the layer {layer} is left out, because {reason}."
            for label, layers in ((pair.first, pair.cka.left_out_rows), (pair.second, pair.cka.left_out_columns))
            for layer, reason in layers.items()
        ]
        blocks += [
            Subheading(f"{source.prefix}pair-{place}", pair_in_words(pair)),
            Figure(figures[0], caption=_caption(pair.cka), narrow=figures[1]),
            *([Items(sentences)] if sentences else []),
        ]
    return Section(name="layers", title="Layers", part="evidence", blocks=blocks)


def layer_text_section(source: Source[ModelComparisonRecord]) -> Section:
    """For the terminal: each layer of A with the layer of B that is most like it."""
    blocks: list[Block] = [_nearest(pair, pair.cka) for pair in source.record.pairs if pair.cka is not None]
    return Section(name="layers", title="Layers", part="evidence", blocks=blocks)


def layer_cca_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """CCA by the protocol of the thesis: a curve for each pair of models, and a table."""
    record = source.record
    pairs = [pair for pair in record.pairs if pair.cca]
    reasons = [f"{pair_in_words(pair)}: {pair.cca_reason}" for pair in record.pairs if pair.cca_reason]
    if not pairs:
        return None
    blocks: list[Block] = [*_curves(source, pairs), *(_cca_table(pair) for pair in pairs)]
    if reasons:
        blocks.append(Items(reasons))
    return Section(name="cca", title="CCA by layer", part="evidence", blocks=blocks)


def _caption(grid: LayerGrid) -> str:
    """What cells mean, and how they were computed."""
    how = " ".join(grid.notes) or "Exact sums over all images."
    kind = "Debiased CKA" if "debiased" in grid.estimator else "Minibatch CKA (debiased)"
    return (
        f"{kind} of each pair of layers, {counted(grid.num_images, 'image')}; 1 is a rotation of the same features, 0 "
        f"what unrelated ones have, and orange is below 0. The first layers stand at the bottom left. {how}"
    )


def _nearest(pair: ModelPair, grid: LayerGrid) -> Table:
    floor = pair.cka_untrained
    rows = []
    for layer, values in zip(grid.rows, grid.values, strict=True):
        nearest = max(range(len(values)), key=values.__getitem__) if values else None
        same = grid.columns.index(layer) if layer in grid.columns else None
        beside = None
        if same is not None and floor is not None and layer in floor.rows and layer in floor.columns:
            beside = floor.values[floor.rows.index(layer)][floor.columns.index(layer)]
        rows.append(
            [
                words(layer),
                number(None if same is None else values[same], NUMBERS),
                number(beside, NUMBERS),
                words(None if nearest is None else grid.columns[nearest]),
                number(None if nearest is None else values[nearest], NUMBERS),
            ]
        )
    return Table(
        caption=f"CKA by layer: {pair_in_words(pair)}",
        columns=[
            Column("Layer"),
            Column("Same layer", numeric=True),
            Column("Untrained", numeric=True),
            Column("Most like"),
            Column("CKA", numeric=True),
        ],
        rows=rows,
        file_name="nearest",
    )


def _curves(source: Source[ModelComparisonRecord], pairs: list[ModelPair]) -> list[Block]:
    most = max(len(pair.cca) for pair in pairs)
    same = [pair for pair in pairs if len(pair.cca) == most and any(row.value is not None for row in pair.cca)]
    if not same:
        return []
    first = same[0]
    layers = [_both_layers(row) for row in first.cca]
    curves = [LayerCurve(pair_in_words(pair), [row.value for row in pair.cca], [row.spread for row in pair.cca]) for pair in same]
    if any(row.untrained is not None for row in first.cca):
        floor = [row.untrained for row in first.cca]
        curves.append(LayerCurve("untrained networks", floor, [None] * len(floor), is_untrained=True))
    drawn = [
        layer_curves_figure(layers, curves, identifier=f"{source.prefix}cca{suffix}", width=width)
        for suffix, width in (("", 640), ("-narrow", _NARROW))
    ]
    caption = (
        "CCA of layers at the same place, mean of five draws of positions and channels, with their standard deviation. It tends "
        "to 1 where few positions were reached; the table says how many."
    )
    return [Figure(drawn[:1], caption=caption, narrow=drawn[1:])]


def _cca_table(pair: ModelPair) -> Table:
    return table_of(
        pair.cca,
        [
            (Column("Layer"), lambda row: words(_both_layers(row))),
            (Column("CCA", numeric=True), lambda row: number(row.value, NUMBERS)),
            (Column("Spread", numeric=True), lambda row: number(row.spread, NUMBERS)),
            (Column("Untrained", numeric=True), lambda row: number(row.untrained, NUMBERS)),
            (Column("Channels", numeric=True), lambda row: whole(row.channels)),
            (Column("Positions", numeric=True), lambda row: whole(row.positions)),
            (Column("Asked for", numeric=True), lambda row: whole(row.positions_asked_for)),
        ],
        caption=f"CCA by layer: {pair_in_words(pair)}",
        file_name=f"cca-{pair.first}-{pair.second}".replace(" ", "-").lower(),
        notes=[f"{row.layer}: {row.reason}." for row in pair.cca if row.reason],
        page_only=True,
    )


def _both_layers(row: LayerCca) -> str:
    return row.layer if row.layer == row.other_layer else f"{row.layer} | {row.other_layer}"
