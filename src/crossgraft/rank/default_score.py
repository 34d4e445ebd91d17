"""Which score orders a ranking when nothing is asked for, and why: decided on the published results that ship."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.contenders import contenders, held_out_prior
from crossgraft.rank.published.evaluate import agreement_by_target, mean_over_targets
from crossgraft.rank.published.record import MeanRecord
from crossgraft.rank.published.tables import REVERSED, TITLES, itm_benchmark, thesis_architectures, thesis_datasets
from crossgraft.scores import SCORES, AnyScore, Score
from crossgraft.words.formatting import NumberFormat, count, counted, joined


def score_names(scores: object) -> str | list[str]:
    """Names of what was given, one or several.

    Raises:
        UsageError: An object is no score, or none that is registered under its name.
    """
    if isinstance(scores, Sequence) and not isinstance(scores, str):
        return [score_name(each) for each in cast("Sequence[object]", scores)]
    return score_name(scores)


def score_name(score: object) -> str:
    """The name of one score.

    Raises:
        UsageError: The object is no score, or none that is registered under its name.
    """
    if isinstance(score, str):
        return score
    if not isinstance(score, Score):
        what = f"the {type(score).__name__} {getattr(score, '__name__', '')}".rstrip()
        raise UsageError(
            f"{what} is no score. Give names (see `crossgraft list scores`) or scores such as crossgraft.scores.logme; a "
            "function of your own becomes one under the decorator crossgraft.scores.score."
        )
    if score.name not in SCORES:
        raise UnknownNameError(
            "score",
            score.name,
            SCORES.names(),
            hint=f"A score of your own is registered first: crossgraft.scores.SCORES.add({score.name!r}, {score.name}).",
        )
    if SCORES.get(score.name) is not score:
        raise UsageError(f"Another score is registered as {score.name}, from {SCORES.origin(score.name)}. Rename the function.")
    return score.name


MOST_IMAGES = 10_000
"""Up to so many images, the default scores whose cost grows with their square are computed, too."""


def scores_left_out(asked: str | Sequence[str], by: str | None, chosen: Sequence[AnyScore], num_images: int) -> dict[str, str]:
    """Default scores that are not computed because there are too many images, and why, in a sentence.

    Args:
        asked: Names as they were given; what is named there or orders the ranking is computed whatever it costs.
        by: Score that was asked for to order the ranking.
        chosen: All scores of the ranking.
        num_images: Number of images.
    """
    if num_images <= MOST_IMAGES:
        return {}
    names = asked.split(",") if isinstance(asked, str) else asked
    wanted = {name.strip() for name in names} | {by}
    if "all" in wanted:
        return {}
    return {
        score.name: f"Its cost grows with the square of the images, and there are {counted(num_images, 'image')}; above "
        f"{count(MOST_IMAGES)} it is computed only when it is named: --scores default,{score.name}."
        for score in chosen
        if score.is_quadratic and score.name not in wanted
    }


DEFAULT_PRIMARY = "logme"
PLAIN_SCORES = ("logme", "nleep", "sfda")
"""Published score columns that this library reproduces and that need features and labels only."""
_TWO = NumberFormat(decimals=2)


class DefaultEvidence(NamedTuple):
    """Weighted Kendall with fine-tuning over both benchmarks of the thesis; scores are taken as they are.

    Attributes:
        means: Mean of each plain score.
        gains: Gain of each other plain score over the default; an interval above 0 would ask for another default.
        prior: Mean of the static prior.
        beats_prior: Titles of what beats the static prior on any published benchmark, its interval above 0.
        num_rankings: Targets of both benchmarks.
    """

    means: dict[str, MeanRecord]
    gains: dict[str, MeanRecord]
    prior: MeanRecord
    beats_prior: list[str]
    num_rankings: int

    @property
    def better(self) -> list[str]:
        """Scores that are separably better than the default."""
        return [name for name, gain in self.gains.items() if (gain.low or 0.0) > 0]


@cache
def default_evidence(default: str = DEFAULT_PRIMARY) -> DefaultEvidence:
    """Judge the plain scores on the shipped tables; half a second, once."""
    benchmarks = (thesis_datasets(), thesis_architectures())
    groups = [group for benchmark in benchmarks for group in benchmark.groups]
    taus = {name: np.concatenate([_taus(benchmark, name) for benchmark in benchmarks]) for name in PLAIN_SCORES}
    prior = np.concatenate([agreement_by_target(held_out_prior(b), b.results) for b in benchmarks])
    return DefaultEvidence(
        means={name: mean_over_targets(values, groups) for name, values in taus.items()},
        gains={name: mean_over_targets(values - taus[default], groups) for name, values in taus.items() if name != default},
        prior=mean_over_targets(prior, groups),
        beats_prior=_beats_prior([*benchmarks, itm_benchmark()]),
        num_rankings=len(groups),
    )


@cache
def default_reason() -> str:
    """Why the default is what it is, in one sentence without its final stop."""
    evidence = default_evidence()
    means = {TITLES[name]: _TWO(mean.value) for name, mean in evidence.means.items()}
    listed = joined([f"{title} {mean}" for title, mean in means.items()])
    name = TITLES[DEFAULT_PRIMARY]
    others = [TITLES[other] for other in PLAIN_SCORES if other != DEFAULT_PRIMARY]
    if evidence.better:
        verdict = f"although {joined([TITLES[other] for other in evidence.better])} did better"
    else:
        verdict = f"and published results do not separate {name} from {joined(others)}"
    prior = (
        f"{joined(evidence.beats_prior)} beats the static prior ({_TWO(evidence.prior.value)})"
        if evidence.beats_prior
        else f"nothing beats the static prior ({_TWO(evidence.prior.value)}), which never looks at the images"
    )
    return (
        f"the default, as it needs features and labels only, {verdict} (mean weighted Kendall in {evidence.num_rankings} "
        f"medical rankings: {listed}); {prior}"
    )


def _taus(benchmark: Benchmark, name: str) -> np.ndarray:
    """Table 6.3 turns some scores round after the fact; a ranking takes every score as it is."""
    values = benchmark.columns[name].values
    is_reversed = benchmark.name == "thesis-architectures" and name in REVERSED
    return agreement_by_target(-values if is_reversed else values, benchmark.results)


def _beats_prior(benchmarks: Sequence[Benchmark]) -> list[str]:
    """Titles of contenders whose gain over the static prior has an interval above 0 on some benchmark."""
    winners: dict[str, None] = {}
    for benchmark in benchmarks:
        prior = agreement_by_target(held_out_prior(benchmark), benchmark.results)
        rivals = [(entry.title, agreement_by_target(entry.values, benchmark.results)) for entry in contenders(benchmark)]
        rivals += [(name, np.array(cells, dtype=np.float64)) for name, cells in benchmark.printed.items()]
        for title, taus in rivals:
            if (mean_over_targets(taus - prior, benchmark.groups).low or 0.0) > 0:
                winners[title] = None
    return list(winners)
