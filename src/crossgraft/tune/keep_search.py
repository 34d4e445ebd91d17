"""How strong a regulariser must be for training to end at a similarity: whole trainings, each after what the last one showed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise, takewhile
from typing import NamedTuple

from crossgraft.running.jobs import Outcome, run_jobs
from crossgraft.tune.engine.selection_rule import MOST_TRAININGS, TOLERANCE, Keep
from crossgraft.tune.jobs import Trained, TrainingOutcome, TrainingWork
from crossgraft.tune.planning.choices import KEEP_FACTOR, GridPoint, GridTraining

_STEP = 5.0
"""What the factor is multiplied or divided by while all that was seen lies on one side of the target."""
_FLAT_STEPS = 3
"""In a row, each the square of the one before, after which the target counts as out of reach on that side."""
_NEARLY_NOTHING = 1e-3
"""Factor that is tried where no stronger term keeps more: one that is far too strong may break what a weaker one keeps."""
_WEAK = 0.04
"""Factor that is tried where the very first training failed or its features collapsed: two steps weaker."""
_MOST_ON_ONE_SIDE = 6
"""Trainings after which a target that lies beyond all of them counts as out of reach."""
_INSIDE = 0.1
"""Nearest to an end of an interval that is tried in it, as a share of it: a curve may be flat and then fall."""
_LEAST_GAIN = 0.005
"""Change of the similarity after a whole step, below which the step was flat."""
_NARROW = 1.1
"""Ratio of two factors between which nothing is tried: similarity differs by more from seed to seed."""


class Tried(NamedTuple):
    """One training.

    Attributes:
        factor: Factor of the terms.
        similarity: Debiased CKA after its last epoch; None where training failed, or features have collapsed.
    """

    factor: float
    similarity: float | None


class _Ended(NamedTuple):
    """One training that came to its end."""

    factor: float
    similarity: float


def next_factor(target: float, tried: Sequence[Tried]) -> float | None:
    """The factor to try next; None where the target is reached, or out of reach.

    First 1, as the regulariser says itself; then five times more or less until the target lies between two trainings, in longer
    steps where the last ones changed next to nothing (a term may be hundreds of times too strong); then a point on the
    straight line between these two over the logarithm of the factor; halfway to a factor that is too much for training. If
    already the first is too much, one weak factor is tried. Factors have three digits.

    >>> next_factor(0.8, [])
    1.0
    >>> next_factor(0.8, [Tried(1.0, 0.9)])
    0.2
    >>> next_factor(0.8, [Tried(1.0, 0.9), Tried(0.2, 0.5)])
    0.669
    >>> next_factor(0.8, [Tried(1.0, 0.9), Tried(0.2, 0.5), Tried(0.669, 0.81)]) is None
    True
    >>> next_factor(0.8, [Tried(1.0, 0.6), Tried(5.0, None)])
    2.24
    """
    if not tried:
        return 1.0
    ended = [_Ended(each.factor, each.similarity) for each in tried if each.similarity is not None]
    if not ended:
        return _WEAK if len(tried) == 1 else None
    below = [each for each in ended if each.similarity < target]
    above = [each for each in ended if each.similarity > target]
    most = MOST_TRAININGS if below and above else _MOST_ON_ONE_SIDE
    if len(tried) >= most or any(abs(each.similarity - target) <= TOLERANCE for each in ended):
        return None
    too_much = min((each.factor for each in tried if each.similarity is None), default=math.inf)
    if not above:
        stronger = _farther(sorted(below), _STEP, too_much)
        is_flat = stronger is None and math.isinf(too_much)
        return _NEARLY_NOTHING if is_flat and min(below).factor > _NEARLY_NOTHING else stronger
    if not below:
        return _farther(sorted(above, reverse=True), 1 / _STEP, too_much)
    pairs = ((low, high) for low in below for high in above)
    low, high = min(pairs, key=lambda pair: abs(math.log(pair[0].factor / pair[1].factor)))
    share = (target - low.similarity) / (high.similarity - low.similarity)
    return _between(low.factor, high.factor, min(max(share, _INSIDE), 1 - _INSIDE))


def _farther(ended: Sequence[_Ended], step: float, too_much: float) -> float | None:
    """Beyond the last of them, unless the steps to it changed next to nothing; before what was too much."""
    steps = [abs(after - before) for before, after in pairwise(each.similarity for each in ended)]
    flat = len(list(takewhile(lambda change: change < _LEAST_GAIN, reversed(steps))))
    if flat >= _FLAT_STEPS:
        return None
    farther = ended[-1].factor * step ** (2**flat)
    return _rounded(farther) if farther < too_much else _between(ended[-1].factor, too_much, 0.5)


def _between(first: float, second: float, share: float) -> float | None:
    """A point on the way from one factor to another; None where there is next to nothing between them."""
    start, end = math.log(first), math.log(second)
    return None if abs(end - start) < math.log(_NARROW) else _rounded(math.exp(start + share * (end - start)))


def _rounded(factor: float) -> float:
    return float(f"{factor:.3g}")


def run_trainings(
    work: TrainingWork, *, keep_going: bool, told: Callable[[Outcome[GridTraining, Trained]], object] = lambda _: None
) -> list[TrainingOutcome]:
    """Every point of the grid on one fold; with ``--keep`` each with as many factors as it takes.

    Args:
        work: Work of the fold.
        keep_going: A training that fails becomes a reason; otherwise its error is raised.
        told: Called with each outcome as it comes.
    """
    prepared = work.prepared
    points, keep = prepared.request.points, prepared.keep
    if keep is None:
        return run_jobs([work.job(point) for point in points], work, keep_going=keep_going, told=told)
    of_points = [_search_factor(point, work, keep, keep_going=keep_going, told=told) for point in points]
    return [outcome for outcomes in of_points for outcome in outcomes]


def _search_factor(
    point: GridPoint,
    work: TrainingWork,
    keep: Keep,
    *,
    keep_going: bool,
    told: Callable[[Outcome[GridTraining, Trained]], object],
) -> list[TrainingOutcome]:
    """Train with one factor after the other; one that fails after the first is a reason, and too much."""
    outcomes: list[TrainingOutcome] = []
    tried: list[Tried] = []
    with ExitStack() as around:
        while (factor := next_factor(keep.target, tried)) is not None:
            job = work.job({**point, KEEP_FACTOR: factor})
            if len(outcomes) == 1 and work.progress is not None:
                around.enter_context(work.progress.further(job.spec))
            outcomes += run_jobs([job], work, keep_going=keep_going or bool(outcomes), told=told)
            similarity = None if outcomes[-1].result is None else _at_the_end(outcomes[-1].result, keep)
            tried.append(Tried(factor, similarity))
    return outcomes


def _at_the_end(trained: Trained, keep: Keep) -> float | None:
    """Similarity after the last epoch, whichever was kept; None where features have collapsed."""
    row = trained.record.history[-1]
    return row.val_cka_debiased_adapted if keep.is_adapted else row.val_cka_debiased
