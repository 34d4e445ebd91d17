"""What looking at all images will take, from looking at very few."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from crossgraft.compute import rounded_size
from crossgraft.features.batches import BatchLoader
from crossgraft.models import Backbone
from crossgraft.progress import TypicalClock
from crossgraft.words.durations import rounded_time

_LEAST_SECONDS, _SHARE, _MOST_SECONDS = 0.15, 1 / 25, 1.0
"""Timing goes on within this share of the work that is announced, and takes two tries in any case.

The seconds are those of an idle machine: on a busy one as much is looked at, which takes longer."""
_GROWTH = 4
_FEWEST_TRIES, _MOST_TRIES = 2, 9


class CostEstimate(NamedTuple):
    """Before the start.

    Attributes:
        seconds: For the images that are left.
        num_bytes: On the disk, for all images.
    """

    seconds: float
    num_bytes: int

    def describe(self) -> str:
        """For people.

        >>> CostEstimate(42.3, 12_400_000).describe()
        'about 40 s, 12 MB'
        """
        return f"about {rounded_time(self.seconds)}, {rounded_size(self.num_bytes)}"


def estimate_cost(backbone: Backbone, loader: BatchLoader, *, num_left: int, num_samples: int) -> CostEstimate:
    """Time the preparation and the forward pass of a few images.

    Args:
        backbone: Woken up by one image first, which is not counted.
        loader: Loader of the remaining images.
        num_left: Number of remaining images.
        num_samples: All images, for the size on the disk.
    """
    rows = loader.spans[0][: loader.batch_size]
    seconds = seconds_a_row(
        lambda number: backbone(loader.load(rows[:number])).features.cpu(), most=len(rows), num_rows=num_left
    )
    width = backbone.num_features + (backbone.num_source_classes or 0)
    return CostEstimate(seconds * num_left, 4 * num_samples * width)


def seconds_a_row(
    look: Callable[[int], object], *, most: int, num_rows: int, clock: TypicalClock | None = None
) -> float:
    """Seconds on the clock that each row takes: the median of a few tries, on a busy machine all of them longer.

    Rows are cheaper in larger batches, so these grow towards those of the real work for as long as timing stays cheap. The
    first look at a batch of a new size is not counted, because it also makes what is kept for the next one.

    Args:
        look: Does the work for so many rows; what it returns is in main memory, so that an accelerator has come to its end.
        most: Size of the batches of the real work.
        num_rows: Rows that the real work has.
        clock: Clock of this thread; by default a new one.
    """
    now = TypicalClock() if clock is None else clock

    def affordable(seconds_of_all: float) -> float:
        least, most_seconds = now.slowdown * _LEAST_SECONDS, now.slowdown * _MOST_SECONDS
        return min(most_seconds, max(least, _SHARE * seconds_of_all))

    def timed(size: int) -> float:
        start = now()
        look(size)
        return now() - start

    look(1)
    size, took = 1, timed(1)
    spent, a_row_more = took, took
    while size < most:
        larger = min(most, _GROWTH * size)
        if spent + took + a_row_more * (larger - size) > affordable(took / size * num_rows):
            break
        before, took = took, timed(larger)
        a_row_more = max(0.0, took - before) / (larger - size)  # a look has a price of its own, however few the rows
        size, spent = larger, spent + took
    tries: list[float] = []
    while len(tries) < _FEWEST_TRIES or (
        len(tries) < _MOST_TRIES and spent + took <= affordable(median(tries) / size * num_rows)
    ):
        took = timed(size)
        spent += took
        tries.append(took)
    return median(tries) / size
