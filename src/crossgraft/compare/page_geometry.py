"""Geometry of two models: the sections of each measure, with what does not apply to these models and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from crossgraft.compare.geometry_record import ModelGeometry, WeightsApart
from crossgraft.compare.geometry_words import TITLES, geometry_in_words
from crossgraft.compare.record import ModelComparisonRecord
from crossgraft.geometry.page_features import feature_map_section, forgetting_section, tsne_section
from crossgraft.geometry.page_pictures import attention_section, filters_section
from crossgraft.geometry.page_weights import path_section, sharpness_section
from crossgraft.report.blocks import Block, Items, Paragraph, Section
from crossgraft.report.kinds import SectionBuilder
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, counts, number, table_of, words
from crossgraft.words.formatting import NumberFormat

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


def _made(source: Comparison, record: ModelGeometry, name: str) -> Section | None:
    """The section of one measure; None where it has no numbers."""
    makers: dict[str, Callable[[], Section | None]] = {
        "feature_map": lambda: record.feature_map and feature_map_section(source.showing(record.feature_map)),
        "parameter_distance": lambda: (
            weights_section(source, record.parameter_distance) if record.parameter_distance else None
        ),
        "interpolation_path": lambda: (
            record.interpolation_path and path_section(source.showing(record.interpolation_path))
        ),
        "sharpness": lambda: record.sharpness and sharpness_section(source.showing(record.sharpness)),
        "filters": lambda: record.filters and filters_section(source.showing(record.filters)),
        "attention": lambda: record.attention and attention_section(source.showing(record.attention)),
        "source_attention": lambda: record.source_attention and _source_attention(source, record),
        "tsne": lambda: record.tsne and tsne_section(source.showing(record.tsne)),
    }
    return makers[name]()


def _source_attention(source: Comparison, record: ModelGeometry) -> Section | None:
    """Without pictures: thumbnails are those of the images that the models are compared on."""
    found = record.source_attention
    if found is None:
        return None
    made = attention_section(replace(source.showing(found), thumbnails=()), name="attention-source")
    return replace(made, title=TITLES["source_attention"])


def _section_of(name: str) -> SectionBuilder:
    def section(source: Comparison) -> Section | None:
        record = source.record.geometry
        if record is None:
            return None
        made, notes = _made(source, record, name), record.notes.get(name, [])
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
    return (
        Section(name="geometry", title="Weights and features", part="evidence", blocks=[Items(lines)])
        if lines
        else None
    )


GEOMETRY_SECTIONS: tuple[SectionBuilder, ...] = (forgotten_section, *(_section_of(name) for name in TITLES))
"""In the order of the page."""
