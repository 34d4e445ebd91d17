"""Agreement of the scores with the results of fine-tuning."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from crossgraft.errors import DataError, UsageError, nearest_names
from crossgraft.models.record import ModelRecord
from crossgraft.rank.record import AgreementRecord, GroundTruthRecord, ScoreCell
from crossgraft.seeding import generator
from crossgraft.statistics import permutation_p_value, weighted_kendall, weighted_kendall_interval
from crossgraft.words.visible import csv_rows

NUM_PAIRS = 200
"""Pairs of drawn runs; the error of the mean is then below 0.01 for ten networks."""


def noise_ceiling(results: Float64[np.ndarray, " num_models"], standard_deviations: Float64[np.ndarray, " num_models"]) -> float:
    """Mean weighted Kendall between two runs of the same networks that differ in their seeds alone.

    Runs are drawn from normal distributions around the results. The results are means over seeds that are noisy themselves, and a
    little further apart than the true ones, so the ceiling is rather too high than too low. It is no bound for the agreement with
    a *mean* over many seeds.

    Args:
        results: Mean over seeds; NaN = not known, left out.
        standard_deviations: Between seeds, in the same unit.

    Returns:
        In [−1, 1]; NaN with fewer than two networks, or where nothing differs.

    Raises:
        DataError: A standard deviation is negative.
    """
    known = np.isfinite(results) & np.isfinite(standard_deviations)
    mean, deviation = results[known], standard_deviations[known]
    if (deviation < 0).any():
        raise DataError("A standard deviation between seeds is negative.")
    if len(mean) < 2 or np.ptp(mean) == 0:
        return float("nan")
    draws = generator(0, "noise ceiling").normal(size=(NUM_PAIRS, 2, len(mean)))
    return float(np.mean([weighted_kendall(mean + deviation * a, mean + deviation * b) for a, b in draws]))


MIN_FAMILY_MEMBERS = 4
MIN_MODELS = 3


def read_ground_truth(
    source: Path | str | Mapping[str, float], models: Sequence[str], *, column: str | None = None
) -> GroundTruthRecord:
    """Read fine-tuned results: a mapping from model to value, or a CSV with a column ``model`` and one of numbers.

    Args:
        source: Mapping, or path of a CSV file.
        models: Names in the ranking; results of other models are listed as unmatched.
        column: Name of the column of results; needed when there are several.

    Raises:
        DataError: The file is missing or badly shaped, a value is no finite number, a model appears twice, or no model
            of the ranking has a result.
        UsageError: The column does not exist, or several could be meant.
    """
    if isinstance(source, Mapping):
        values, name = {model: float(value) for model, value in source.items()}, column or "given values"
    else:
        values, name = _read_csv(Path(source), column)
    for model, value in values.items():
        if not math.isfinite(value):
            raise DataError(f"The fine-tuned result of {model} is {value}; it must be a finite number.")
    matched = {model: values[model] for model in models if model in values}
    unmatched = [model for model in values if model not in matched]
    if not matched:
        near = nearest_names(unmatched[0], models) if unmatched else []
        advice = f" Did you mean {near[0]} instead of {unmatched[0]}?" if near else ""
        raise DataError(f"None of the fine-tuned results belongs to a model of the ranking.{advice}")
    return GroundTruthRecord(column=name, values=matched, unmatched=unmatched)


def _read_csv(path: Path, column: str | None) -> tuple[dict[str, float], str]:
    if not path.is_file():
        raise DataError(f"No such file of fine-tuned results: {path}")
    try:
        header, rows = csv_rows(path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV in UTF-8.") from error
    if "model" not in header:
        raise DataError(f"{path} needs a column `model`; it has: {', '.join(header) or 'no columns'}.")
    column = column or _only_numeric_column(path, header, rows)
    if column not in header:
        raise UsageError(f"{path} has no column {column}; it has: {', '.join(header)}.")
    values: dict[str, float] = {}
    for number, row in enumerate(rows, start=2):
        if row["model"] in values:
            raise DataError(f"{path}, row {number}: the model {row['model']} appears twice.")
        try:
            values[row["model"]] = float(row[column])
        except (TypeError, ValueError) as error:
            raise DataError(f"{path}, row {number}: {column} is {row[column]!r}, not a number.") from error
    return values, column


def _only_numeric_column(path: Path, header: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    def is_number(text: str | None) -> bool:
        try:
            float(text or "")
        except ValueError:
            return False
        return True

    numeric = [name for name in header if name != "model" and rows and all(is_number(row[name]) for row in rows)]
    if len(numeric) != 1:
        columns = ", ".join(numeric) or "none"
        raise UsageError(
            f"{path} must have one column of numbers beside `model`; found: {columns}. Name it with --ground-truth-column."
        )
    return numeric[0]


def agreement(
    score: str, cells: Sequence[ScoreCell], models: Sequence[ModelRecord], truth: GroundTruthRecord, *, seed: int
) -> list[AgreementRecord]:
    """Weighted Kendall of one score with fine-tuned results: over all candidates and within each family of ≥ 4."""
    value = {cell.model: cell.value for cell in cells if cell.value is not None}
    known = [m for m in models if m.role == "candidate" and m.name in value and m.name in truth.values]
    families = sorted({m.family for m in known if sum(o.family == m.family for o in known) >= MIN_FAMILY_MEMBERS})
    selections = [(None, known)]
    if len(families) > 1 or (families and any(m.family != families[0] for m in known)):
        selections += [(family, [m for m in known if m.family == family]) for family in families]
    return [
        _agree(score, family, [value[m.name] for m in members], [truth.values[m.name] for m in members], seed)
        for family, members in selections
    ]


def _agree(score: str, family: str | None, values: Sequence[float], truth: Sequence[float], seed: int) -> AgreementRecord:
    number = len(values)
    empty = AgreementRecord(
        score=score, family=family, num_models=number, weighted_kendall=None, p_value=None, low=None, high=None
    )
    if number < MIN_MODELS:
        return empty.model_copy(update={"reason": f"needs at least {MIN_MODELS} models with both numbers"})
    x, y = np.asarray(values, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    tau = weighted_kendall(x, y)
    if math.isnan(tau):
        return empty.model_copy(update={"reason": "the score or the results are the same for every model"})
    p_value = permutation_p_value(weighted_kendall, x, y, seed=seed)
    result = empty.model_copy(update={"weighted_kendall": tau, "p_value": p_value})
    agreed = weighted_kendall_interval(x, y)
    if agreed.low is None:
        return result.model_copy(update={"reason": f"no interval: {agreed.reason}"})
    return result.model_copy(update={"low": agreed.low, "high": agreed.high})
