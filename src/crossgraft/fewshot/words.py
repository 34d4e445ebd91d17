"""What episodes show, in words."""

from __future__ import annotations

from crossgraft.fewshot.record import FewshotRecord, HeadRow
from crossgraft.words.formatting import counted


def accuracy_in_words(row: HeadRow) -> str:
    """Mean and interval, if there is one.

    >>> found = {"accuracy": 0.71234, "half_width": 0.0061, "difference": None}
    >>> accuracy_in_words(HeadRow(head="ncc", title="NCC", rank=1, plain_rank=1, seconds=0.1, **found))
    '0.712 ± 0.006'
    """
    return f"{row.accuracy:.3f}{_interval(row.half_width)}"


def is_separable(row: HeadRow) -> bool:
    """Whether the interval of the difference to the baseline leaves out 0."""
    if row.difference is None or row.difference_half_width is None:
        return False
    return abs(row.difference) > row.difference_half_width


def answer_in_words(record: FewshotRecord) -> str:
    """The best head, and how it stands to the baseline."""
    best = record.heads[0]
    sure = "" if best.half_width is None else " (95\N{NO-BREAK SPACE}% interval)"
    right = f"{best.head} is right on {accuracy_in_words(best)}{sure} of images that it did not learn from"
    sentence = f"{right}, mean of {episodes_in_words(record)}"
    if best.seeds_half_width is not None:
        sentence += f" (over seeds ± {best.seeds_half_width:.3f})"
    if len(record.heads) == 1:
        return f"{sentence}."
    baseline = record.head(record.baseline)
    if best.difference is None:
        others = [row for row in record.heads[1:] if not is_separable(row)]
        near = ", ".join(row.head for row in others)
        return f"{sentence}: no head is above the baseline." + (f" Not separable from it: {near}." if near else "")
    difference = f"{best.difference:+.3f}{_interval(best.difference_half_width)}"
    verdict = "above" if is_separable(best) else "not separable from"
    return f"{sentence}, {verdict} {baseline.head} ({accuracy_in_words(baseline)}; paired difference {difference})."


def episodes_in_words(record: FewshotRecord) -> str:
    """600 episodes, or so many of each seed."""
    episodes = counted(record.num_episodes, "episode")
    return episodes if record.num_seeds == 1 else f"{counted(record.num_seeds, 'seed')} of {episodes} each"


def _interval(half_width: float | None) -> str:
    """Where episodes are too few, or all the same, there is none."""
    return "" if half_width is None else f" ± {half_width:.3f}"
