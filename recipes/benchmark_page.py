"""The page of recipes/benchmark.py: means over targets, clustered intervals, Friedman's test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from crossgraft.seeding import generator
from crossgraft.statistics import friedman

NUM_RESAMPLES = 10_000
CONTROL = "Static prior"
POOLED = (CONTROL, "Aggregation", "Belief without this table", "Belief")
FORESEEN = ("ImageNet top-1", "Belief + scores", "Belief + 64 pixels", "Belief + validation")


HOW = (
    "For each target, it and its relatives are unknown in *every* table, and all parameters are fitted without them. "
    "Weighted Kendall (τ_w) is scipy's; regret is the best result minus that of the first choice, in points "
    "(hundredths of accuracy or AUC)."
)
RESAMPLED = (
    "Intervals are 95 % percentile intervals of 10 000 resamples. What is resampled are groups of related targets, "
    "each with all its targets in all tables (the three planes of Organ, the pairs of dSprites, CLEVR and SmallNORB, "
    "and a data set that several tables have, are one group each). Models, seeds and images are not resampled, so the"
    " intervals say nothing of other zoos."
)
METHODS = (
    "**Belief** is `crossgraft.rank.belief`: known results of these weights and of their relatives, ImageNet top-1 "
    "and size. *Without this table* it is a cold start: how the networks did in other publications only. "
    "**Aggregation** and **static prior** know the other targets of the same table, as in `crossgraft rank "
    "--published`. *ImageNet top-1* orders the networks that timm or torchvision have a result of, and those alone, "
    "so it is compared with the prior of more networks. Scores of thesis-architectures are turned round as published;"
    " *belief + scores* takes them as they are, and counts those alone on which two publications agree. *Validation "
    "alone* is the metric of the finished trainings on validation images: 200 on SHiFT, at most 160 on the tables trained here."
)

SELECTING = (
    "**What a budget buys:** mean and worst regret of `crossgraft select` at 3, 10, 25 and 50 % of the cost of tuning all, "
    "beside random, the prior alone, the largest ImageNet model, halving without a prior, and the linear probe, is on "
    "[a page of its own](selection.md)."
)
NOT_BLIND = (
    "**Not blind.** Nothing is fitted to a target that is replayed, but four rules of the belief were chosen after "
    "replays had been seen: a score counts once two publications agree, columns of scores that cannot be read are no "
    "evidence, the slopes on top-1 and size share one variance, and a ResNet-18 of another source is no relative. That "
    "slopes of cheap trainings are learned with errors in variables, that tables differ in how much targets vary, and that "
    "`select` looks ahead over several rungs, was introduced after a replay of MedMNIST+ had been seen; that relatives err "
    "together on one target, and that a target may be unlike the others, after replays of all tables. So what is said of "
    "the belief is somewhat optimistic; tables that nobody has looked at are its test. Whether it is as sure as it should be: "
    "[calibration](calibration.md)."
)


class Measured(Protocol):
    """One method on one target of one table."""

    table: str
    target: str
    group: str
    method: str
    weighted_kendall: float
    regret: float


def write_page(lines: Sequence[Measured]) -> str:
    tables = list(dict.fromkeys(line.table for line in lines))
    parts = [_head(lines), _in_short(lines), _pooled(lines), _friedman(lines)]
    parts += [_table(table, [line for line in lines if line.table == table]) for table in tables]
    return "\n\n".join(parts) + "\n"


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


def _head(lines: Sequence[Measured]) -> str:
    cells = {(line.table, line.target) for line in lines}
    groups = {line.group for line in lines}
    return "\n\n".join(
        [
            "# What foresees fine-tuning, on every published table",
            "<!-- Written by `python recipes/benchmark.py`; the numbers of every target are in benchmark.csv. -->",
            f"{len(cells)} targets of {len({line.table for line in lines})} tables in {len(groups)} groups of related targets, "
            f"replayed with the tables that ship in the package and those [trained here](ground_truth.md). {HOW}",
            SELECTING,
            RESAMPLED,
            METHODS,
            NOT_BLIND,
        ]
    )


def _in_short(lines: Sequence[Measured]) -> str:
    """What the numbers support, one sentence each."""
    said = [f"- {method}: {_against_prior(method, lines)}" for method in (*POOLED[1:], *FORESEEN, "Linear probe")]
    return "## In short\n\nAgainst the static prior, on the targets that have both:\n\n" + "\n".join(said)


def _against_prior(method: str, lines: Sequence[Measured]) -> str:
    own = [line for line in lines if line.method == method]
    if not own:
        return "no table has it."
    control = {(line.table, line.target): line.weighted_kendall for line in lines if line.method == CONTROL}
    gains = np.array([line.weighted_kendall - control[line.table, line.target] for line in own])
    low, high = clustered_interval(gains, [line.group for line in own])
    verdict = "better" if low > 0 else "worse" if high < 0 else "not separable"
    return f"{verdict}, {_with_interval(gains, [line.group for line in own], signed=True)} on {len(own)} targets."


def _pooled(lines: Sequence[Measured]) -> str:
    rows = ["| method | targets | groups | τ_w | minus static prior | regret |", "|---|---|---|---|---|---|"]
    for method in dict.fromkeys([*POOLED, *FORESEEN, *(line.method for line in lines)]):
        rows += [_row(method, lines)] if any(line.method == method for line in lines) else []
    return "## All tables together\n\nTables with two metrics have each target twice, in one group.\n\n" + "\n".join(
        rows
    )


def _table(name: str, lines: Sequence[Measured]) -> str:
    """Methods, best first."""

    def mean(method: str) -> float:
        return float(np.nanmean([line.weighted_kendall for line in lines if line.method == method]))

    methods = sorted(dict.fromkeys(line.method for line in lines), key=mean, reverse=True)
    rows = ["| method | targets | groups | τ_w | minus static prior | regret |", "|---|---|---|---|---|---|"]
    note = (
        ""
        if "Noise ceiling" in methods
        else "\n\nNoise ceiling: not known, because no standard deviations between seeds are printed."
    )
    return f"## {name}\n\n" + "\n".join([*rows, *(_row(method, lines) for method in methods)]) + note


def _row(method: str, lines: Sequence[Measured]) -> str:
    own = [line for line in lines if line.method == method and np.isfinite(line.weighted_kendall)]
    control = {(line.table, line.target): line.weighted_kendall for line in lines if line.method == CONTROL}
    groups = [line.group for line in own]
    taus = np.array([line.weighted_kendall for line in own])
    gains = taus - np.array([control[line.table, line.target] for line in own])
    regrets = 100 * np.array([line.regret for line in own])
    gain = "control" if method == CONTROL else _with_interval(gains, groups, signed=True)
    regret = "" if not np.isfinite(regrets).all() else _with_interval(regrets, groups)
    cells = [method, str(len(own)), str(len(set(groups))), _with_interval(taus, groups), gain, regret]
    return f"| {' | '.join(cells)} |"


def _with_interval(values: np.ndarray, groups: Sequence[str], *, signed: bool = False) -> str:
    shown = "{:+.3f}" if signed else "{:.3f}"
    low, high = clustered_interval(values, groups)
    return f"{shown} [{shown}, {shown}]".format(values.mean(), low, high).replace("-", "−")


def _friedman(lines: Sequence[Measured]) -> str:
    """Over groups, each with its mean, so that related targets count once."""
    groups = list(dict.fromkeys(line.group for line in lines))
    matrix = np.array(
        [
            [
                np.mean([line.weighted_kendall for line in lines if (line.group, line.method) == (group, method)])
                for method in POOLED
            ]
            for group in groups
        ]
    )
    found = friedman(matrix)
    ranks = ", ".join(f"{method} {rank:.2f}" for method, rank in zip(POOLED, found.mean_ranks, strict=True))
    return (
        "## Friedman's test\n\n"
        f"Of the methods that every target has, over {len(groups)} groups (mean τ_w of each): χ² = {found.statistic:.2f}, "
        f"p = {found.p_value:.2g}. Mean ranks: {ranks}. Nemenyi's critical difference at 0.05 is {found.critical_difference:.3f}."
    )
