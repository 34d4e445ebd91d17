"""What it takes to look at images with a classifier: some are looked at, and timed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.data import Dataset
from crossgraft.features.cost import seconds_a_row
from crossgraft.models.classifier import Classifier
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.logits import BATCH_SIZE
from crossgraft.tune.measuring.evaluation import logits_of
from crossgraft.tune.parts import FoldRows

_SHARE = 32  # two tries then cost about 6 % of the looks, which are a small part of the work
_ESTIMATING = 1.5
"""A look of BatchNorm in train mode takes so many of others."""
_PASSES_OVER_TEST = 3
"""Predictions, and features before and after."""


def num_looks_after(parts: FoldRows) -> int:
    """How many images are looked at once a network is trained."""
    return len(parts.val) + _PASSES_OVER_TEST * len(parts.test)


def count_looks(parts: FoldRows, alphas: Sequence[float], *, estimates: bool) -> int:
    """How many looks at an image it takes to measure the networks between two.

    Args:
        parts: Rows of train, val and test.
        alphas: Places of the networks.
        estimates: Whether statistics of BatchNorm are estimated on the training rows for networks that are no end.
    """
    inner = sum(0 < alpha < 1 for alpha in alphas) if estimates else 0
    return len(alphas) * num_looks_after(parts) + round(_ESTIMATING * inner * len(parts.train))


def seconds_per_look(
    classifier: Classifier, dataset: Dataset, rows: np.ndarray, *, number: int, device: str, num_threads: int
) -> float:
    """Seconds on the clock to read, prepare and look at one image.

    Args:
        classifier: Network; it is on its device again afterwards.
        dataset: Images.
        rows: Rows of which the first few are looked at.
        number: How many looks are to come; the more, the more images are timed.
        device: Where the network will run.
        num_threads: Threads that read images.
    """

    def look(first: int) -> object:
        images = TrainingImages(dataset.take(rows[:first]), classifier.preprocessing, num_threads=num_threads)
        return logits_of(classifier, images, device=device)

    return seconds_a_row(look, min(len(rows), BATCH_SIZE, number // _SHARE + 1)) if len(rows) else 0.0
