"""Harms that metrics show and a mean hides: a class that is missed or taken for another, probabilities that are no risks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from scipy.special import bdtrc

from crossgraft.metrics.record import CalibrationRecord, ConfusionRecord, MetricRecord
from crossgraft.report.verdict import Caveat, Gravity
from crossgraft.tasks import Task
from crossgraft.words.formatting import NumberFormat, count, counted, joined

LEAST_MISSED = 2
"""Images of a class; one mistake alone says nothing of it."""
MOST_FOUND = 0.5
"""A class of a lower sensitivity than this is missed, whatever the other classes have."""
LEVEL = 0.05
"""Level of all tests whether a class is missed: each has its share, two for each class (Bonferroni)."""
LEAST_ERROR = 0.05
"""Probabilities that are off by less on average mislead nobody."""
STANDARD_ERRORS = 3.0
"""So many above what perfect probabilities show on as many images, a calibration error is no chance (p about 0.001)."""

_SHARE = NumberFormat(decimals=2)


class ClassErrors(NamedTuple):
    """What became of the images of one class (label).

    Attributes:
        name: Name of the class.
        images: Number of those that were measured.
        missed: Number of those that were not recognised.
        taken_for: Classes that they were taken for, with counts; empty where images may have several labels.
        sensitivity: With its interval; None where it was not recorded.
        by_guessing: The share that guessing misses: of a label, what is given to as many images without it.
    """

    name: str
    images: int
    missed: int
    taken_for: dict[str, int]
    sensitivity: MetricRecord | None = None
    by_guessing: float | None = None


def errors_of_classes(
    class_names: Sequence[str], counts: Sequence[Sequence[int]], metrics: Sequence[MetricRecord] = ()
) -> list[ClassErrors]:
    """One entry per class that has images.

    Args:
        class_names: In the order of ``counts``.
        counts: Confusion matrix; row: true class, column: predicted one.
        metrics: Metrics of classes on the same images.
    """
    known = sensitivities(class_names, metrics)
    guess = 1 - 1 / len(class_names)
    entries: list[ClassErrors] = []
    for place, (name, row) in enumerate(zip(class_names, counts, strict=True)):
        taken = {other: number for column, (other, number) in enumerate(zip(class_names, row, strict=True)) if column != place}
        entries.append(ClassErrors(name, sum(row), sum(taken.values()), taken, known.get(name), guess))
    return [entry for entry in entries if entry.images]


def sensitivities(class_names: Sequence[str], metrics: Sequence[MetricRecord]) -> dict[str, MetricRecord]:
    """The sensitivity of each class that has one; of the first of two classes it is the specificity of the last.

    Args:
        class_names: Classes or labels, in their order.
        metrics: Metrics of single classes, all on the same images.
    """
    known = {row.class_name: row for row in metrics if row.metric == "sensitivity" and row.class_name is not None}
    if len(class_names) == 2 and class_names[0] not in known:
        known.update((class_names[0], row) for row in metrics if (row.metric, row.class_name) == ("specificity", class_names[1]))
    return known


def errors_of_labels(metrics: Sequence[MetricRecord]) -> list[ClassErrors]:
    """One entry per label whose sensitivity has a value.

    Args:
        metrics: Sensitivities and specificities of labels on the same images.
    """
    specificities = {row.class_name: row.value for row in metrics if row.metric == "specificity"}
    return [
        ClassErrors(name, row.num_images, round((1 - row.value) * row.num_images), {}, row, specificities.get(name))
        for row in metrics
        if row.metric == "sensitivity" and (name := row.class_name) is not None and row.value is not None and row.num_images
    ]


def missed_class_caveat(
    task: Task, confusion: ConfusionRecord | None, metrics: Sequence[MetricRecord], *, splits: Sequence[str]
) -> Caveat | None:
    """The class (label) that is missed, or taken for another, more often than the others.

    Args:
        task: Says whether an image has one class.
        confusion: Answers by true class; None: not known, or an image may have several labels.
        metrics: All that were measured.
        splits: Parts of the data that count where there is no confusion matrix.
    """
    if task.partitions:
        if confusion is None:
            return None
        entries = errors_of_classes(confusion.class_names, confusion.counts, _of_classes(metrics, [confusion.split]))
    else:
        entries = errors_of_labels(_of_classes(metrics, splits))
    return missed_in_words(missed_classes(entries), task)


def _of_classes(metrics: Sequence[MetricRecord], splits: Sequence[str]) -> list[MetricRecord]:
    """Those of single classes on all images of parts of the data."""
    return [row for row in metrics if row.class_name is not None and row.split in splits and row.attribute is None]


def missed_classes(entries: Sequence[ClassErrors]) -> list[ClassErrors]:
    """Those that are missed, the one with the largest share first.

    A class is missed where its images are missed more often than those of all other classes together (one-sided exact test of
    Fisher), or where it has a sensitivity below ``MOST_FOUND`` (one-sided exact binomial test); together at ``LEVEL`` for all
    classes. Where its sensitivity has an interval, which counts patients, that must lie below the same share, and with patients
    the interval of the difference to the others above 0. Labels, which an image may have several of, are not compared with each
    other; one that is given no more often where it belongs is missed, too, which is what was seen and no test.

    Cost: one sum over the missed images for each class.
    """
    missed = [entry for entry in entries if entry.missed >= LEAST_MISSED and _is_missed(entry, entries)]
    return sorted(missed, key=lambda entry: (-entry.missed / entry.images, -entry.images))


def _is_missed(entry: ClassErrors, entries: Sequence[ClassErrors]) -> bool:
    level = LEVEL / (2 * len(entries))
    high = -math.inf if entry.sensitivity is None or entry.sensitivity.high is None else entry.sensitivity.high
    if high < MOST_FOUND and bdtrc(entry.missed - 1, entry.images, 1 - MOST_FOUND) <= level:
        return True
    if not entry.taken_for:
        return entry.by_guessing is not None and entry.missed >= entry.by_guessing * entry.images
    others = [other for other in entries if other is not entry]
    images, missed = sum(other.images for other in others), sum(other.missed for other in others)
    if not images:
        return False
    by_chance = _at_least(entry.missed, of=entry.images, drawn=entry.missed + missed, among=entry.images + images)
    return high < 1 - missed / images and by_chance <= level and _is_below_by_patients(entry, others)


def _is_below_by_patients(entry: ClassErrors, others: Sequence[ClassErrors]) -> bool:
    """Whether the sensitivity lies below that of the others together by more than both intervals over patients allow.

    They are squared and added (MOVER). Where images are alone, Fisher's test has counted both sides.
    """
    own = entry.sensitivity
    if own is None or own.num_groups is None or own.value is None or own.high is None:
        return True
    images = sum(other.images for other in others)
    share = 1 - sum(other.missed for other in others) / images
    reach = (own.high - own.value) ** 2
    for other in others:
        if other.sensitivity is not None:
            found = 1 - other.missed / other.images
            reach += (other.images / images * (found - (other.sensitivity.low or 0.0))) ** 2
    return share - own.value > math.sqrt(reach)


def _at_least(hits: int, *, of: int, drawn: int, among: int) -> float:
    """P(at least ``hits`` of ``drawn`` without putting back are among ``of`` marked ones), of ``among`` (hypergeometric)."""
    log_all = _log_ways(among, drawn)
    lowest, highest = max(hits, drawn - (among - of)), min(of, drawn)
    return sum(math.exp(_log_ways(of, k) + _log_ways(among - of, drawn - k) - log_all) for k in range(lowest, highest + 1))


def _log_ways(things: int, chosen: int) -> float:
    """Logarithm of the binomial coefficient, whose digits would fill pages."""
    return math.lgamma(things + 1) - math.lgamma(chosen + 1) - math.lgamma(things - chosen + 1)


def missed_in_words(missed: Sequence[ClassErrors], task: Task) -> Caveat | None:
    """The class that is missed most, what it was taken for, and which others are missed."""
    if not missed:
        return None
    worst, others = missed[0], [entry.name for entry in missed[1:]]
    for_what = max(worst.taken_for.items(), key=lambda item: item[1], default=("", 0))
    images = f"{count(worst.missed)} of {counted(worst.images, 'image')} {task.of} {worst.name}"
    if for_what[1] == worst.missed:
        text = f"It took {images} for {for_what[0]}"
    elif 2 * for_what[1] > worst.missed:
        text = f"It missed {images}, and took {count(for_what[1])} of them for {for_what[0]}"
    else:
        text = f"It missed {images}"
    guess = ""
    if worst.by_guessing is not None and worst.missed >= worst.by_guessing * worst.images:
        guess = f"; guessing would miss about {round(worst.by_guessing * worst.images)}"
    also = f" Also missed often: {joined(others)}." if others else ""
    return Caveat(f"{text}{_interval(worst.sensitivity)}{guess}.{also}", Gravity.HARM)


def _interval(sensitivity: MetricRecord | None) -> str:
    if sensitivity is None or sensitivity.value is None:
        return ""
    value = f"sensitivity {_SHARE(sensitivity.value)}"
    if sensitivity.low is None or sensitivity.high is None:
        return f" ({value})"
    return f" ({value}, 95\N{NO-BREAK SPACE}% interval {_SHARE(sensitivity.low)} to {_SHARE(sensitivity.high)})"


def wrong_risks(calibration: CalibrationRecord | None, task: Task) -> Caveat | None:
    """Probabilities that are further off than perfect ones would look on as many images.

    Of perfect probabilities the sum of confidence minus right or wrong in bin b has variance n_b m_b (1 − m_b) at most, with m_b
    their mean; its size has the mean √(2/π) and the variance (1 − 2/π) of a half-normal one. The calibration error adds them up.
    Images of a group (patient) may be right together, so the variance over groups counts where it is larger.
    """
    if calibration is None:
        return None
    bins = calibration.bins_calibrated or calibration.bins_raw
    known = [(row.num_images, row.mean_probability, row.share_right, row.variance_of_groups or 0.0) for row in bins]
    filled = [(n, mean, right, grouped) for n, mean, right, grouped in known if n and mean is not None and right is not None]
    num_images = sum(n for n, *_ in filled)
    if not num_images:
        return None
    error = sum(n * abs(mean - right) for n, mean, right, _ in filled) / num_images
    variances = [max(n * mean * (1 - mean), grouped) for n, mean, _, grouped in filled]
    by_chance = math.sqrt(2 / math.pi) * sum(map(math.sqrt, variances)) / num_images
    standard_error = math.sqrt((1 - 2 / math.pi) * sum(variances)) / num_images
    if error < LEAST_ERROR or error <= by_chance + STANDARD_ERRORS * standard_error:
        return None
    too_high = sum(n * (mean - right) for n, mean, right, _ in filled) > 0
    how = ("too high" if too_high else "too low") if not task.partitions else ("too sure" if too_high else "not sure enough")
    return Caveat(
        f"Its probabilities are off by {_SHARE(error)} on average, mostly {how}: do not read them as risks. Perfect ones would "
        f"look off by about {_SHARE(by_chance)} on as many images.",
        Gravity.HARM,
    )
