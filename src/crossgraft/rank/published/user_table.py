"""A user's own results and scores, as one CSV file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from crossgraft.errors import DataError
from crossgraft.rank.published.benchmark import Benchmark, ScoreColumn
from crossgraft.words.formatting import counted
from crossgraft.words.visible import csv_rows

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
