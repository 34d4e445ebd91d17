"""The page of recipes/benchmark_select.py, from the numbers that are kept beside it."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, get_type_hints

import numpy as np
from ground_truth_table import trained_tables

Row = TypeVar("Row", bound=NamedTuple)
TABLES = ("medmnistplus_auc", "medmnistplus_accuracy", "shift", *trained_tables())
BUDGETS = (0.03, 0.10, 0.25, 0.50)
ALL_TRAINED = "all trained, the best run"
TRULY_BEST = "the truly best"
NO_BUDGET = (ALL_TRAINED, TRULY_BEST)
"""Rows that hold whatever the budget."""
METHODS = (
    "select",
    "select, without this table",
    "prior alone",
    "largest ImageNet model",
    "halving without prior",
    "linear probe",
    "random",
    ALL_TRAINED,
    TRULY_BEST,
)
HEAD = (
    "# What a selection within a budget hands over, on published tables\n\n"
    "Written by `recipes/benchmark_select.py`, which keeps the numbers beside this page as a CSV file. What the command does: "
    "[which model, in one hour?](../how-to/which-model-in-one-hour.md)\n\n"
    "No constant was fitted to these tables, but how kinds of trials are weighed, how far the scheduler looks ahead, how much "
    "alike sets of trials are taken as equal and that relatives err together were changed after replays of MedMNIST+ and SHiFT "
    "had been seen. Take the numbers of these two as somewhat too good."
)


GOALS = (
    ("medmnistplus_auc", 0.25, 0.25),
    ("medmnistplus_accuracy", 0.25, 0.25),
    ("shift", 0.03, 0.5),
    ("trained_auc", 0.25, 1.0),
    ("trained_accuracy", 0.25, 1.0),
)
"""Table, budget, and the mean regret in points that `select` should not exceed."""


class Regret(NamedTuple):
    """One method on one target within one budget; a mean over drawn runs and orders, in points."""

    table: str
    target: str
    group: str
    method: str
    budget: float
    regret_points: float
    cost_share: float


class Reliability(NamedTuple):
    """Chances of one bin: their number, their mean, and how many of the models were better."""

    table: str
    models: str
    least: float
    below: float
    number: int
    mean_chance: float
    share_better: float


def write_rows(file: Path, kind: type[Row], rows: Iterable[Row]) -> None:
    """Keep what was measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(kind._fields)
        writer.writerows([f"{each:.4f}" if isinstance(each, float) else each for each in row] for row in rows)


def read_rows(file: Path, kind: type[Row]) -> list[Row]:
    """What was measured before."""
    types = get_type_hints(kind).values()
    with file.open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return [kind(*(of(each) for of, each in zip(types, row, strict=True))) for row in rows]


def select_section(rows: Sequence[Regret], reliabilities: Sequence[Reliability]) -> str:
    """The section as Markdown: mean and worst regret of every method within every budget, a table per published table."""
    parts = [
        "## Selecting within a budget",
        "Mean (worst) regret in points over the targets, of the model that is handed over; the mean is one of targets, "
        "each a mean over drawn runs and random orders. The budget is a share of the cost of tuning all models: of pixels "
        "on MedMNIST+, of published seconds on SHiFT. `select` is the scheduler of `crossgraft select` with the table in "
        "place of trainings; it knows the other targets of the table, as a user's own results, or, *without this table*, "
        "other publications only. Evidence on MedMNIST+ is one run drawn around the published mean with the published "
        "standard deviation, the truth the mean; on SHiFT val (200 images) is the evidence and test the truth. No method "
        "sees the truth. A dash: the budget is below one training. `halving` and `random` begin with models in random "
        "order. *All trained, the best run* is what one run of every model gives, at four times the cost and more: no method "
        "that sees one run can be expected to do better on evidence alone. *The truly best*: results are of few seeds and, "
        "on the tables trained here, of 76 to 400 test images, so that the network with the best expected result is often "
        "not first among them; its regret, given their errors, is what no selection can be expected to go below, though "
        "it may by chance. A goal below either is out of reach of any budget.",
    ]
    if trained_tables().keys() & {row.table for row in rows}:
        parts.append("On the tables that were trained here val is the evidence, at the CPU seconds that it took.")
    for table in dict.fromkeys(row.table for row in rows):
        some = [row for row in rows if row.table == table]
        number = len({row.target for row in some})
        head = [
            f"| {table}, {number} targets | " + " | ".join(f"{100 * budget:.0f} %" for budget in (*BUDGETS, 1.0)) + " |"
        ]
        head.append("|---" * (2 + len(BUDGETS)) + "|")
        lines = [
            f"| {method} | " + " | ".join(_cell(some, method, budget) for budget in (*BUDGETS, 1.0)) + " |"
            for method in METHODS
            if any(row.method == method for row in some)
        ]
        parts += ["\n".join([*head, *lines]), _in_words(some)]
    parts.append(_goals(rows))
    if missing := [table for table in TABLES if table not in {row.table for row in rows}]:
        parts.append(f"Not measured yet: {', '.join(missing)}.")
    return "\n\n".join([*parts, _reliability_section(reliabilities)]) + "\n"


