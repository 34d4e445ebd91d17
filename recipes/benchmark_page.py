"""The page of recipes/benchmark.py: means over targets, with intervals over groups of related ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from crossgraft.rank.published.means import mean_over_targets
from crossgraft.rank.published.record import MeanRecord

CONTROL = "Static prior"
ORDER, COLD = "Order of select", "Cold start"
IMAGENET, WITH_TOP1 = "ImageNet top-1", "Cold start, networks with ImageNet top-1"
ELSEWHERE, WITH_ELSEWHERE = "Mean rank elsewhere", "Cold start, networks known elsewhere"
KNOWN_WITH_TOP1 = "Order of select, networks with ImageNet top-1"
PAIRS = (
    (WITH_TOP1, IMAGENET, "As a cold start, beside ImageNet top-1"),
    (WITH_ELSEWHERE, ELSEWHERE, "As a cold start, beside the mean rank in other publications"),
    (KNOWN_WITH_TOP1, IMAGENET, "With the other targets known, beside ImageNet top-1"),
)
FIRST = (
    *(CONTROL, "Aggregation", ORDER, COLD, IMAGENET, WITH_TOP1, KNOWN_WITH_TOP1),
    *(ELSEWHERE, WITH_ELSEWHERE, "Validation alone"),
)
IN_SHORT = ("Aggregation", ORDER, COLD, IMAGENET, "Fine-tuning at 64 pixels", "Validation alone", "Linear probe")
CEILING = "Noise ceiling"
HEAD = """\
# What foresees fine-tuning, on every published table

<!-- Written by `python recipes/benchmark.py`; the numbers of every target are in benchmark.csv. -->

{targets} targets of {tables} tables in {groups} groups of related targets, replayed with the tables that ship in the package
and those [trained here](ground_truth.md):

```
python recipes/benchmark.py --out docs/results/benchmark.md
```

For each target, it and its relatives are unknown in *every* table. Weighted Kendall (τ_w) is scipy's; regret is the best
result minus that of the first choice, in points (hundredths of accuracy or AUC). What a *budget* buys is on [a page of its
own](selection.md).

**Retracted.** Until November 2026 this page said that a *belief*, one joint distribution over all published tables, is better
than the static prior, by 0.019 [0.003, 0.037]. Three tables that nobody here had seen (35 targets, 16 groups, relatives left
out) say otherwise: the belief is *below* the static prior, by −0.020 [−0.037, −0.007], with 7 targets up and 23 down;
aggregation is not above it (−0.005 [−0.016, +0.004]); as a cold start the belief, 0.36 and 0.00, is below plain ImageNet
top-1, 0.53 and 0.24 (without SHiFT among its publications the second would be 0.43); and belief and validation are +0.008
[−0.040, +0.044] above validation alone. There are two causes. One publication's results for the same weights were trusted
fully, though publications disagree. And rules were chosen after replays of the tables of this page had been seen, so that the
page praised what had been fitted to it. So the belief was taken out, and so was [what was said of its
calibration](calibration.md). The order that `select` uses instead was [written down before it was replayed](../log.md), with
one exception: that own results count alone, not beside the cold start, was decided by that replay.

**Methods.** *Static prior*: mean relative rank on the other targets of the table. *Aggregation*: the same and scores, as in
`crossgraft rank --published`. *Order of select*: what `crossgraft select` expects with the other targets known, which is the
static prior wherever there is a result. *Cold start*: the order of `select` without results of one's own and without the
whole publication of the table (the thesis has two tables, and both are left out then). *ImageNet top-1*: of the networks of
which timm or torchvision publish it. *Mean rank elsewhere*: over the targets of other publications, of the networks that
these have. These two have a value for some networks only, and stand beside a static prior of more; further down they are
compared on the same networks. Scores of thesis-architectures are turned round as published. *Validation alone* is the metric
of the finished trainings on validation images: 200 on SHiFT, at most 160 on the tables trained here.

