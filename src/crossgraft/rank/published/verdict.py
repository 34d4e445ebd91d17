"""One sentence that says what the evaluation supports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.rank.published.means import mean_over_targets
from crossgraft.rank.published.record import MeanRecord, MethodRecord
from crossgraft.words.formatting import NumberFormat

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
