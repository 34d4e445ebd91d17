"""One benchmark: results of fine-tuning for models × targets, and the scores that were to foresee them.

A user's own results and scores become one from a CSV file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.errors import DataError
from crossgraft.words.formatting import counted
from crossgraft.words.visible import csv_rows

Results = Float64[np.ndarray, "num_targets num_models"]
"""Larger = better; NaN where a model was not fine-tuned on a target."""


class ScoreColumn(NamedTuple):
    """One score on every target.

    Attributes:
        title: Title for people.
        values: Larger = better as published; NaN where there is none.
        part: Whether it is only a part of another score.
        usable: Whether it may enter an aggregation, or a text that says why not.
    """

    title: str
    values: Results
    part: bool = False
    unusable: str | None = None


@dataclass(frozen=True)
class Benchmark:
    """Results and scores of models on targets.

    Args:
        name: Name in commands and files.
        title: Title for people.
        result: Measure after fine-tuning, with its unit.
        models: Names.
        targets: Names.
        groups: One per target; targets of one group are so alike that one tells about the other.
        results: Shape (targets, models).
        columns: Name → score.
        standard_deviations: Standard deviations between seeds, shape (targets, models), where a publication prints them.
        validation: The same measure on validation images, where it is known, shape (targets, models).
        seconds: Seconds of each fine-tuning, where they are known, shape (targets, models).
        printed: Method → weighted Kendall on each target as a paper prints it, where the scores are not published.
    """

    name: str
    title: str
    result: str
    models: Sequence[str]
    targets: Sequence[str]
    groups: Sequence[str]
    results: Results
    columns: Mapping[str, ScoreColumn] = field(default_factory=dict[str, ScoreColumn])
    printed: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    standard_deviations: Results | None = None
    validation: Results | None = None
    seconds: Results | None = None

    def __post_init__(self) -> None:
        shape = (len(self.targets), len(self.models))
        if len(self.groups) != shape[0]:
            raise DataError(f"{self.name}: {shape[0]} targets, but {len(self.groups)} groups.")
        known = {"results": self.results, "val": self.validation, "seconds": self.seconds}
        matrices = {what: values for what, values in known.items() if values is not None}
        for what, values in [*matrices.items(), *((name, column.values) for name, column in self.columns.items())]:
            if values.shape != shape:
                raise DataError(f"{self.name}: {what} has shape {values.shape}, expected {shape} (targets × models).")
            if np.isinf(values).any():
                raise DataError(f"{self.name}: {what} holds an infinite value. Leave the cell empty instead.")
        few = [target for target, row in zip(self.targets, self.results, strict=True) if np.isfinite(row).sum() < 2]
        if few:
            raise DataError(f"{self.name}: fewer than two results on {few[0]}. Nothing can be ordered there.")

    def known(self, target: int | np.integer) -> np.ndarray:
        """Indices of the models with a result on a target."""
        return np.flatnonzero(np.isfinite(self.results[target]))

    def folds(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Targets of one group, and all others; each group once."""
        names = np.asarray(self.groups)
        for group in dict.fromkeys(self.groups):
            yield np.flatnonzero(names == group), np.flatnonzero(names != group)


RESULT = ("value", "result")
REQUIRED = ("target", "model")
OPTIONAL = ("group", "family", "val", "seconds")


def read_benchmark_table(path: Path | str) -> Benchmark:
    """Read a table with one row per target and model.

    Columns ``target``, ``model`` and ``value`` (or ``result``: what fine-tuning gave, larger = better; empty = not
    fine-tuned); if wanted ``val`` (the same on validation images), ``seconds`` (of the fine-tuning), ``group`` (targets of
    one group are held out together) and ``family`` (of the model; it decides nothing); every other column is a score,
    larger = better, empty = none. Columns such as ``low:size=0.5`` and ``low:epochs=0.2`` are cheap trainings at a share of
    the resolution, or of the epochs.

    Raises:
        DataError: The file is missing or no UTF-8, a column is missing, a cell is no finite number, seconds are not above
            0, a target and model appear twice, a target has two groups, or fewer than two
            results.
    """
    path = Path(path)
    header, rows = _read(path)
    targets, models = (list(dict.fromkeys(row[key] for row in rows)) for key in ("target", "model"))
    shape = (len(targets), len(models))
    result = next(name for name in RESULT if name in header)
    names = [result, *(name for name in header if name not in (*REQUIRED, result, "group", "family"))]
    values = {name: np.full(shape, np.nan) for name in names}
    of_target, of_model = ({name: i for i, name in enumerate(each)} for each in (targets, models))
    seen: set[tuple[str, str]] = set()
    for line, row in enumerate(rows, start=2):
        place = (row["target"], row["model"])
        if place in seen:
            raise DataError(f"{path.name}, row {line}: {place[1]} on {place[0]} appears twice.")
        seen.add(place)
        for name in names:
            values[name][of_target[place[0]], of_model[place[1]]] = _number(row[name], name, path, line)
        if "seconds" in header and row["seconds"].strip() and float(row["seconds"]) <= 0:
            raise DataError(f"{path.name}, row {line}: seconds is {row['seconds']}. A training takes longer than nothing.")
    groups = _group_of_each(rows, path) if "group" in header else {}
    return Benchmark(
        name=path.stem,
        title=f"{path.stem}: {counted(len(models), 'model')}, {counted(len(targets), 'target')}",
        result="result (as given)",
        models=models,
        targets=targets,
        groups=[groups.get(target) or target for target in targets],
        results=values[result],
        columns={name: ScoreColumn(name, values[name]) for name in names if name not in (result, *OPTIONAL)},
        validation=values.get("val"),
        seconds=values.get("seconds"),
    )


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    if not path.is_file():
        raise DataError(f"No such table of results: {path}")
    try:
        header, rows = csv_rows(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8 text; save it as CSV in UTF-8.") from error
    missing = [name for name in REQUIRED if name not in header]
    missing += [] if set(RESULT) & set(header) else [RESULT[0]]
    if missing:
        present = ", ".join(header) or "no columns"
        wanted = ", ".join((*REQUIRED, RESULT[0]))
        raise DataError(f"{path.name} needs the columns {wanted}; missing: {missing[0]}. It has: {present}.")
    twice = next((name for place, name in enumerate(header) if name in header[:place]), None)
    if twice is not None:
        raise DataError(f"{path.name} has two columns called {twice}.")
    if not rows:
        raise DataError(f"{path.name} has no rows below its header.")
    return header, rows


def _number(text: str, column: str, path: Path, line: int) -> float:
    if not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError as error:
        raise DataError(f"{path.name}, row {line}: {column} is {text!r}, not a number.") from error
    if not math.isfinite(value):
        raise DataError(f"{path.name}, row {line}: {column} is {text}. Leave the cell empty where there is no number.")
    return value


def _group_of_each(rows: Sequence[Mapping[str, str]], path: Path) -> dict[str, str]:
    group_of_target: dict[str, str] = {}
    for line, row in enumerate(rows, start=2):
        target, group = row["target"], row["group"]
        if group_of_target.setdefault(target, group) != group:
            raise DataError(f"{path.name}, row {line}: {target} has the group {group} and another before.")
    return group_of_target