def _goals(rows: Sequence[Regret]) -> str:
    """Each goal beside what was reached, and what one run of every model gives."""
    said = [
        "### Goals",
        "| table | budget | goal | select | without this table | all trained, the best run | the truly best | |",
        "|---" * 8 + "|",
    ]
    for table, budget, goal in GOALS:
        means = {
            method: float(np.mean(found))
            for method in METHODS
            if (found := [each.regret_points for each in rows if (each.table, each.method) == (table, method)
                          and each.budget == (1.0 if method in NO_BUDGET else budget)])
        }  # fmt: skip
        if {"select", "select, without this table", ALL_TRAINED} <= means.keys():
            reached, everything, least = means["select"], means[ALL_TRAINED], means.get(TRULY_BEST)
            why = "out of reach of one run" if everything > goal else "the prior of the other targets misleads on some"
            why = "below the error of the results" if least is not None and least > goal else why
            cells = [goal, reached, means["select, without this table"], everything]
            numbers = " | ".join([*(f"{each:.2f}" for each in cells), "—" if least is None else f"{least:.2f}"])
            said.append(
                f"| {table} | {100 * budget:.0f} % | {numbers} | {'met' if reached <= goal else f'not met: {why}'} |"
            )
    return "\n".join([said[0], "", *said[1:]])


def _reliability_section(rows: Sequence[Reliability]) -> str:
    """Whether the chance that another model is better comes true as often as it says."""
    head = "| table | models | chance said | models | mean chance | were better |\n|---|---|---|---|---|---|"
    lines = [
        f"| {row.table} | {row.models} | {100 * row.least:.0f}–{100 * row.below:.0f} % | {row.number} | "
        f"{100 * row.mean_chance:.1f} % | {100 * row.share_better:.1f} % |"
        for row in rows
    ]
    text = (
        "Of every model that `select` did not hand over it says the chance that it is better. Here is how often it was, over all "
        "targets, budgets and runs, with and without the table. *Tried* models had at least one training, however cheap. The "
        "models of one selection are judged together, so that the numbers are not independent: on SHiFT one target on which "
        "the prior misleads moves dozens of models. That relatives err together and that a target may be unlike the others is "
        "part of the belief, but before enough was tried to say so, small chances of models that were not tried are said too low "
        "there all the same. How sure beliefs are, target by target: [calibration](calibration.md)."
    )
    return "\n\n".join(["## Chance that another model was better", text, "\n".join([head, *lines])])


def _in_words(rows: Sequence[Regret]) -> str:
    """Who has the least mean regret within each budget, and whether that is `select`."""
    said = []
    for budget in BUDGETS:
        means = {
            method: float(np.mean(found))
            for method in METHODS
            if (found := [row.regret_points for row in rows if row.method == method and row.budget == budget])
        }
        if means:
            least = min(means, key=lambda method: means[method])
            said.append(f"{100 * budget:.0f} %: {least} ({means[least]:.2f}; select {means['select']:.2f})")
    return f"Least mean regret: {'; '.join(said)}."


def _cell(rows: Sequence[Regret], method: str, budget: float) -> str:
    found = [row.regret_points for row in rows if row.method == method and row.budget == budget]
    return f"{np.mean(found):.2f} ({max(found):.2f})" if found else "—"
