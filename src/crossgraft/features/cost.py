"""What looking at all images will take, from looking at very few."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from crossgraft.compute import rounded_size
from crossgraft.features.batches import BatchLoader
from crossgraft.models import Backbone
from crossgraft.words.durations import rounded_time

# With these two, the estimate costs about 3 % of the work it announces once there are 64 images; of fewer at once, each
# takes longer than in the batches of the real work.
_MOST_IMAGES = 8
_SHARE = 64
_TRIES = 2


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
    """Time the preparation and the forward pass of a few images; the better of two tries counts.

    Args:
        backbone: Woken up by one image first, which is not counted.
        loader: Loader of the remaining images.
        num_left: Number of remaining images.
        num_samples: All images, for the size on the disk.
    """
    rows = loader.spans[0][: min(num_timed(num_left), loader.batch_size)]
    seconds = seconds_a_row(lambda number: backbone(loader.load(rows[:number])).features.cpu(), len(rows))
    width = backbone.num_features + (backbone.num_source_classes or 0)
    return CostEstimate(seconds * num_left, 4 * num_samples * width)


def num_timed(number: int) -> int:
    """How many images are looked at to know what ``number`` of them will take."""
    return max(1, min(_MOST_IMAGES, number // _SHARE))


def seconds_a_row(look: Callable[[int], object], number: int) -> float:
    """Seconds on the clock that each row takes, the mean of a few tries: on a busy machine all of them take longer.

    Args:
        look: Does the work for so many rows; what it returns is in main memory, so that an accelerator has come to its end.
        number: A few rows; one alone wakes everything up first and is not counted.
    """
    look(1)
    start = time.perf_counter()
    for _ in range(_TRIES):
        look(number)
    return (time.perf_counter() - start) / (_TRIES * number)
