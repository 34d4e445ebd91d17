"""Means, intervals and Markdown tables of a page, from pandas frames with one row a training.

Frames come from ``read``: columns ``set``, ``model``, ``variant``, ``seed``, and one for each number. A *series of trainings* is
a column indexed by (set, model, seed), as ``of_variant`` gives it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from crossgraft.seeding import generator

PLACE = ["set", "model", "seed"]

Lines = Iterator[list[object]]
"""Cells of a table, line by line."""


def read_csv(file: Path) -> pd.DataFrame:
    """A committed table: empty cells and ``nan`` are missing."""
    return pd.read_csv(file, keep_default_na=False, na_values=["", "nan"])


def read(folder: Path, names: Iterable[str], ending: str = "") -> pd.DataFrame:
    """The tables ``NAME{ending}.csv`` of several sets as one, in this order, with the column ``set``."""
    return pd.concat([read_csv(folder / f"{name}{ending}.csv").assign(set=name) for name in names], ignore_index=True)


def of_variant(rows: pd.DataFrame, variant: str, metric: str, place: Sequence[str] = PLACE) -> pd.Series:
    """A number of every training of a variant that has it, by set, model and seed, or by what else makes a place."""
    if metric not in rows:
        return pd.Series(dtype=float)
    return rows[rows["variant"] == variant].set_index(list(place))[metric].dropna()


def gaps(rows: pd.DataFrame, first: str, second: str, metric: str, place: Sequence[str] = PLACE) -> pd.Series:
    """Of every training of both variants, in the order of the first."""
    return minus(of_variant(rows, first, metric, place), of_variant(rows, second, metric, place))


def minus(first: pd.Series, second: pd.Series) -> pd.Series:
    """Where both are, in the order of the first."""
    return (first - second.reindex(first.index)).dropna()


def by_pair(gaps: pd.Series) -> list[float]:
    """Mean over the seeds of each pair of set and model."""
    return means(gaps, ["set", "model"])


def by_seed(values: pd.Series) -> list[float]:
    """Mean over sets and models of each seed."""
    return means(values, ["seed"])


def means(values: pd.Series, levels: Sequence[str]) -> list[float]:
    """Mean of each group; exact sums, so that the order of rows changes no digit."""
    return [mean(group) for _, group in values.groupby(level=list(levels))] if len(values) else []


def mean(values: Iterable[float]) -> float:
    return statistics.fmean(float(value) for value in values)


class Difference(NamedTuple):
    """Mean of paired differences with its 95 % interval (Student's t), and how many of them are above 0."""

    mean: float
    low: float
    high: float
    ahead: int
    pairs: int

    @property
    def excludes_0(self) -> bool:
        """Whether the interval does."""
        return self.low > 0 or self.high < 0

    @property
    def ahead_of_pairs(self) -> str:
        """Such as ``4 of 6``."""
        return f"{self.ahead} of {self.pairs}"


def difference(gaps: Iterable[float]) -> Difference | None:
    """None of fewer than two."""
    gaps = [float(gap) for gap in gaps]
    if len(gaps) < 2:
        return None
    middle, half = statistics.fmean(gaps), half_width(gaps)
    return Difference(middle, middle - half, middle + half, sum(gap > 0 for gap in gaps), len(gaps))


def half_width(values: Sequence[float]) -> float:
    """Of the 95 % interval of a mean (Student's t), for two values or more."""
    return float(stats.t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


def verdict(found: Difference) -> str:
    """Does a published ordering hold?"""
    ahead = f"ahead in {found.ahead} of {found.pairs} pairs"
    if found.low > 0:
        return f"holds, {ahead}, and the interval of the mean difference excludes 0"
    if found.high < 0:
        return f"the opposite shows, {ahead}, and the interval of the mean difference excludes 0"
    return f"not decided, {ahead}; the interval of the mean difference contains 0"


def signed(found: Difference | None, digits: int = 3) -> str:
    """A difference and its interval; – of none."""
    return "–" if found is None else "{:+.{d}f} [{:+.{d}f}, {:+.{d}f}]".format(*found[:3], d=digits)


def marked(found: Difference | None, digits: int = 2) -> str:
    """A difference, bold where its interval excludes 0."""
    return f"**{signed(found, digits)}**" if found is not None and found.excludes_0 else signed(found, digits)


def interval(low: float, high: float, shown: str = ".3f") -> str:
    """In brackets."""
    return f"[{low:{shown}}, {high:{shown}}]"


def mean_and_interval(values: Iterable[float], digits: int = 3) -> str:
    """Mean with its 95 % interval (Student's t); the mean alone of one value, – of none."""
    values = [float(value) for value in values]
    if len(values) < 2:
        return "–" if not values else f"{values[0]:.{digits}f}"
    middle, half = statistics.fmean(values), half_width(values)
    return f"{middle:.{digits}f} {interval(middle - half, middle + half, f'.{digits}f')}"


def share_and_interval(values: Iterable[float]) -> str:
    """The same of shares, where an interval must end within [0, 1]: that of their arcsine square roots, turned back."""
    values = [float(value) for value in values]
    if len(values) < 2:
        return mean_and_interval(values)
    angles = [math.asin(math.sqrt(min(max(value, 0.0), 1.0))) for value in values]
    middle, half = statistics.fmean(angles), half_width(angles)
    low, high = (math.sin(min(max(middle + way, 0.0), math.pi / 2)) ** 2 for way in (-half, half))
    return f"{statistics.fmean(values):.3f} [{low:.3f}, {high:.3f}]"


def median(values: Iterable[float], shown: str) -> str:
    """In a format such as ``.0f``; – of none."""
    values = [float(value) for value in values]
    return f"{statistics.median(values):{shown}}" if values else "–"


def number(value: float | None, shown: str) -> str:
    """In a format such as ``.2f``; – where there is none."""
    return "–" if value is None or math.isnan(value) else f"{value:{shown}}"


def typeset(text: str) -> str:
    """With minus signs in place of hyphens."""
    return text.replace("-", "\N{MINUS SIGN}")


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], numbers_from: int | None = None) -> str:
    """A table; columns from ``numbers_from`` on are aligned to the right."""
    if numbers_from is None:
        return f"{row_of(head)}\n{'|---' * len(head)}|\n{body(rows)}".rstrip("\n")
    rule = ["---" if column < numbers_from else "---:" for column in range(len(head))]
    return body([head, rule, *rows])


def body(rows: Iterable[Iterable[object]]) -> str:
    """Lines of a table whose head stands in the page."""
    return "\n".join(map(row_of, rows))


def body_of(rows: pd.DataFrame, *cells: str) -> str:
    """The same with a line for each row; cells are formats of its columns, such as ``{mean:.3f}``."""
    return "\n".join(row_of(cells).format(**row) for row in rows.to_dict("records"))


def row_of(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def sections(parts: Mapping[str, str], level: str = "###") -> str:
    """Title → text, each under its heading."""
    return "\n\n".join(f"{level} {title}\n\n{text}" for title, text in parts.items())


def clustered_interval(values: Sequence[float], groups: Sequence[str], *, num_resamples: int = 10_000) -> tuple[float, float]:
    """95 % percentile interval of the mean over cells: groups of targets are resampled, each with all its cells."""
    found = pd.Series(values, dtype=float).groupby(pd.Series(list(groups)), sort=False)
    sums, counts = found.sum().to_numpy(), found.size().to_numpy()
    drawn = generator(0, "targets").integers(len(sums), size=(num_resamples, len(sums)))
    low, high = np.percentile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [2.5, 97.5])
    return float(low), float(high)
