"""The networks between a pretrained and a fine-tuned one: the one that val picks, and every point of the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from crossgraft.data.describe import known_split
from crossgraft.data.page import data_facts
from crossgraft.interpolate.plot_trade_off import TradeOff, trade_off_figure
from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord, curve_of, joined_in
from crossgraft.metrics.page import looked_at_before
from crossgraft.metrics.words import guessing, metric_format, metric_in_words, metric_name_in_words, too_few_in_words
from crossgraft.options.command import RUN
from crossgraft.options.models import CodeOptions
from crossgraft.report.blocks import Block, Facts, Heading, Paragraph, Section, figure_for_screens
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, interval, number, words
from crossgraft.report.verdict import (
    PREDICT_IMAGES,
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    in_one_line,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.tasks import num_choices
from crossgraft.tune.words import ADAPTED, CKA, untouched_in_words
from crossgraft.words.formatting import NumberFormat, counted
from crossgraft.words.formatting import joined as in_words


def groups_in_two_parts(source: Source[InterpolationRecord]) -> Caveat | None:
    """Images of one patient trained and tested."""
    record = source.record
    return Caveat(record.leakage, Gravity.WRONG) if record.num_shared_groups and record.leakage is not None else None


def picked_may_be_guessing(source: Source[InterpolationRecord]) -> Caveat | None:
    """The interval of the network that val picks contains what guessing gives, or there is none."""
    record = source.record
    metric = None if record.picked is None else record.picked.metric(record.primary_metric)
    if metric is None or metric.value is None:
        return None
    if metric.low is None:
        return Caveat("There is no interval, so nothing tells how far chance goes.", Gravity.EMPTY)
    doubt = None if record.images is None else too_few_in_words(metric, num_choices(record.images))
    return None if doubt is None else Caveat(doubt, Gravity.EMPTY)


def guess_of(record: InterpolationRecord) -> float | None:
    """What guessing gives of the primary metric, where that is known."""
    return None if record.images is None else guessing(record.primary_metric, num_choices(record.images))


def head_of_the_end(source: Source[InterpolationRecord]) -> Caveat | None:
    """Without a linear probe, the head at the start never saw the features below it."""
    if source.record.has_probe is not False:
        return None
    return Caveat(
        "There is no linear probe (--linear), so every network has the head of the fine-tuned one, which never saw pretrained "
        "features: those near the share 0 look worse than they need.",
        Gravity.FLATTERED,
    )


def end_may_be_as_good(source: Source[InterpolationRecord]) -> Caveat | None:
    """The fine-tuned network lies inside the interval of the one that val picks."""
    record = source.record
    end = next((point for point in record.points if point.alpha == 1), None)
    if record.picked is None or end is None or record.picked is end:
        return None
    picked, last = (point.metric(record.primary_metric) for point in (record.picked, end))
    if picked is None or last is None or picked.low is None or picked.high is None or last.value is None:
        return None
    if not picked.low <= last.value <= picked.high:
        return None
    value = metric_format([picked])(last.value)
    return Caveat(
        f"The fine-tuned network has {value}, inside this interval. The two were not compared image by image, so which of them "
        "is better is not known.",
        Gravity.FLATTERED,
    )


def statistics_jump(source: Source[InterpolationRecord]) -> Caveat | None:
    """BatchNorm between the ends has statistics that neither end has."""
    record = source.record
    between = any(0 < point.alpha < 1 for point in record.points)
    if not (between and record.num_batch_norms and record.batch_norm == "estimate"):
        return None
    return Caveat(
        f"{counted(record.num_batch_norms, 'layer')} of BatchNorm have statistics of the training images between the ends and "
        "their own at the ends, so the curve may jump there.",
        Gravity.LIMITED,
    )


def patients_not_known(source: Source[InterpolationRecord]) -> Caveat | None:
    """Without groups, images of one patient may be in two parts."""
    record = source.record
    has_groups = record.images is None or record.images.num_groups is not None
    return None if has_groups or record.leakage is None else Caveat(record.leakage, Gravity.UNCHECKED)


INTERPOLATION_CAVEATS: tuple[CaveatOf[InterpolationRecord], ...] = (
    groups_in_two_parts,
    picked_may_be_guessing,
    head_of_the_end,
    end_may_be_as_good,
    looked_at_before,
    statistics_jump,
    patients_not_known,
)
"""The most severe first, in the order of ``report.verdict``."""


def after_interpolation(source: Source[InterpolationRecord]) -> Following:
    """To predict with the end that val picks; a network in between is not kept, so then with the fine-tuned one."""
    typed, picked = source.typed, source.record.picked_alpha
    run = next(iter(typed.inputs), RUN) if typed.verb == "interpolate" else RUN
    purpose = "to use the fine-tuned network, because mixed ones are not kept"
    if picked == 1:
        purpose = "to use it"
    elif picked == 0 and (probe := typed.value("--linear")) is not None:
        run, purpose = probe, "to use the linear probe"
    line = typed.then("predict", run, PREDICT_IMAGES, carried=[CodeOptions])
    return Following(line, purpose)


_NUMBERS = NumberFormat(decimals=3)
_SHARE = NumberFormat(decimals=2)
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
    return verdict_section(_verdict(source.record), caveats, after_interpolation(source), *_figure(source))


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
    return Section(name="data", title="Data and split", part="checks", blocks=[*blocks, Facts(data_facts(record.images))])


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
    labels = {"x_label": _SIMILARITY, "short": "Similarity (CKA)", "y_label": f"{_metric(record)} on test", "curve_label": _CURVE}
    draw = partial(trade_off_figure, drawn, curve, joined, **labels)
    names = [f"{each.name} (picked on val)" if float(each.name) == record.picked_alpha else each.name for each in drawn]
    return [figure_for_screens(draw, identifier=f"{source.prefix}mixed-weights", caption=_caption(names, joined))]


def _caption(names: Sequence[str], are_joined: Sequence[bool]) -> str:
    """What dots, names, lines and gaps mean, as far as the figure has them."""
    sentences = [
        "Each small dot is a network that was measured; up is better, right is more like the pretrained network.",
        f"Named by their share of the fine-tuned network: {in_words(names)}.",
    ]
    if any(are_joined):
        sentences.append("A dashed line joins two dots where the similarity changes little from one to the next.")
    if not all(are_joined):
        sentences.append("Where there is none, nothing is known of what lies between.")
    return " ".join(sentences)


def _metric(record: InterpolationRecord) -> str:
    """The primary metric as the title of a column."""
    name = metric_name_in_words(record.primary_metric)
    return f"{name[:1].upper()}{name[1:]}"


def _verdict(record: InterpolationRecord) -> str:
    point = record.picked
    metric = None if point is None else point.metric(record.primary_metric)
    if point is None or metric is None:
        return f"Of the mixed networks, {record.picked_by}."
    value = metric_in_words(metric, guess=guess_of(record), which="of test")
    ends = {0.0: f"the start, {record.start}", 1.0: "the fine-tuned network itself"}
    picked = ends.get(point.alpha, f"the share {point.alpha:g} of the fine-tuned network")
    return f"Val picks {picked}. {value}; similarity to the pretrained features (CKA) {_NUMBERS(point.similarity.get('cka'))}."


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
