"""The page of recipes/benchmark_calibration.py, from the numbers that are kept beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from benchmark_page import clustered_interval

OTHER_TARGETS, OTHER_PUBLICATIONS = "other targets", "other publications"
NOTHING, WHOLE = "nothing", "whole trainings of others"
HEAD = """# Do beliefs about networks come true as often as they say?

<!-- Written by `python recipes/benchmark_calibration.py`; the numbers of every target are in calibration.csv. -->

On each target of each published table, the belief of `crossgraft.rank.belief` about its networks is compared with their
results. The target and its relatives are unknown in *every* table, and all parameters are fitted without them. *Other
targets*: the belief knows the other targets of the same table, as a user's own results. *Other publications*: it does not
know the table at all.

**What is seen.** Nothing; or fine-tuning of all networks on images of 28, 64 or 128 pixels (on the tables trained here: at half
the resolution, or for a fifth of the epochs); or whole trainings of a fifth of
the networks, at least three, those that lead beforehand: then the others are judged. On SHiFT a whole training shows its 200
validation images. With every number goes the error that a selection would know: of few seeds, or of few validation images.

**What is compared.** Only differences between networks mean something, so results and beliefs are taken less their mean over
the networks that are judged. Before whole trainings the unit is the normal score of the rank, after them the metric, in
standard deviations over the networks of the target; failed trainings are cut as the belief cuts them. The metric is not
linear in the normal score: leading networks are often close together and bad ones far behind, so a scale that was learned of
the leaders can be too small for the others. Read pairs there: chances do not depend on the scale.

- *z²*: mean square of the difference in standard deviations of the belief. 1 = as sure as it should be; larger = too sure.
  Means are ruled by few targets, so the median over the targets stands beside it.
- *log score*: mean logarithm of the density at what came out; larger = better. It rewards being right and being as sure as
  one should.
- *within 50, 90, 95 %*: how often the result lies in the central interval of that chance.
- *pairs*: mean logarithm of the chance that was given to the better of two networks; larger = better, −0.693 = a coin.
- *small chances*: of all pairs, chances below 5 % that one is better; their mean, and how often it was.

Each number is a mean over targets (small chances: over pairs), with a 95 % interval by resampling groups of related targets,
where one is given. Tables with two metrics have each target twice, in one group.

**What is still wrong.** Where the other targets are known, small chances come true too often before anything is seen of the
target: one target that turns the order round makes many of them true together. After whole trainings of the leaders the
intervals of the others are far too narrow in the unit of the metric, mostly on SHiFT, probably because one scale stands for a
mapping that is not linear. After 28 pixels beliefs are hardly better than before. Results of the tables that were trained here
are of 76 to 400 test images: their error is in what came out, and no part of the belief. Which parts of the belief are kept was
decided on the published tables."""


class Calibration(NamedTuple):
    """What was believed of the networks of one target, against what came out; see the page."""

    table: str
    target: str
    group: str
    knows: str
    seen: str
    number: int
    z_squared: float
    log_score: float
    within_50: float
    within_90: float
    within_95: float
    pair_log_score: float
    small_number: int
    small_chance: float
    small_came_true: float


def write_page(rows: Sequence[Calibration]) -> str:
    """The page as Markdown: all tables together, then each."""
    parts = [HEAD, "## All tables together", _table(rows)]
    for table in dict.fromkeys(row.table for row in rows):
        parts += [f"## {table}", _table([row for row in rows if row.table == table])]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Calibration]) -> str:
    head = (
        "| knows | seen | targets | z² (median) | log score | within 50, 90, 95 % | pairs | small chances: said, came true |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    states = dict.fromkeys((row.knows, row.seen) for row in sorted(rows, key=lambda row: row.knows, reverse=True))
    lines = [_line([row for row in rows if (row.knows, row.seen) == state]) for state in states]
    return "\n".join([head, *lines])


def _line(rows: Sequence[Calibration]) -> str:
    z, log_score, pairs = (_column(rows, name) for name in ("z_squared", "log_score", "pair_log_score"))
    low, high = clustered_interval(log_score, [row.group for row in rows])
    within = ", ".join(f"{100 * _column(rows, f'within_{share}').mean():.0f}" for share in (50, 90, 95))
    return (
        f"| {rows[0].knows} | {rows[0].seen} | {len(rows)} | {z.mean():.2f} ({np.median(z):.2f}) | "
        f"{log_score.mean():.3f} [{low:.3f}, {high:.3f}] | {within} | {pairs.mean():.3f} | {_small(rows)} |"
    ).replace("-", "−")


def _small(rows: Sequence[Calibration]) -> str:
    number = sum(row.small_number for row in rows)
    if not number:
        return "none"
    said, true = (sum(row.small_number * share for row, share in pairs) / number for pairs in _shares(rows))
    return f"{100 * said:.1f} %, {100 * true:.1f} % of {number}"


def _shares(rows: Sequence[Calibration]) -> tuple[list[tuple[Calibration, float]], list[tuple[Calibration, float]]]:
    return [(row, row.small_chance) for row in rows], [(row, row.small_came_true) for row in rows]


def _column(rows: Sequence[Calibration], name: str) -> np.ndarray:
    return np.array([getattr(row, name) for row in rows], dtype=np.float64)
