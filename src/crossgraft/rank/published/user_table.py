"""A user's own results and scores, as one CSV file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from crossgraft.errors import DataError
from crossgraft.rank.published.benchmark import Benchmark, ScoreColumn
from crossgraft.words.csv_cells import csv_rows

REQUIRED = ("target", "model", "result")
OPTIONAL = ("group", "family")


def read_benchmark_table(path: Path | str) -> Benchmark:
    """Read a table with one row per target and model.

    Columns ``target``, ``model`` and ``result`` (what fine-tuning gave, larger = better; empty = not fine-tuned); if
    wanted ``group`` (targets of one group are held out together) and ``family`` (of the model); every other column is a
    score, larger = better, empty = none.

    Raises:
        DataError: The file is missing or no UTF-8, a column is missing, a cell is no finite number, a target and model
            appear twice, a target has two groups or a model two families, or a target has fewer than two results.
    """
    path = Path(path)
    header, rows = _read(path)
    targets, models = (list(dict.fromkeys(row[key] for row in rows)) for key in ("target", "model"))
    shape = (len(targets), len(models))
    names = ["result", *(name for name in header if name not in (*REQUIRED, *OPTIONAL))]
    values = {name: np.full(shape, np.nan) for name in names}
    seen: set[tuple[str, str]] = set()
    for line, row in enumerate(rows, start=2):
        place = (row["target"], row["model"])
        if place in seen:
            raise DataError(f"{path.name}, row {line}: {place[1]} on {place[0]} appears twice.")
        seen.add(place)
        for name in names:
            values[name][targets.index(place[0]), models.index(place[1])] = _number(row[name], name, path, line)
    groups = _one_each(rows, "target", "group", path) if "group" in header else {}
    return Benchmark(
        name=path.stem,
        title=f"{path.stem}: {len(models)} models, {len(targets)} targets",
        result="result (as given)",
        models=models,
        targets=targets,
        groups=[groups.get(target) or target for target in targets],
        results=values["result"],
        columns={name: ScoreColumn(name, values[name]) for name in names if name != "result"},
        families=_one_each(rows, "model", "family", path) if "family" in header else {},
    )


def _read(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    if not path.is_file():
        raise DataError(f"No such table of results: {path}")
    try:
        header, rows = csv_rows(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8 text; save it as CSV in UTF-8.") from error
    missing = [name for name in REQUIRED if name not in header]
    if missing:
        found = ", ".join(header) or "no columns"
        raise DataError(f"{path.name} needs the columns {', '.join(REQUIRED)}; missing: {missing[0]}. It has: {found}.")
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


def _one_each(rows: Sequence[Mapping[str, str]], key: str, column: str, path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line, row in enumerate(rows, start=2):
        if found.setdefault(row[key], row[column]) != row[column]:
            raise DataError(f"{path.name}, row {line}: {row[key]} has the {column} {row[column]} and another before.")
    return found
