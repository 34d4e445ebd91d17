"""One benchmark: results of fine-tuning for models × targets, and the scores that were to foresee them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.errors import DataError

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