A method counts on a target where it has values for at least three networks that are not all the same; so there is no cold
start on the tables trained here, whose networks nobody has published. Intervals are 95 % intervals over
groups of related targets, each with all its targets in all tables ([how often they hold](coverage.md)); there is none where all
values are the same, and none of a regret with fewer than fifteen groups.
Differences are paired by target. Models, seeds and images are not drawn anew, so the intervals say nothing of other zoos."""


class Measured(Protocol):
    """One method on one target of one table."""

    table: str
    target: str
    group: str
    method: str
    weighted_kendall: float
    regret: float


def write_page(lines: Sequence[Measured]) -> str:
    """All of it as Markdown."""
    tables = list(dict.fromkeys(line.table for line in lines))
    methods = list(dict.fromkeys(line.method for line in lines))
    sizes = {"targets": len({(line.table, line.target) for line in lines}), "tables": len(tables)}
    parts = [HEAD.format(**sizes, groups=len({line.group for line in lines})), _in_short(lines)]
    parts += [_beside(*pair, lines, tables) for pair in PAIRS]
    parts += ["## All tables together", "Tables with two metrics have each target twice, in one group."]
    parts.append(_table(lines, [*(each for each in FIRST if each in methods), *(m for m in methods if m not in FIRST)]))
    for table in tables:
        own = [line for line in lines if line.table == table]
        taus = {line.method: [x.weighted_kendall for x in own if x.method == line.method] for line in own}
        parts += [f"## {table}", _table(own, sorted(taus, key=lambda method: -np.mean(taus[method])))]
        if CEILING not in taus:
            parts.append("Noise ceiling: not known, because no standard deviations between seeds are printed.")
    return "\n\n".join(parts) + "\n"


def _in_short(lines: Sequence[Measured]) -> str:
    """What the numbers support, one sentence each."""
    said = [f"- {method}: {_verdict(method, CONTROL, lines)}" for method in IN_SHORT]
    more = [f"- {title}, on the same networks: {_verdict(one, other, lines)}" for one, other, title in PAIRS]
    heads = ("## In short", "Beside the static prior, on the targets that have both:", "The order of `select` otherwise:")
    return "\n\n".join([*heads[:2], "\n".join(said), heads[2], "\n".join(more)])


def _verdict(method: str, control: str, lines: Sequence[Measured]) -> str:
    both = _paired(method, control, lines)
    if not both:
        return "no table has it."
    found = mean_over_targets(np.array([one - other for one, other, _ in both]), [group for *_, group in both])
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return f"not separable, {_shown(found, signed=True)} on {len(both)} targets."
    return f"{'better' if found.low > 0 else 'worse'}, {_shown(found, signed=True)} on {len(both)} targets."


def _paired(method: str, control: str, lines: Sequence[Measured]) -> list[tuple[float, float, str]]:
    """τ_w of both and the group, on every target that has both."""
    others = {(line.table, line.target): line.weighted_kendall for line in lines if line.method == control}
    own = [line for line in lines if line.method == method and (line.table, line.target) in others]
    return [(line.weighted_kendall, others[line.table, line.target], line.group) for line in own]


def _beside(method: str, control: str, title: str, lines: Sequence[Measured], tables: Sequence[str]) -> str:
    """The order of ``select`` beside one part of it, table by table, on the networks that both have."""
    rows = [f"| table | targets | τ_w of the order | {control} | difference |", "|---|---|---|---|---|"]
    for table in (*tables, "all"):
        both = _paired(method, control, [line for line in lines if table in (line.table, "all")])
        if both:
            means = [f"{each:.3f}".replace("-", "−") for each in np.mean([each[:2] for each in both], axis=0)]
            gains = mean_over_targets(np.array([one - two for one, two, _ in both]), [group for *_, group in both])
            rows.append(f"| {table} | {len(both)} | {means[0]} | {means[1]} | {_shown(gains, signed=True)} |")
    return "\n\n".join([f"## {title}", "\n".join(rows)])


def _table(lines: Sequence[Measured], methods: Sequence[str]) -> str:
    rows = ["| method | targets | groups | τ_w | minus static prior | regret |", "|---|---|---|---|---|---|"]
    return "\n".join([*rows, *(_row(method, lines) for method in methods)])


def _row(method: str, lines: Sequence[Measured]) -> str:
    own = [line for line in lines if line.method == method]
    groups = [line.group for line in own]
    both = _paired(method, CONTROL, lines)
    gains = mean_over_targets(np.array([one - other for one, other, _ in both]), [group for *_, group in both])
    tau = mean_over_targets(np.array([line.weighted_kendall for line in own]), groups, limits=(-1, 1))
    regret = mean_over_targets(100 * np.array([line.regret for line in own]), groups, limits=(0, np.inf))
    cells = [method, str(len(own)), str(len(set(groups))), _shown(tau)]
    cells += ["control" if method == CONTROL else _shown(gains, signed=True), _shown(regret)]
    return f"| {' | '.join(cells)} |"


def _shown(mean: MeanRecord, *, signed: bool = False) -> str:
    """A mean with its interval, where there is one."""
    if mean.value is None:
        return "—"
    values = [mean.value] if mean.low is None or mean.high is None else [mean.value, mean.low, mean.high]
    first, *ends = [f"{value:+.3f}" if signed else f"{value:.3f}" for value in values]
    return f"{first} [{', '.join(ends)}]".removesuffix(" []").replace("-", "−")
