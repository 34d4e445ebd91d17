"""The networks between a pretrained and a fine-tuned one: the one that val picks, and every point of the way."""

from __future__ import annotations

import math

from crossgraft.records import InterpolationPoint, InterpolationRecord
from crossgraft.report.blocks import Block, Facts, Figure, Heading, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots import Interval, TradeOff, trade_off_figure
from crossgraft.report.sections._trade_off import curve_of
from crossgraft.report.sections.provenance import provenance_section
from crossgraft.report.sections.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, words
from crossgraft.words.formatting import NumberFormat, counted
from crossgraft.words.metric_words import metric_name_in_words

_NUMBERS = NumberFormat(decimals=3)
_SHARE = NumberFormat(decimals=2)
_SMALL_SCREEN = 340
_SIMILARITY = "Similarity to the pretrained features (CKA)"


def interpolation_heading(source: Source[InterpolationRecord]) -> Heading:
    """The model, the data, and how many networks were measured."""
    record = source.record
    summary = f"{counted(len(record.points), 'network')} · from {record.start} to the fine-tuned one"
    return Heading(
        title=f"{record.model} on {record.dataset}, weight interpolation", summary=summary, advice=_verdict(record)
    )


def interpolation_verdict_section(source: Source[InterpolationRecord]) -> Section:
    """The network that val picks, against the end."""
    blocks: list[Block] = [Paragraph(_verdict(source.record), tone="lead")]
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def mixed_networks_section(source: Source[InterpolationRecord]) -> Section:
    """Every point as a table, and as a figure where there are two to draw."""
    record = source.record
    metric = metric_name_in_words(record.primary_metric)
    table = Table(
        caption="Networks by the share of the fine-tuned one",
        columns=[
            Column("Share", numeric=True),
            Column(f"{metric[:1].upper()}{metric[1:]} on test", numeric=True),
            Column("95 % interval", numeric=True, csv_titles=("low", "high")),
            Column("On val", numeric=True),
            Column("CKA", numeric=True),
            Column("CKA, debiased", numeric=True),
            Column("Picked"),
        ],
        rows=[_row(record, point) for point in record.points],
        file_name="points",
    )
    return Section(name="points", title="Networks on the way", part="evidence", blocks=[*_figure(source), table])


def mixing_section(source: Source[InterpolationRecord]) -> Section:
    """What was done to statistics of BatchNorm between the ends."""
    record = source.record
    rules = {"estimate": "estimated on training images", "mix": "mixed as the weights are"}
    facts = Facts(
        [
            ("Start", record.start),
            ("BatchNorm layers with other statistics at the ends", str(record.num_batch_norms)),
            ("Their statistics in between", rules[record.batch_norm] if record.num_batch_norms else "none to choose"),
            ("Picked by", record.picked_by),
        ]
    )
    return Section(name="mixing", title="How weights were mixed", part="checks", blocks=[facts])


def _row(record: InterpolationRecord, point: InterpolationPoint) -> list[Cell]:
    test, val = (point.metric(record.primary_metric, split=split) for split in ("test", "val"))
    return [
        number(point.alpha, _SHARE),
        number(None if test is None else test.value, _NUMBERS),
        interval(None if test is None else test.low, None if test is None else test.high, _NUMBERS),
        number(None if val is None else val.value, _NUMBERS),
        number(point.similarity.get("cka"), _NUMBERS),
        number(point.similarity.get("cka_debiased"), _NUMBERS),
        words("yes" if point.alpha == record.picked_alpha else ""),
    ]


def _figure(source: Source[InterpolationRecord]) -> list[Block]:
    record = source.record
    curve = curve_of([record], "cka", record.primary_metric)
    drawn = [
        TradeOff(f"{point.alpha:g}", Interval(alike, None, None), Interval(value, None, None))
        for point, (alike, value) in zip(record.points, curve, strict=True)
        if point.alpha in (0, 1, record.picked_alpha) and math.isfinite(alike) and math.isfinite(value)
    ]
    if len(drawn) < 2:
        return []
    label, place = f"{metric_name_in_words(record.primary_metric)} on test", f"{source.prefix}mixed-weights"
    wide = trade_off_figure(drawn, curve, x_label=_SIMILARITY, y_label=label, identifier=place)
    narrow = trade_off_figure(
        drawn,
        curve,
        x_label="Similarity (CKA)",
        y_label=label,
        identifier=f"{place}-narrow",
        width=_SMALL_SCREEN,
        height=330,
    )
    caption = (
        "Each small dot is a network whose weights are mixed; up is better, right is more like the pretrained network. Named are "
        "the ends and the share that val picks. Between the dots nothing was measured."
    )
    return [Figure([wide], caption=caption, narrow=[narrow])]


def _verdict(record: InterpolationRecord) -> str:
    point = record.picked
    found = None if point is None else point.metric(record.primary_metric)
    if point is None or found is None:
        return f"Of the mixed networks, {record.picked_by}."
    cka = point.similarity.get("cka")
    return (
        f"Val picks the share {point.alpha:g} of the fine-tuned network ({record.picked_by}): {found.title.lower()} "
        f"{_NUMBERS(found.value)} on test {_NUMBERS.interval(found.low, found.high)}, CKA {_NUMBERS(cka)}."
    )


INTERPOLATION = Kind(
    InterpolationRecord,
    interpolation_heading,
    (interpolation_verdict_section, mixed_networks_section, mixing_section, provenance_section, references_section),
    terminal=(mixed_networks_section, interpolation_verdict_section),
)
