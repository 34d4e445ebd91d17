"""Rows of variants from their trainings: means over seeds, intervals, differences, order; and what limits them, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from crossgraft.choice import spell
from crossgraft.metrics.record import MetricRecord
from crossgraft.statistics import mean_interval
from crossgraft.tune.record import BatchNormMode
from crossgraft.tune.words import missed_in_words
from crossgraft.variants.comparison import Measured, MeasuredImages, difference
from crossgraft.variants.curves import MixedCurve, above_curve
from crossgraft.variants.domains import measure_domains
from crossgraft.variants.record import (
    ComparedDomainsRecord,
    ComparedTrainingRecord,
    ComparedVariantRecord,
    DifferenceRecord,
    ValueRecord,
)
from crossgraft.variants.study import DoneTraining, VariantStudy
from crossgraft.variants.variant import left_out
from crossgraft.variants.words import ENOUGH_SEEDS
from crossgraft.words.formatting import counted


def measure_variants(done: Sequence[DoneTraining], images: MeasuredImages) -> list[Measured]:
    """One entry per variant, in the order in which they were given."""
    measured: list[Measured] = []
    names = list(images.data.class_names)
    for variant in dict.fromkeys(each.variant.name for each in done):
        of_it = [each for each in done if each.variant.name == variant]
        ended = [each for each in of_it if each.record is not None]
        values = [images.measure(each.answers(names, metric=images.metric)) for each in ended]
        measured.append(Measured(of_it[0].variant, ended, values, len(of_it) - len(ended)))
    return measured


def summarise(measured: Sequence[Measured], curves: Sequence[MixedCurve], images: MeasuredImages) -> list[ComparedVariantRecord]:
    """Every variant with its intervals and differences, the best first, those that failed last."""
    full = next((each for each in measured if each.variant.is_full and each.trainings), None)
    pairs = _pairs(measured, images)
    rows = [_row(each, full, pairs, curves, images) for each in measured]
    first = measured[0] if measured and measured[0].trainings else None
    rows = [_on_domains(row, measure_domains(each, first, images)) for row, each in zip(rows, measured, strict=True)]
    return sorted(rows, key=lambda row: (row.metric.value is None, -(row.metric.value or 0.0)))


def _on_domains(row: ComparedVariantRecord, unseen: ComparedDomainsRecord | None) -> ComparedVariantRecord:
    """With what is known of domains that training never saw, whose mean then is the metric."""
    return row if unseen is None else row.model_copy(update={"unseen": unseen, "metric": unseen.mean})


def _pairs(measured: Sequence[Measured], images: MeasuredImages) -> dict[tuple[str, str], DifferenceRecord]:
    """Differences of every two variants, on the seeds that both have."""
    return {
        (one.variant.name, other.variant.name): difference(
            one.of_seeds(one.seeds & other.seeds), other.of_seeds(one.seeds & other.seeds), images
        )
        for one in measured
        for other in measured
        if one is not other
    }


def _row(
    each: Measured,
    full: Measured | None,
    pairs: Mapping[tuple[str, str], DifferenceRecord],
    curves: Sequence[MixedCurve],
    images: MeasuredImages,
) -> ComparedVariantRecord:
    variant, rows, batch_norm = each.variant, [one.row for one in each.trainings], _batch_norm(each)
    plan = next((one.record.plan for one in each.trainings if one.record is not None), None)
    seconds = float(np.mean([row.seconds for row in rows])) if rows else None
    of_full = None if full is None else float(np.mean([one.row.seconds for one in full.trainings]))
    not_separable = [
        other for (one, other), difference in pairs.items() if one == variant.name and difference.is_separable is False
    ]
    return ComparedVariantRecord(
        variant=variant.name,
        form=variant.form,
        settings={name: _in_words(value) for name, value in variant.settings.items() if value not in ((), None)},
        sweep=variant.sweep,
        strength=variant.strength,
        is_full=variant.is_full,
        num_done=len(rows),
        num_failed=each.num_failed,
        metric=_primary(each, images),
        accuracy=_of_metric([row.metric("accuracy") for row in rows]),
        cka=_of_numbers([row.similarity.get("cka") for row in rows], limits=(-math.inf, 1.0)),
        cka_debiased=_of_numbers([row.similarity.get("cka_debiased") for row in rows], limits=(-math.inf, 1.0)),
        cka_adapted=_of_adapted(rows, "cka_adapted"),
        cka_debiased_adapted=_of_adapted(rows, "cka_debiased_adapted"),
        batch_norm=batch_norm,
        num_trained=None if plan is None else plan.num_trained + plan.num_own_parameters,
        multiply_adds=None if plan is None else plan.training_multiply_adds,
        peak_bytes=None if plan is None else plan.peak_bytes,
        seconds=seconds,
        time_ratio=None if seconds is None or not of_full else seconds / of_full,
        difference=None if full is None or each is full or not rows else pairs[variant.name, full.variant.name],
        above_curve=above_curve(each.trainings, each.values, curves, images, adapted=batch_norm == "adapt") if rows else None,
        not_separable_from=not_separable,
    )


def _of_adapted(rows: Sequence[ComparedTrainingRecord], name: str) -> ValueRecord | None:
    similarities = [row.similarity.get(name) for row in rows]
    return None if all(value is None for value in similarities) else _of_numbers(similarities, limits=(-math.inf, 1.0))


def _batch_norm(each: Measured) -> BatchNormMode | None:
    """What it did in every training of the variant; None of a network that has none."""
    records = [one.record.batch_norm for one in each.trainings if one.record is not None]
    return next((batch_norm.effective_mode for batch_norm in records if batch_norm is not None and batch_norm.num_layers), None)


def missed_targets(measured: Sequence[Measured]) -> list[str]:
    """One sentence for each variant with a training that did not end at the similarity that ``--keep`` asked for."""
    sentences: list[str] = []
    for each in measured:
        records = [one.record for one in each.trainings if one.record is not None]
        missed = [(record.keep, record.batch_norm) for record in records if record.keep and not record.keep.is_reached]
        if missed:
            keep, batch_norm = missed[0]
            of_all = keep.model_copy(update={"found": [value for kept, _ in missed for value in kept.found]})
            sentences.append(f"{each.variant.name}: {missed_in_words(of_all, batch_norm)}")
    return sentences


def _primary(each: Measured, images: MeasuredImages) -> ValueRecord:
    """With two seeds the interval is that of test images, of the mean over both."""
    primary = _of_metric([one.row.metric(images.metric) for one in each.trainings])
    if primary.value is None or primary.low is not None or len(each.values) != 2:
        return primary
    mean = images.mean(each.values)
    if mean.low is None or mean.high is None:
        return primary.model_copy(update={"no_interval_reason": mean.note})
    ends = {"low": max(0.0, mean.low), "high": min(1.0, mean.high)}
    return primary.model_copy(update={**ends, "interval_of": "test images", "no_interval_reason": None})


def _of_metric(rows: Sequence[MetricRecord | None]) -> ValueRecord:
    """Value with an interval: with one seed its own interval, with several that over seeds."""
    known = [row for row in rows if row is not None and row.value is not None]
    if len(known) == 1:
        has_interval = known[0].low is not None
        return ValueRecord(
            value=known[0].value,
            low=known[0].low,
            high=known[0].high,
            interval_of="test images" if has_interval else None,
            no_interval_reason=known[0].no_interval_reason,
        )
    return _of_numbers([row.value for row in known], limits=(0.0, 1.0))


def _of_numbers(values: Sequence[float | None], *, limits: tuple[float, float] = (-math.inf, math.inf)) -> ValueRecord:
    """Mean over seeds, with the interval of ``mean_interval``; none with fewer than three."""
    known = np.array([value for value in values if value is not None and math.isfinite(value)])
    if not len(known):
        return ValueRecord(value=None)
    mean = mean_interval(known, limits=limits)
    if mean.low is None:
        return ValueRecord(value=mean.mean, no_interval_reason=mean.reason)
    return ValueRecord(value=mean.mean, low=mean.low, high=mean.high, interval_of="seeds")


def _in_words(value: object) -> str:
    """A setting as one would type it."""
    if isinstance(value, list | tuple):
        return ",".join(_in_words(each) for each in value)  # pyright: ignore[reportUnknownVariableType]
    return value if isinstance(value, str) else spell(value) if hasattr(value, "name") else str(value)


def intervals_in_words(num_seeds: int, *, on_domains: bool = False) -> str:
    """What would have to be drawn anew for the intervals of the variants to say how much it changes.

    Args:
        num_seeds: Trainings of each variant.
        on_domains: Whether domains were left out; from three seeds on their intervals count images and seeds.
    """
    if on_domains and num_seeds >= ENOUGH_SEEDS:
        return f"Intervals count other images of these domains and, by {num_seeds} seeds, other seeds; not other domains."
    if num_seeds >= ENOUGH_SEEDS:
        return (
            f"Intervals of a variant are those of its mean over {num_seeds} seeds: how much other seeds would "
            "change it, on these test images. Intervals of differences count test images and seeds."
        )
    runs = "is one training each" if num_seeds == 1 else "are two trainings each, too few to see how much seeds change"
    return f"There {runs}, so intervals are those of test images; another seed may change more than they say."


def notes_on(study: VariantStudy, curves: Sequence[MixedCurve]) -> list[str]:
    """What a reader of differences and of the curve should know."""
    notes = [
        *left_out(study.request.options, study.variants),
        "Every difference has its own 95 % interval: of those that are truly 0, about one in twenty looks like more by chance.",
        "Which variant is best was seen on the test images. The value of the best of many is a little too high; new images say "
        "how it really is.",
    ]
    if any(each.starts_from_scratch for each in study.variants):
        notes.append("Scratch starts from random weights; its similarity, too, is to the pretrained network.")
    if curves:
        layers = curves[0].record.num_batch_norms
        own = (
            f" The statistics of {counted(layers, 'BatchNorm layer')} were estimated anew on the training images."
            if layers
            else ""
        )
        notes.append(
            "The curve mixes the weights of the pretrained network and of full, without any training (WiSE-FT)."
            f"{own} A variant is compared with the best network on the curve that is at least as similar to where its "
            "training started, by the biased CKA, which counts as known; between two measured networks "
            "the curve is taken as straight, unless the similarity jumps there."
        )
    return notes
