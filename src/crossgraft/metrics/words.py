"""Metrics in words, for the report and the terminal alike."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.metrics.record import MetricRecord
from crossgraft.records.base import LooksRecord
from crossgraft.words.formatting import NumberFormat, counted

_ABBREVIATIONS = ("auc", "f1")


def overall(metrics: Sequence[MetricRecord]) -> list[MetricRecord]:
    """Those over all classes and all images."""
    return [row for row in metrics if row.class_name is None and row.attribute is None]


def metric_format(metrics: Sequence[MetricRecord]) -> NumberFormat:
    """The decimals of metrics in one column: at least two, as their intervals justify."""
    widths = [row.high - row.low for row in metrics if row.low is not None and row.high is not None]
    chosen = NumberFormat.for_column([row.value for row in metrics], interval_widths=widths)
    return NumberFormat(decimals=max(chosen.decimals, 2))


def metric_name_in_words(name: str) -> str:
    """The name of a metric inside a sentence.

    >>> metric_name_in_words("balanced_accuracy"), metric_name_in_words("auc"), metric_name_in_words("f1")
    ('balanced accuracy', 'AUC', 'F1')
    """
    return name.upper() if name in _ABBREVIATIONS else name.replace("_", " ")


def rows_in_words(split: str) -> str:
    """The rows of a part of the data, inside a sentence.

    >>> rows_in_words("test"), rows_in_words("out of fold"), rows_in_words("unseen domains")
    ('the rows of test', 'the rows that each fold held out', 'all rows, each by the model that never saw its domain')
    """
    several = {
        "out of fold": "the rows that each fold held out",
        "unseen domains": "all rows, each by the model that never saw its domain",
    }
    return several.get(split, f"the rows of {split}")


def guessing(metric: str, num_choices: int) -> float | None:
    """What guessing gives of a metric, whatever the class shares; None where that depends on them.

    Args:
        metric: Its name.
        num_choices: Classes to choose from; 2 where each label is there or not.

    >>> guessing("auc", 7), guessing("balanced_accuracy", 4), guessing("accuracy", 4)
    (0.5, 0.25, None)
    """
    return {"auc": 0.5, "balanced_accuracy": 1 / num_choices}.get(metric)


def doubt_in_words(row: MetricRecord, num_choices: int) -> str | None:
    """Said where the interval of a balanced accuracy or an AUC contains what guessing gives, or is below it; None elsewhere.

    >>> row = MetricRecord(metric="auc", title="AUC", value=0.54, low=0.44, high=0.64, num_images=20)
    >>> doubt_in_words(row, 2)
    'Guessing gives 0.50, and the interval contains it: nothing shows yet that the model is better.'
    """
    guess = guessing(row.metric, num_choices)
    if guess is None or row.low is None or row.low > guess:
        return None
    if row.high is not None and row.high < guess:
        return f"Guessing gives {guess:.2f}, and all of the interval is below it: the model is worse than guessing."
    return f"Guessing gives {guess:.2f}, and the interval contains it: nothing shows yet that the model is better."


def too_few_in_words(row: MetricRecord, num_choices: int) -> str | None:
    """``doubt_in_words`` after the number of images, where more of them could tell."""
    doubt, guess = doubt_in_words(row, num_choices), guessing(row.metric, num_choices)
    if doubt is None or (guess is not None and row.high is not None and row.high < guess):
        return doubt
    return f"{counted(row.num_images, 'image')} are too few to tell. {doubt}"


def metric_in_words(row: MetricRecord, *, guess: float | None = None, which: str = "") -> str:
    """Value, interval and what it was measured on, as part of a sentence.

    Args:
        row: The metric.
        guess: What guessing gives, to stand beside it.
        which: Description of these images, to stand after their number.

    >>> row = MetricRecord(metric="auc", title="AUC", value=0.9, low=0.8, high=0.95, num_images=20, num_groups=9)
    >>> metric_in_words(row, guess=0.5).replace("\N{NO-BREAK SPACE}", " ")
    'AUC 0.90 (95 % interval 0.80 to 0.95; guessing gives 0.50) on 20 images of 9 groups'
    """
    as_text = metric_format([row])
    groups = "" if row.num_groups is None else f" of {counted(row.num_groups, 'group')}"
    where = f"on {counted(row.num_images, 'image')}{groups}{which and f' {which}'}"
    if row.value is None:
        return f"{row.title} has no value {where}: {(row.reason or 'not stated why').rstrip('.')}"
    ends = "no interval"
    if row.low is not None and row.high is not None:
        ends = f"95\N{NO-BREAK SPACE}% interval {as_text(row.low)} to {as_text(row.high)}"
    chance = "" if guess is None else f"; guessing gives {guess:.2f}"
    return f"{row.title} {as_text(row.value)} ({ends}{chance}) {where}"


NOT_SEEN = "Predict images that had no part in it"
"""What to do where images of a fine-tuning are predicted."""


def looks_in_words(looks: LooksRecord | None, metric: str) -> str | None:
    """What a choice among several results costs; None for a first look, or where looks were not counted.

    >>> print(looks_in_words(LooksRecord(number=2, by_command={"tune": 2}, optimism=None), "auc")[:59])
    This is the 2nd look at these test images (2 × tune): the b
    """
    if looks is None or looks.number < 2:
        return None
    commands = ", ".join(f"{number} × {command}" for command, number in looks.by_command.items())
    by = "" if looks.optimism is None else f" by about {looks.optimism:.2g} in {metric_name_in_words(metric)}"
    results = looks.number if looks.num_results is None else looks.num_results
    cost = f": the best of {results} equally good results is too high{by}" if results > 1 else ""
    return (
        f"This is the {ordinal(looks.number)} look at these test images ({commands}){cost}. Confirm a choice on images that "
        "were not looked at."
    )


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 22nd.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '13th', '21st', '102nd', '111th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
