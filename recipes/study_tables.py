"""Tables of the pages of studies, written of rows of trainings: means, intervals, orderings between variants."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from studies import Difference, difference_of, half_width, verdict
from study_rows import Table

from crossgraft.seeding import generator

Key = tuple[str, str, int]
"""Set, network, seed."""
Tables = Mapping[str, Table]

COLUMNS = {
    "accuracy": "Accuracy",
    "balanced_accuracy": "Balanced accuracy",
    "auc": "AUC",
    "cka": "CKA",
    "cka_debiased": "CKA, debiased",
}


class Ordering(NamedTuple):
    """One that is published.

    Attributes:
        first: Variant that is ahead in the paper.
        second: The other.
        metric: In which number.
        published: What the paper has.
    """

    first: str
    second: str
    metric: str
    published: str


def values(tables: Tables, variant: str, metric: str) -> dict[Key, float]:
    """Of every training of a variant that has the number."""
    return {
        (name, row.model, row.seed): value
        for name, table in tables.items()
        for row in table.trainings
        if row.variant == variant and (value := getattr(row, metric)) is not None
    }


def everywhere(tables: Tables, variant: str, metric: str) -> dict[Key, float]:
    """The same, of the seeds that were trained on every set and network; others mean another mix."""
    found = values(tables, variant, metric)
    places = places_of(tables)
    done = {seed for seed in {key[2] for key in found} if places == {key[:2] for key in found if key[2] == seed}}
    return {key: value for key, value in found.items() if key[2] in done}


def places_of(tables: Tables) -> set[tuple[str, str]]:
    """Every pair of set and network with a training."""
    return {(name, row.model) for name, table in tables.items() for row in table.trainings}


def over_pairs(gaps: Mapping[Key, float]) -> list[float]:
    """Mean over the seeds of each pair of set and network."""
    pairs = sorted({key[:2] for key in gaps})
    return [statistics.fmean(gap for key, gap in gaps.items() if key[:2] == pair) for pair in pairs]


def gaps_of(tables: Tables, ordering: Ordering) -> dict[Key, float]:
    """First minus second, where both are there."""
    first, second = (values(tables, name, ordering.metric) for name in ordering[:2])
    return {key: first[key] - second[key] for key in first if key in second}


def over_seeds(found: Mapping[Key, float]) -> str:
    """Mean over sets and networks of each seed; of those, mean and interval."""
    seeds = sorted({key[2] for key in found})
    return mean_and_interval([statistics.fmean(v for key, v in found.items() if key[2] == seed) for seed in seeds])


def mean_and_interval(found: Sequence[float]) -> str:
    if not found:
        return "–"
    mean = statistics.fmean(found)
    if len(found) < 2:
        return f"{mean:.3f}"
    half = half_width(found)
    return f"{mean:.3f} [{mean - half:.3f}, {mean + half:.3f}]"


def share_and_interval(found: Sequence[float]) -> str:
    """The same of shares, where an interval must end within [0, 1]: that of their arcsine square roots, turned back."""
    if len(found) < 2:
        return mean_and_interval(found)
    angles = [math.asin(math.sqrt(min(max(value, 0.0), 1.0))) for value in found]
    middle, half = statistics.fmean(angles), half_width(angles)
    low, high = (math.sin(min(max(middle + way, 0.0), math.pi / 2)) ** 2 for way in (-half, half))
    return f"{statistics.fmean(found):.3f} [{low:.3f}, {high:.3f}]"


def orderings_table(tables: Tables, orderings: Sequence[Ordering], *, by_seed: bool = False) -> str:
    of = "seeds" if by_seed else "pairs"
    lines = [f"| First | Second | Metric | Mean difference | Ahead, {of} | Ahead, trainings | Published |", "|---" * 7 + "|"]
    for ordering in orderings:
        gaps = gaps_of(tables, ordering)
        found = paired_difference(gaps, by_seed=by_seed)
        ahead = "–" if found is None else f"{found.ahead} of {found.pairs}"
        single = f"{sum(gap > 0 for gap in gaps.values())} of {len(gaps)}"
        cells = [*ordering[:2], COLUMNS[ordering.metric], in_numbers(found), ahead, single, ordering.published]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def paired_difference(gaps: Mapping[Key, float], *, by_seed: bool = False) -> Difference | None:
    return difference_of(list(gaps.values()) if by_seed else over_pairs(gaps))


def in_numbers(found: Difference | None) -> str:
    return "–" if found is None else f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def verdicts(tables: Tables, orderings: Sequence[Ordering]) -> str:
    """One sentence an ordering that was looked at in every pair: it shows here, its opposite shows, or neither."""
    return "\n".join(
        f"- **{o.first} over {o.second} in {COLUMNS[o.metric]}** ({o.published.partition(':')[0]}): {verdict(found)}."
        for o in orderings
        if (found := paired_difference(gaps_of(tables, o))) is not None and found.pairs == len(places_of(tables))
    )


def time_ratio(tables: Tables, variant: str, base: str) -> str:
    """Median CPU time as a multiple of that of ``base``."""
    beside, mine = values(tables, base, "cpu_seconds"), values(tables, variant, "cpu_seconds")
    ratios = [mine[key] / beside[key] for key in mine if key in beside]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def or_dash(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def set_table(
    table: Table, title: str, variants: Sequence[str], *, columns: Mapping[str, str] = COLUMNS, with_seconds: bool = True
) -> str:
    if not table.trainings:
        return f"### {title}\n\nNot trained yet."
    titles = ["Network", "Variant", *columns.values(), *(["CPU seconds"] if with_seconds else [])]
    lines = [f"### {title}", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    of_set: Callable[[str, str, str], list[float]] = lambda model, variant, metric: [  # noqa: E731 (used here only)
        value
        for row in table.trainings
        if (row.model, row.variant) == (model, variant) and (value := getattr(row, metric)) is not None
    ]
    for model in dict.fromkeys(row.model for row in table.trainings):
        for variant in variants:
            found = [of_set(model, variant, metric) for metric in columns]
            if any(found):
                seconds = of_set(model, variant, "cpu_seconds")
                cost = f"{statistics.median(seconds):.0f}" if seconds else "–"  # none of a GPU
                cells = [model, variant, *map(mean_and_interval, found), *([cost] if with_seconds else [])]
                lines.append(f"| {' | '.join(cells)} |")
    failed = [row for row in table.trainings if row.state != "done"]
    notes = [f"{row.model}, {row.variant}, seed {row.seed}: {row.state}" for row in failed]
    return "\n".join([*lines, *(["", *notes] if notes else [])])


NUM_RESAMPLES = 10_000


def clustered_interval(values: np.ndarray, groups: Sequence[str], *, seed: int = 0) -> tuple[float, float]:
    """95 % percentile interval of the mean over cells: groups of targets are resampled, each with all its cells."""
    names = np.asarray(groups)
    distinct = list(dict.fromkeys(groups))
    sums = np.array([values[names == name].sum() for name in distinct])
    counts = np.array([(names == name).sum() for name in distinct])
    drawn = generator(seed, "targets").integers(len(distinct), size=(NUM_RESAMPLES, len(distinct)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)
