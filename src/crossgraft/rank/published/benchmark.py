"""One benchmark: results of fine-tuning for models × targets, and the scores that were to foresee them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.rank.aggregate import Evidence, aggregate, borda, combine_evidence, fit_parameters, robust_rank_aggregation
from crossgraft.rank.published.means import mean_over_targets
from crossgraft.rank.published.record import MeanRecord, MethodRecord
from crossgraft.rank.static_prior import static_prior
from crossgraft.words.formatting import NumberFormat

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


PRIOR = "static_prior"
FITTED = "aggregate"


class Contender(NamedTuple):
    """One way to order the models of every target; larger = better, NaN = no value."""

    name: str
    title: str
    role: Literal["score", "part of a score", "control", "consensus", "prior and score", "fitted"]
    values: Results


def contenders(benchmark: Benchmark) -> Iterator[Contender]:
    """Single scores, the static prior, the consensus of scores, the prior with each score, and the fitted one."""
    for name, column in benchmark.columns.items():
        yield Contender(name, column.title, "part of a score" if column.part else "score", column.values)
    prior = held_out_prior(benchmark)
    yield Contender(PRIOR, "Static prior", "control", prior)
    usable = {name: column for name, column in benchmark.columns.items() if not column.unusable}
    whole = [column.values for column in usable.values() if not column.part]
    if len(whole) > 1:
        yield Contender("borda", "Borda count", "consensus", _consensus(benchmark, whole, borda))
        rra = _consensus(benchmark, whole, robust_rank_aggregation)
        yield Contender("robust_rank_aggregation", "Robust rank aggregation", "consensus", rra)
    for name, column in usable.items():
        both = _consensus(benchmark, [prior, column.values], borda)
        yield Contender(f"prior+{name}", f"Prior + {column.title}", "prior and score", both)
    yield Contender(FITTED, "Aggregation (prior × evidence)", "fitted", fitted(benchmark))


def held_out_prior(benchmark: Benchmark) -> Results:
    """The static prior of each target from the targets of all other groups."""
    values = np.full_like(benchmark.results, np.nan)
    for held_out, others in benchmark.folds():
        for target in held_out:
            models = benchmark.known(target)
            values[target, models] = static_prior(benchmark.results[np.ix_(others, models)]).values
    return values


def prior_residual(benchmark: Benchmark, prior: Results) -> Results:
    """How much better a model did than the prior says, in relative ranks."""
    ranks = stats.rankdata(-benchmark.results, axis=1, nan_policy="omit")
    return -(ranks - 0.5) / np.isfinite(benchmark.results).sum(axis=1, keepdims=True) - prior


def _consensus(benchmark: Benchmark, values: list[Results], combine: Callable[[Results], np.ndarray]) -> Results:
    """One order a target; scores that lack a model there are left out."""
    found = np.full_like(benchmark.results, np.nan)
    for target in range(len(benchmark.targets)):
        models = benchmark.known(target)
        rows = np.array([matrix[target, models] for matrix in values])
        complete = rows[np.isfinite(rows).all(axis=1)]
        if len(complete):
            found[target, models] = combine(complete)
    return found


def fitted(benchmark: Benchmark) -> Results:
    """``aggregate`` on each target, with parameters fitted on the targets of all other groups.

    The evidence is the mean of all usable whole scores: none is chosen after looking at results.
    """
    z = evidence_matrix(benchmark)
    values = np.full_like(benchmark.results, np.nan)
    for held_out, others in benchmark.folds():
        groups = [str(benchmark.groups[target]) for target in others.tolist()]
        parameters = fit_parameters(benchmark.results[others], z[others], groups)
        for target in held_out:
            models = benchmark.known(target)
            posterior = aggregate(
                benchmark.results[np.ix_(others, models)],
                usable_evidence(benchmark, int(target), models),
                parameters=parameters,
                groups=groups,
            )
            values[target, models] = posterior.mean
    return values


def usable_evidence(benchmark: Benchmark, target: int, models: np.ndarray) -> list[Evidence]:
    """Whole scores that this library reproduces, on one target; published tables have no errors."""
    whole = [column for column in benchmark.columns.values() if not column.part and not column.unusable]
    return [Evidence(column.values[target, models]) for column in whole]


def evidence_matrix(benchmark: Benchmark) -> Results:
    """Combined evidence on every target; NaN where a model has none."""
    values = np.full_like(benchmark.results, np.nan)
    for target in range(len(benchmark.targets)):
        models = benchmark.known(target)
        signal, error = combine_evidence(usable_evidence(benchmark, target, models), len(models))
        values[target, models] = np.where(np.isfinite(error), signal, np.nan)
    return values


_TWO = NumberFormat(decimals=2)


def conclusion(methods: Sequence[MethodRecord], groups: Sequence[str]) -> str:
    """Whether anything beats a ranking that ignores the target, and whether the fitted one earns its place."""
    return " ".join(sentence for sentence in (_against_prior(methods), _fitted(methods, groups)) if sentence)


def _fitted(methods: Sequence[MethodRecord], groups: Sequence[str]) -> str:
    """The rule: the aggregation becomes the default only if its gain over the best single score is clear."""
    fitted = next((method for method in methods if method.role == "fitted"), None)
    scores = [method for method in methods if method.role == "score" and method.mean.value is not None]
    if fitted is None or not scores:
        return ""
    best = max(scores, key=lambda method: _value(method.mean))
    difference = np.array(fitted.weighted_kendall, dtype=np.float64) - np.array(best.weighted_kendall, dtype=np.float64)
    gain = mean_over_targets(difference, groups)
    verdict = "earns" if gain.low is not None and gain.low > 0 else "does not earn"
    return (
        f"Against the best single score, {best.title}, the aggregation gains {estimate(gain)}: it {verdict} its place as default."
    )


def _against_prior(methods: Sequence[MethodRecord]) -> str:
    prior = next(method for method in methods if method.role == "control")
    rivals = [method for method in methods if method.gain is not None and method.gain.value is not None]
    if not rivals:
        return (
            f"The static prior alone, the mean rank on the other targets, reaches a mean weighted Kendall of "
            f"{estimate(prior.mean)}; no score is there to compare it with."
        )
    best = max(rivals, key=lambda method: _value(method.mean))
    clear = [method for method in rivals if method.gain and (method.gain.low or 0) > 0]
    if not clear:
        return (
            f"Nothing beats the static prior, the mean rank on the other targets (mean weighted Kendall "
            f"{estimate(prior.mean)}): the highest mean of the others is that of {best.title}, {_TWO(best.mean.value)}, "
            f"and the difference of {estimate(best.gain)} may be chance."
        )
    winner = max(clear, key=lambda method: _value(method.gain))
    return (
        f"{winner.title} beats the static prior, the mean rank on the other targets (mean weighted Kendall "
        f"{estimate(prior.mean)}), by {estimate(winner.gain)}; it is the best of {len(rivals)} that were tried, so expect "
        "less on new targets."
    )


def estimate(mean: MeanRecord | None) -> str:
    """A value with its interval.

    >>> estimate(MeanRecord(value=0.5, low=0.31, high=0.69, num_targets=9))
    '0.50 [0.31, 0.69]'
    """
    if mean is None or mean.value is None:
        return _TWO(None)
    return _TWO(mean.value) + ("" if mean.low is None else f" {_TWO.interval(mean.low, mean.high)}")


def _value(mean: MeanRecord | None) -> float:
    return float("-inf") if mean is None or mean.value is None else mean.value
