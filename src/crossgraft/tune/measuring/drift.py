"""How alike features before and after fine-tuning are, on rows that neither was fitted to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.models.classifier import Classifier
from crossgraft.similarity import linear_cka
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.saving.inference import BATCH_SIZE

MOST_ROWS = 1000
"""Of test; the similarity costs the square of them."""


def similarity_to_source(
    source: Classifier,
    tuned: Sequence[tuple[Classifier, np.ndarray]],
    dataset: Dataset,
    *,
    device: str,
    num_threads: int,
) -> dict[str, float]:
    """Linear CKA of penultimate features, in eval mode and without augmentation; with folds the mean over them.

    Args:
        source: The pretrained network.
        tuned: Each fine-tuned one with its test rows, of which the first 1000 are looked at.
        dataset: All rows.
        device: Where the networks run.
        num_threads: For images.

    Returns:
        ``cka`` (biased, of the paper) and ``cka_debiased``; empty where there are too few rows.
    """
    found: list[tuple[float, float]] = []
    for classifier, rows in tuned:
        images = TrainingImages(dataset.take(rows[:MOST_ROWS]), source.preprocessing, num_threads=num_threads)
        before, after = (_features(each, images, device) for each in (source, classifier))
        try:
            found.append((linear_cka(before, after), linear_cka(before, after, debiased=True)))
        except NotApplicable:
            return {}
    biased, debiased = np.mean(found, axis=0).tolist()
    return {"cka": biased, "cka_debiased": debiased}


def _features(classifier: Classifier, images: TrainingImages, device: str) -> Float[np.ndarray, "n d"]:
    weight = classifier.head.weight
    place, dtype = weight.device, weight.dtype
    try:
        classifier.to(device)
        return features_of(classifier, images, batch_size=BATCH_SIZE, device=device).double().numpy()
    finally:
        classifier.to(place, dtype)
