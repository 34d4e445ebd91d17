"""How well each contender predicts the results of a benchmark, and what that supports, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.rank.published.benchmark import Benchmark, Results
from crossgraft.rank.published.contenders import PRIOR, Contender, contenders, prior_residual
from crossgraft.rank.published.record import FriedmanRecord, MeanRecord, MethodRecord, ScenarioRecord
from crossgraft.statistics import (
    LEAST_REGRETS,
    friedman,
    kendall,
    mean_interval,
    relative_top_k_accuracy,
    spearman,
    top_1_regret,
    weighted_kendall,
    weighted_kendall_itm,
)
from crossgraft.words.formatting import NumberFormat

PerTarget = Float64[np.ndarray, " num_targets"]
Measure = Callable[[np.ndarray, np.ndarray], float]
MIN_GROUPS = 3

OTHER_MEASURES: Mapping[str, Measure] = {
    "spearman": spearman,
    "kendall": kendall,
    "weighted_kendall_itm": weighted_kendall_itm,
    "relative_top_1_accuracy": lambda score, truth: relative_top_k_accuracy(score, truth, k=1),
    "relative_top_3_accuracy": lambda score, truth: relative_top_k_accuracy(score, truth, k=3),
}


def evaluate_benchmark(benchmark: Benchmark) -> ScenarioRecord:
    """Judge every contender on every target: weighted Kendall, regret, gain over the prior, Friedman's test."""
    entries = list(contenders(benchmark))
    prior = next(entry.values for entry in entries if entry.name == PRIOR)
    methods = [*printed_methods(benchmark, prior), *(judge(benchmark, entry, prior) for entry in entries)]
    return ScenarioRecord(
        name=benchmark.name,
        title=benchmark.title,
        result=benchmark.result,
        models=list(benchmark.models),
        targets=list(benchmark.targets),
        target_groups=list(benchmark.groups),
        methods=methods,
        friedman=compare(methods),
        ceiling=ceiling(benchmark),
        notes=[
            f"{column.title} is not aggregated: {column.unusable}." for column in benchmark.columns.values() if column.unusable
        ],
        conclusion=conclusion(methods, benchmark.groups),
    )


def ceiling(benchmark: Benchmark) -> MeanRecord | None:
    """How well one seed ranks like another, mean over targets; None where no standard deviations are printed."""
    if benchmark.standard_deviations is None:
        return None
    pairs = zip(benchmark.results, benchmark.standard_deviations, strict=True)
    values = np.array([noise_ceiling(results, deviations) for results, deviations in pairs])
    return mean_over_targets(values, benchmark.groups, limits=(-1.0, 1.0))


def judge(benchmark: Benchmark, entry: Contender, prior: Results) -> MethodRecord:
    """One contender on every target, and its means with intervals."""
    taus = agreement_by_target(entry.values, benchmark.results)
    regrets = _by_target(top_1_regret, entry.values, benchmark.results)
    gains = taus - agreement_by_target(prior, benchmark.results)
    residuals = agreement_by_target(entry.values, prior_residual(benchmark, prior))
    has_shares = bool(np.nanmin(benchmark.results) > 0)
    others = {
        name: float(np.nanmean(values))
        for name, measure in OTHER_MEASURES.items()
        if (has_shares or not name.startswith("relative"))
        and np.isfinite(values := _by_target(measure, entry.values, benchmark.results)).any()
    }
    is_prior, is_single = entry.name == PRIOR, entry.role in ("score", "part of a score")
    return MethodRecord(
        name=entry.name,
        title=entry.title,
        role=entry.role,
        weighted_kendall=[None if np.isnan(tau) else float(tau) for tau in taus],
        mean=mean_over_targets(taus, benchmark.groups, limits=(-1.0, 1.0)),
        regret=mean_over_targets(regrets, benchmark.groups, limits=(0.0, np.inf), least=LEAST_REGRETS),
        gain=None if is_prior else mean_over_targets(gains, benchmark.groups, limits=(-2.0, 2.0)),
        residual=mean_over_targets(residuals, benchmark.groups, limits=(-1.0, 1.0)) if is_single else None,
        other_means=others,
    )


def printed_methods(benchmark: Benchmark, prior: Results) -> list[MethodRecord]:
    """Methods of which only the weighted Kendall is printed: no regret, no residual."""
    of_prior = agreement_by_target(prior, benchmark.results)
    return [
        MethodRecord(
            name=name,
            title=f"{name} (as printed)",
            role="score",
            weighted_kendall=list(cells),
            mean=mean_over_targets(np.asarray(cells), benchmark.groups, limits=(-1.0, 1.0)),
            regret=MeanRecord(value=None, num_targets=0),
            gain=mean_over_targets(np.asarray(cells) - of_prior, benchmark.groups, limits=(-2.0, 2.0)),
        )
        for name, cells in benchmark.printed.items()
    ]


def agreement_by_target(values: Results, truth: Results) -> PerTarget:
    """Weighted Kendall on each target over the models that have both numbers; NaN where it is undefined."""
    return _by_target(weighted_kendall, values, truth)


def mean_over_targets(
    values: PerTarget, groups: Sequence[str], *, limits: tuple[float, float] = (-np.inf, np.inf), least: int = MIN_GROUPS
) -> MeanRecord:
    """Mean over the targets where the value is defined, with the interval of ``mean_interval`` over groups of targets.

    Args:
        values: One per target; NaN = undefined.
        groups: Group of each target.
        limits: Between which the quantity lies.
        least: Fewest groups for an interval; regrets, many of which are 0, need ``statistics.LEAST_REGRETS``.
    """
    defined = np.isfinite(values)
    if not defined.any():
        return MeanRecord(value=None, num_targets=0)
    whole = mean_interval(values[defined], np.asarray(groups)[defined], limits=limits, least=least)
    return MeanRecord(
        value=whole.mean, low=whole.low, high=whole.high, num_targets=int(defined.sum()), no_interval_reason=whole.reason or None
    )


def compare(methods: Iterable[MethodRecord]) -> FriedmanRecord | None:
    """Friedman's test of the single scores; None with fewer than three."""
    scores = [method for method in methods if method.role == "score"]
    if len(scores) < 3:
        return None
    values = np.array([method.weighted_kendall for method in scores], dtype=np.float64).T
    test = friedman(values)
    ranks = {**test._asdict(), "mean_ranks": test.mean_ranks.tolist()}
    return FriedmanRecord(methods=[method.title for method in scores], num_targets=len(values), **ranks)


def _by_target(measure: Measure, values: Results, truth: Results) -> PerTarget:
    known = np.isfinite(values) & np.isfinite(truth)
    rows = zip(values, truth, known, strict=True)
    return np.array([measure(a[both], b[both]) if both.sum() > 1 else np.nan for a, b, both in rows])


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
