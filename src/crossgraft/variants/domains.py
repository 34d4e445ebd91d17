"""Variants on domains that training never saw: each domain, their mean, the worst, the gap, and what differs from the first.

All variants have the same splits and seeds. Differences are paired by image and by seed, as everywhere in a comparison.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.errors import NotApplicable
from crossgraft.metrics._intervals import CONFIDENCE
from crossgraft.statistics import mean_interval
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.record import DomainMetricRecord, UnseenDomainsRecord
from crossgraft.variants.comparison import Measured, MeasuredImages, OnImages, difference, reach_with_seeds
from crossgraft.variants.record import (
    ComparedDomainRecord,
    ComparedDomainsRecord,
    ComparedOnDomainsRecord,
    DifferenceRecord,
    ValueRecord,
)
from crossgraft.variants.words import ENOUGH_SEEDS


def tested_images(rows: TuningRows, metric: str) -> MeasuredImages:
    """The test images of all trainings of one seed, in the order of the data; with the domains that the metric is defined on."""
    tested = np.sort(np.concatenate([fold.test for fold in rows.parts]))
    images = MeasuredImages(rows.dataset.take(tested), metric)
    if rows.left_out is None or rows.domains is None or not rows.left_out.is_each:
        return images
    perfect = images.data.targets.astype(np.float64) if metric == "auc" else images.data.targets
    found: dict[str, np.ndarray] = {}
    for place, name in enumerate(rows.domains.names):
        alone = MeasuredImages(images.data, metric, {name: rows.domains.index[tested] == place})
        if alone.domains[name].any() and np.isfinite(alone.measure(perfect).value):
            found[name] = alone.domains[name]
    return MeasuredImages(images.data, metric, found)


def describe_left_out(rows: TuningRows, first: str) -> ComparedOnDomainsRecord | None:
    """Which domains were left out of every training; None where none was."""
    about = rows.left_out
    if about is None:
        return None
    return ComparedOnDomainsRecord(
        column=about.column,
        left_out=[str(fold.domain) for fold in rows.parts],
        is_each=about.is_each,
        is_oracle=about.is_oracle,
        first=first,
    )


def measure_domains(each: Measured, first: Measured | None, images: MeasuredImages) -> ComparedDomainsRecord | None:
    """One variant on every domain; None where no domain was left out, or no training is done.

    Args:
        each: The variant.
        first: The variant that it is compared with; None: that one failed.
        images: The test images.
    """
    records = [one.record.unseen_domains for one in each.trainings if one.record is not None]
    known = [record for record in records if record is not None]
    if not known:
        return None
    of_mean = _difference(each, first, images)
    if images.domains:
        alone = [images.of_domain(name) for name in images.domains]
        domains = [
            ComparedDomainRecord(
                domain=name,
                value=value_over_seeds(_measured(each, here), here, CONFIDENCE),
                difference=_difference(each, first, here),
            )
            for name, here in zip(images.domains, alone, strict=True)
        ]
    else:
        alone = []
        domains = [
            ComparedDomainRecord(
                domain=known[0].domains[0].domain, value=value_over_seeds(each.values, images, CONFIDENCE), difference=of_mean
            )
        ]
    return ComparedDomainsRecord(
        domains=domains,
        mean=value_over_seeds(each.values, images, CONFIDENCE),
        difference=of_mean,
        worst=worst_domain(each, first, list(images.domains), alone) if len(alone) > 1 else None,
        seen=_over_seeds([_of_all(record, "seen") for record in known], limits=(0.0, 1.0)),
        gap=_over_seeds([_of_all(record, "gap") for record in known], limits=(-1.0, 1.0)),
    )


def _measured(each: Measured, here: MeasuredImages, seeds: set[int] | None = None) -> list[OnImages]:
    """What a variant says of some of the images, by seed."""
    values = each.values if seeds is None else each.of_seeds(seeds)
    return [here.measure(answers) for value in values for _, answers in value.terms]


def _difference(
    each: Measured, first: Measured | None, here: MeasuredImages, *, confidence: float = CONFIDENCE
) -> DifferenceRecord | None:
    if each is first:
        return None
    if first is None:
        return DifferenceRecord(value=None, reason="the first variant has no training")
    seeds = each.seeds & first.seeds
    return difference(_measured(each, here, seeds), _measured(first, here, seeds), here, confidence=confidence)


def value_over_seeds(values: Sequence[OnImages], here: MeasuredImages, confidence: float) -> ValueRecord:
    """Mean over seeds with an interval of the test images and, from three on, of seeds: as of a difference."""
    by_seed = np.array([each.value for each in values])
    mean = float(by_seed.mean())
    try:
        total = here.combination([(1 / len(values), each) for each in values], confidence=confidence)
    except NotApplicable as refusal:
        return ValueRecord(value=None, no_interval_reason=refusal.reason)
    if total.low is None or total.high is None:
        return ValueRecord(value=mean, no_interval_reason=total.note)
    counts_seeds = len(by_seed) >= ENOUGH_SEEDS
    of_seeds = float(by_seed.var(ddof=1)) / len(by_seed) if counts_seeds else 0.0
    below, above = (reach_with_seeds(end, of_seeds, len(by_seed), confidence) for end in (mean - total.low, total.high - mean))
    kind = "test images and seeds" if counts_seeds else "test images"
    return ValueRecord(value=mean, low=max(0.0, mean - below), high=min(1.0, mean + above), interval_of=kind)


def worst_domain(
    each: Measured, first: Measured | None, names: Sequence[str], alone: Sequence[MeasuredImages]
) -> ComparedDomainRecord:
    """The domain with the lowest mean over seeds, and how much lower or higher it is than the lowest of the first variant.

    With K domains each has an interval of 1 − 0.05 / K, so that all hold at once. The lowest true value lies between the lowest
    of their lower ends and the lowest of their upper ends. The lowest of one variant minus the lowest of another is at least the
    smallest and at most the largest difference on one domain: min_k a_k − min_k b_k ∈ [min_k (a_k − b_k), max_k (a_k − b_k)].
    """
    confidence = 1 - (1 - CONFIDENCE) / len(alone)
    values = [value_over_seeds(_measured(each, here), here, confidence) for here in alone]
    lowest = int(np.argmin([np.inf if value.value is None else value.value for value in values]))
    value = values[lowest]
    if all(one.low is not None and one.high is not None for one in values):
        ends = [(one.low or 0.0, one.high or 0.0) for one in values]
        value = value.model_copy(update={"low": min(low for low, _ in ends), "high": min(high for _, high in ends)})
    else:
        value = value.model_copy(update={"low": None, "high": None, "no_interval_reason": "a domain has no interval"})
    if each is first or first is None:
        return ComparedDomainRecord(domain=names[lowest], value=value, difference=None)
    of_first = [value_over_seeds(_measured(first, here), here, confidence).value for here in alone]
    found = [_difference(each, first, here, confidence=confidence) for here in alone]
    difference_of_lowest = (value.value or 0.0) - min(one for one in of_first if one is not None)
    known = [one for one in found if one is not None and one.low is not None and one.high is not None]
    ends_of_all = {"low": min(one.low or 0.0 for one in known), "high": max(one.high or 0.0 for one in known)} if known else {}
    complete = len(known) == len(found)
    return ComparedDomainRecord(
        domain=names[lowest],
        value=value,
        difference=DifferenceRecord.model_validate(
            {"value": difference_of_lowest, **(ends_of_all if complete else {"reason": "a domain has no interval"})}
        ),
    )


def _of_all(record: UnseenDomainsRecord, name: str) -> DomainMetricRecord | None:
    return getattr(record if record.is_each else record.domains[0], name)


def _over_seeds(records: Sequence[DomainMetricRecord | None], *, limits: tuple[float, float]) -> ValueRecord | None:
    """With one seed its interval of test images, with three or more that over seeds."""
    known = [each for each in records if each is not None and each.value is not None]
    if not known:
        return None
    if len(known) == 1:
        (one,) = known
        kind = "test images" if one.low is not None else None
        return ValueRecord(value=one.value, low=one.low, high=one.high, interval_of=kind, no_interval_reason=one.reason)
    mean = mean_interval(np.array([each.value for each in known]), limits=limits)
    kind = "seeds" if mean.low is not None else None
    return ValueRecord(value=mean.mean, low=mean.low, high=mean.high, interval_of=kind, no_interval_reason=mean.reason)
