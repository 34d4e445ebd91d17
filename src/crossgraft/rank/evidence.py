"""How far an order of models can be trusted before any of them is trained: what replays of published results measured.

Every number is a row of "All tables together" in ``docs/results/benchmark.md``, which ``recipes/benchmark.py`` measures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from crossgraft.rank.record import RankingRecord
from crossgraft.words.formatting import NumberFormat, counted, duration


class Replayed(NamedTuple):
    """Weighted Kendall with the results of fine-tuning, as a mean over targets that were unknown.

    Attributes:
        kendall: From −1 (reverse) over 0 (chance) to 1 (the same order).
        low: Lower end of its 95 % interval over groups of related targets.
        high: Upper end.
        num_targets: Number of targets.
    """

    kendall: float
    low: float
    high: float
    num_targets: int


OF_SCORES = {
    "h_score": Replayed(0.086, -0.080, 0.249, 29),
    "nce": Replayed(0.099, -0.082, 0.277, 29),
    "leep": Replayed(0.242, 0.106, 0.356, 51),
    "nleep": Replayed(0.257, 0.135, 0.376, 51),
    "parc": Replayed(0.229, 0.055, 0.382, 40),
    "regularized_h_score": Replayed(-0.037, -0.187, 0.113, 29),
    "sfda": Replayed(0.190, 0.086, 0.280, 49),
    "logme": Replayed(0.186, 0.075, 0.295, 51),
    "gbc": Replayed(0.216, -0.006, 0.428, 29),
    "energy": Replayed(0.362, 0.125, 0.556, 29),
    "ncti": Replayed(0.353, 0.205, 0.489, 40),
    "linear_probe": Replayed(0.172, 0.008, 0.392, 42),
    "knn_probe": Replayed(0.029, -0.117, 0.198, 30),
    "etran": Replayed(0.162, -0.166, 0.474, 18),
    "ped": Replayed(0.151, -0.109, 0.403, 18),
    "transrate": Replayed(0.102, -0.162, 0.355, 18),
    "lfc": Replayed(0.058, -0.298, 0.407, 18),
    "itm": Replayed(0.127, -0.228, 0.360, 18),
    "nca_score": Replayed(0.251, 0.082, 0.443, 18),
    "lead": Replayed(0.064, -0.258, 0.380, 18),
}
OF_KNOWN_RESULTS = Replayed(0.521, 0.440, 0.597, 118)
"""The static prior: mean relative rank on other data."""
OF_TRAININGS = Replayed(0.631, 0.487, 0.742, 37)
"""Whole trainings, compared on val."""

STEPS_OF_A_TRAINING, FEWEST_EPOCHS, MOST_EPOCHS = 600, 10, 50
"""What ``fine_tune`` does where nobody says more (``crossgraft.tune.planning.choices``)."""
BATCH_SIZES, LARGEST_BATCH = ((64, 8), (256, 16), (2000, 32), (10_000, 64)), 128
MOST_TO_TRAIN = 5
"""More models than this are trained only as far as a budget lasts."""
PASSES_OF_A_STEP = 4
"""A step costs as much as so many looks: forward, backward to inputs and to weights, and the rest of it."""

_TWO = NumberFormat(decimals=2)


def weak_guide(record: RankingRecord) -> str:
    """How far the primary score foresees fine-tuning, the short of it first, for a narrow terminal."""
    title, replayed = record.primary_title, OF_SCORES.get(record.primary_score)
    if replayed is None:
        return f"How far {title} foresees fine-tuning was not replayed on published results; frozen features are a weak guide."
    chance = ", chance not excluded" if replayed.low <= 0 else ""
    return (
        f"Frozen features are a weak guide. On {replayed.num_targets} published targets {title} agrees with fine-tuning at "
        f"{_TWO(replayed.kendall)}{chance}, results on other data at {_TWO(OF_KNOWN_RESULTS.kendall)}, trainings on val at "
        f"{_TWO(OF_TRAININGS.kendall)} (1: the same order)."
    )


def advised_order(record: RankingRecord) -> list[str]:
    """The models that the numbers speak for, in the order that replays support.

    By results on other data where at least two of them have some: the static prior agrees with fine-tuning at 0.52, no score at
    more than 0.36. The others stand where a middling model does. Else by the primary score.
    """
    ranked = _with_a_value(record)
    return _in_order(record, ranked[:1] if record.advised is None else list(record.advised))


def models_to_train(record: RankingRecord) -> list[str]:
    """The advised ones; where none is, all that have a value, since only a training tells them from random weights.

    Empty where shuffled labels do as well for all of them: labels or images are to be looked at first.
    """
    advised, ranked = advised_order(record), _with_a_value(record)
    if advised or all(record.cell(name, record.primary_score).above_shuffled is False for name in ranked):
        return advised
    return _in_order(record, ranked)


def _with_a_value(record: RankingRecord) -> list[str]:
    return [row.model for row in record.primary_ranking.rows if row.rank is not None]


def _in_order(record: RankingRecord, names: list[str]) -> list[str]:
    known = {row.model: row.mean_rank for row in record.prior.rows if row.mean_rank is not None} if record.prior else {}
    if sum(name in known for name in names) < 2:
        return names
    return sorted(names, key=lambda name: known.get(name, 0.5))


def order_in_words(record: RankingRecord) -> str | None:
    """Which of those that cannot be told apart did best on other data; None where nothing is known of two."""
    names = advised_order(record)
    if record.prior is None or sum(row.model in names and row.mean_rank is not None for row in record.prior.rows) < 2:
        return None
    targets = counted(len(record.prior.targets), "other target")
    return f"Of {'the two' if len(names) == 2 else f'these {len(names)}'}, {names[0]} did best on {targets}: begin with it."


def settled_in_words(record: RankingRecord) -> str | None:
    """What settles the choice between several, and how long it takes; None where there is nothing to choose."""
    names = models_to_train(record)
    if len(names) < 2:
        return None
    seconds = seconds_to_train(record, names)
    takes = "" if seconds is None else f"about {_roughly(seconds)} here"
    if len(names) > MOST_TO_TRAIN:
        of_all = takes and f" (all: {takes})"
        return f"crossgraft select settles it: it trains as many of these {len(names)} as a budget allows{of_all}."
    who = "both" if len(names) == 2 else f"all {len(names)}"
    return f"crossgraft select settles it: it trains {who}{takes and f' ({takes})'}."


def _roughly(seconds: float) -> str:
    if seconds < 100:
        return duration(seconds)
    return f"{round(seconds / 60)} min" if seconds < 90 * 60 else f"{round(seconds / 3600)} h"


def seconds_to_train(record: RankingRecord, names: Sequence[str]) -> float | None:
    """Roughly, to fine-tune all of ``names`` on this machine; None where the looks at the images were not timed."""
    times = {model.name: model.feature_seconds for model in record.models}
    known = [seconds for name in names if (seconds := times.get(name)) is not None]
    if len(known) < len(names) or record.dataset.num_images == 0:
        return None
    images = images_of_training(record.dataset.num_images)
    return sum(known) / record.dataset.num_images * images * PASSES_OF_A_STEP


def images_of_training(num_train: int) -> int:
    """How many images a training looks at where nobody says how long it is.

    >>> images_of_training(300), images_of_training(100_000)
    (15000, 1000000)
    """
    batch_size = next((size for below, size in BATCH_SIZES if num_train < below), LARGEST_BATCH)
    epochs = round(STEPS_OF_A_TRAINING / math.ceil(num_train / batch_size))
    return num_train * min(max(epochs, FEWEST_EPOCHS), MOST_EPOCHS)
