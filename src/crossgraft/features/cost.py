"""What looking at all images will take, from looking at very few."""

from __future__ import annotations

import time
from typing import NamedTuple

from crossgraft.compute import rounded_size
from crossgraft.features.batches import BatchLoader
from crossgraft.models import Backbone

# With these two, the estimate costs about 1 % of the work it announces once there are 256 images.
_MOST_IMAGES = 4
_SHARE = 256


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
        return f"about {_rounded_time(self.seconds)}, {rounded_size(self.num_bytes)}"


def estimate_cost(backbone: Backbone, loader: BatchLoader, *, num_left: int, num_samples: int) -> CostEstimate:
    """Time the preparation and the forward pass of a few images; the better of two tries counts.

    Args:
        backbone: Woken up by one image first, which is not counted.
        loader: Loader of the remaining images.
        num_left: Number of remaining images.
        num_samples: All images, for the size on the disk.
    """
    first = loader.spans[0]
    rows = first[: max(1, min(_MOST_IMAGES, num_left // _SHARE, loader.batch_size))]
    backbone(loader.load(rows[:1]))
    seconds = float("inf")
    for _ in range(2):  # on a busy machine one try can take many times too long
        start = time.perf_counter()
        backbone(loader.load(rows)).features.cpu()  # waits for an accelerator to finish
        seconds = min(seconds, time.perf_counter() - start)
    width = backbone.num_features + (backbone.num_source_classes or 0)
    return CostEstimate(seconds / len(rows) * num_left, 4 * num_samples * width)


def _rounded_time(seconds: float) -> str:
    if seconds < 90:
        step = 10 if seconds >= 20 else 1
        return f"{max(1, round(seconds / step) * step)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
