"""The networks between a pretrained and a fine-tuned one: the one that val picks, and every point of the way."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crossgraft.data.page import data_facts
from crossgraft.data.summary import known_split
from crossgraft.interpolate.caveats import INTERPOLATION_CAVEATS, after_interpolation, guess_of
from crossgraft.interpolate.curves import curve_of, joined_in
from crossgraft.interpolate.plot_trade_off import TradeOff, trade_off_figure
from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord
from crossgraft.metrics.words import metric_in_words, metric_name_in_words
from crossgraft.report.blocks import Block, Facts, Figure, Heading, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, words
from crossgraft.report.verdict import caveats_of, in_one_line, verdict_blocks
from crossgraft.tune.similarity_words import ADAPTED, CKA, untouched_in_words
from crossgraft.words.formatting import NumberFormat, counted
from crossgraft.words.formatting import joined as in_words

_NUMBERS = NumberFormat(decimals=3)
_SHARE = NumberFormat(decimals=2)
_SMALL_SCREEN = 340
_PLAIN = ("cka", "cka_debiased")  # of every network
_CURVE = "weights between pretrained and fine-tuned"
_SIMILARITY = "Similarity to the pretrained features (CKA)"


def interpolation_heading(source: Source[InterpolationRecord]) -> Heading:
    """The model, the data, and how many networks were measured."""
    record = source.record
    images = [] if record.images is None else [counted(record.images.num_images, "image"), *known_split(record.images)]
    networks = f"{counted(len(record.points), 'network')} from {record.start} to the fine-tuned one"
    return Heading(
        title=f"{record.model} on {record.dataset}, weight interpolation",
        summary=" · ".join([*images, networks]),
        advice=in_one_line(_verdict(record), caveats_of(source, INTERPOLATION_CAVEATS)),
    )


def interpolation_verdict_section(source: Source[InterpolationRecord]) -> Section:
    """The network that val picks with what limits it and what to type next, and the way as a figure where there are two ends."""
    caveats = caveats_of(source, INTERPOLATION_CAVEATS)
    blocks = [*verdict_blocks(_verdict(source.record), caveats, after_interpolation(source)), *_figure(source)]
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def mixed_networks_section(source: Source[InterpolationRecord]) -> Section:
    """Every point as a table."""
    record = source.record
    kinds = [name for name in CKA if any(name in point.similarity for point in record.points)] or list(_PLAIN)
    untouched = untouched_in_words(record.points[0].similarity)
    table = Table(
        caption="Networks by the share of the fine-tuned one",
        columns=[
            Column("Share", numeric=True),
            Column(f"{_metric(record)} on test", numeric=True),
            Column("95 % interval", numeric=True, csv_titles=("low", "high")),
            Column("On val", numeric=True),
            *(Column(CKA[name], numeric=True, page_only=name == "cka_adapted") for name in kinds),
            Column("Picked"),
        ],
        rows=[_row(record, point, kinds) for point in record.points],
        file_name="points",
        notes=[] if untouched is None else [f"{untouched}.", ADAPTED],
    )
    return Section(name="points", title="Networks on the way", part="evidence", blocks=[table])


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


def images_section(source: Source[InterpolationRecord]) -> Section | None:
    """The images and their split; None in a comparison, which shows them itself."""
    record = source.record
    if record.images is None:
        return None
    blocks: list[Block] = [] if record.leakage is None else [Paragraph(record.leakage)]
    return Section(
        name="data", title="Data and split", part="checks", blocks=[*blocks, Facts(data_facts(record.images))]
    )


def _row(record: InterpolationRecord, point: InterpolationPoint, kinds: Sequence[str]) -> list[Cell]:
    test, val = (point.metric(record.primary_metric, split=split) for split in ("test", "val"))
    return [
        number(point.alpha, _SHARE),
        number(None if test is None else test.value, _NUMBERS),
        interval(None if test is None else test.low, None if test is None else test.high, _NUMBERS),
        number(None if val is None else val.value, _NUMBERS),
        *(number(point.similarity.get(name), _NUMBERS) for name in kinds),
        words("yes" if point.alpha == record.picked_alpha else ""),
    ]


def _figure(source: Source[InterpolationRecord]) -> list[Block]:
    record = source.record
    curve = curve_of([record], "cka", record.primary_metric)
    joined = joined_in([record], "cka")
    drawn = [
        TradeOff(f"{point.alpha:g}", Interval(alike, None, None), Interval(value, None, None))
        for point, (alike, value) in zip(record.points, curve, strict=True)
        if point.alpha in (0, 1, record.picked_alpha) and math.isfinite(alike) and math.isfinite(value)
    ]
    if len(drawn) < 2:
        return []
    label, place = f"{_metric(record)} on test", f"{source.prefix}mixed-weights"
    wide = trade_off_figure(
        drawn, curve, joined, x_label=_SIMILARITY, y_label=label, identifier=place, curve_label=_CURVE
    )
    narrow = trade_off_figure(
        drawn,
        curve,
        joined,
        x_label="Similarity (CKA)",
        y_label=label,
        identifier=f"{place}-narrow",
        curve_label=_CURVE,
        width=_SMALL_SCREEN,
        height=330,
    )
    names = [f"{each.name} (picked on val)" if float(each.name) == record.picked_alpha else each.name for each in drawn]
    return [Figure([wide], caption=_caption(names, joined), narrow=[narrow])]


def _caption(names: Sequence[str], are_joined: Sequence[bool]) -> str:
    """What dots, names, lines and gaps mean, as far as the figure has them."""
    said = [
        "Each small dot is a network that was measured; up is better, right is more like the pretrained network.",
        f"Named by their share of the fine-tuned network: {in_words(names)}.",
    ]
    if any(are_joined):
        said.append("A dashed line joins two dots where the similarity changes little from one to the next.")
    if not all(are_joined):
        said.append("Where there is none, nothing is known of what lies between.")
    return " ".join(said)


def _metric(record: InterpolationRecord) -> str:
    """The primary metric as the title of a column."""
    name = metric_name_in_words(record.primary_metric)
    return f"{name[:1].upper()}{name[1:]}"


def _verdict(record: InterpolationRecord) -> str:
    point = record.picked
    found = None if point is None else point.metric(record.primary_metric)
    if point is None or found is None:
        return f"Of the mixed networks, {record.picked_by}."
    value = metric_in_words(found, guess=guess_of(record), which="of test")
    ends = {0.0: f"the start, {record.start}", 1.0: "the fine-tuned network itself"}
    picked = ends.get(point.alpha, f"the share {point.alpha:g} of the fine-tuned network")
    return (
        f"Val picks {picked}. {value}; "
        f"similarity to the pretrained features (CKA) {_NUMBERS(point.similarity.get('cka'))}."
    )


REPORT = Kind(
    InterpolationRecord,
    interpolation_heading,
    (
        interpolation_verdict_section,
        mixed_networks_section,
        mixing_section,
        images_section,
        provenance_section,
        references_section,
    ),
    terminal=(mixed_networks_section, interpolation_verdict_section),
)
