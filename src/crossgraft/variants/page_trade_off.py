"""Quality against similarity: the figure of a comparison of fine-tunings, also in the report of the demo."""

from __future__ import annotations

from markupsafe import Markup

from crossgraft.interpolate.curves import curve_of, joined_in
from crossgraft.interpolate.plot_trade_off import TradeOff, trade_off_figure
from crossgraft.report.blocks import Block, Figure, Folded
from crossgraft.report.plots.scatter import Interval
from crossgraft.variants.record import ComparedVariantRecord, FineTuningComparisonRecord, ValueRecord

_SMALL_SCREEN = 340


def trade_off(record: FineTuningComparisonRecord, *, prefix: str) -> list[Block]:
    """Quality against similarity, biased as in the literature, then debiased; nothing without two variants to draw.

    All stand at their similarity to one network: the adapted one where a variant started from it. Where others did not, the
    figure of the network as it came is folded away below.

    Args:
        record: The comparison.
        prefix: Prefix of every id in the report.
    """
    if sum(row.metric.value is not None and row.cka.value is not None for row in record.variants) < 2:
        return []
    modes = {row.batch_norm for row in record.variants if row.metric.value is not None}
    adapted = "adapt" in modes
    biased = _trade_off(record, "cka", prefix, adapted=adapted)
    debiased = _trade_off(record, "cka_debiased", prefix, adapted=adapted)
    blocks: list[Block] = [
        Figure(biased[:1], caption=_caption(record, adapted=adapted), narrow=biased[1:]),
        Folded(
            "The same against the debiased CKA", [Figure(debiased[:1], caption=_DEBIASED_CAPTION, narrow=debiased[1:])]
        ),
    ]
    if adapted and len(modes) > 1:
        as_it_came = _trade_off(record, "cka", prefix)
        figure = Figure(as_it_came[:1], caption=_AS_IT_CAME_CAPTION, narrow=as_it_came[1:])
        blocks.append(Folded("The same against the network as it came", [figure]))
    return blocks


_DEBIASED_CAPTION = (
    "The CKA that papers report is biased: that of unrelated features is above 0, the more the fewer images there are. The "
    "debiased one of unrelated features is about 0."
)


_AS_IT_CAME_CAPTION = (
    "Variants whose BatchNorm was not adapted started here. Of the others, and of the curve, re-estimated statistics lower this "
    "similarity before any weight has changed."
)


def _trade_off(record: FineTuningComparisonRecord, measure: str, prefix: str, *, adapted: bool = False) -> list[Markup]:
    """The figure for wide screens and for phones."""
    kind, compared = (f"{measure}_adapted", "adapted") if adapted else (measure, "pretrained")
    short = "Similarity (CKA)" if measure == "cka" else "Similarity (debiased CKA)"
    label = short.replace("Similarity", f"Similarity to the {compared} features")
    points = [
        TradeOff(row.variant, _interval(_similarity(row, kind)), _interval(row.metric), row.sweep, row.strength)
        for row in record.variants
    ]
    curve = curve_of(record.interpolation, kind, record.primary_metric)
    joined = joined_in(record.interpolation, kind)
    title, place = f"{record.metric_title} on test", f"{prefix}trade-off-{kind}"
    return [
        trade_off_figure(points, curve, joined, x_label=label, y_label=title, identifier=place),
        trade_off_figure(
            points,
            curve,
            joined,
            x_label=short,
            y_label=title,
            identifier=f"{place}-narrow",
            width=_SMALL_SCREEN,
            height=330,
        ),
    ]


def _caption(record: FineTuningComparisonRecord, *, adapted: bool) -> str:
    several = len(record.seeds) > 1
    dot = f"the mean over {len(record.seeds)} seeds" if several else "one training"
    under = " under BatchNorm statistics of the training images, where a variant started" if adapted else ""
    text = f"Each dot is one way to fine-tune ({dot}): up is better, right is more like the pretrained network{under}. "
    text += "Thin lines are 95 % intervals, cut off at the frame. "
    if any(row.sweep is not None for row in record.variants):
        text += "Thick lines join one plug-in with different strengths; a number alone is such a strength. "
    if record.interpolation:
        text += (
            "The dashed curve interpolates the weights of the pretrained network and of full, which costs no training: a way to "
            "fine-tune is worth its time where it lies above. Its small dots were measured; a line joins two of them where the "
            "similarity changes little from one to the next, and a gap says that nothing is known there. "
        )
    return text.rstrip()


def _similarity(row: ComparedVariantRecord, kind: str) -> ValueRecord:
    by_kind = {
        "cka": row.cka,
        "cka_debiased": row.cka_debiased,
        "cka_adapted": row.cka_adapted,
        "cka_debiased_adapted": row.cka_debiased_adapted,
    }
    return by_kind[kind] or ValueRecord(value=None)


def _interval(value: ValueRecord) -> Interval:
    return Interval(value.value, value.low, value.high)
