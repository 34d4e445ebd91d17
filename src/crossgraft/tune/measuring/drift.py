"""How alike features before and after fine-tuning are, on rows that neither was fitted to, and how far weights moved."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import tee

import numpy as np
import torch

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.features.passes import run_pass
from crossgraft.models.classifier import Classifier
from crossgraft.similarity import StreamingCka
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.logits import BATCH_SIZE


def similarity_to_source(
    source: Classifier | None,
    tuned: Sequence[tuple[Classifier, np.ndarray]],
    dataset: Dataset,
    *,
    device: str,
    num_threads: int,
) -> dict[str, float]:
    """Linear CKA of penultimate features, in eval mode and without augmentation; with folds the mean over them.

    ``source`` is the pretrained network, None where its weights are not here; ``tuned`` is each fine-tuned
    one with its test rows.

    Returns:
        ``cka`` (biased, of the paper) and ``cka_debiased``; empty where there are too few rows, or nothing to compare with.

    Cost: two forward passes an image; memory for both networks and O(d²) numbers, however many rows there are.
    """
    if source is None:
        return {}
    found: list[tuple[float, float]] = []
    for classifier, rows in tuned:
        images = TrainingImages(dataset.take(rows), source.preprocessing, num_threads=num_threads)
        with _placed(source, device), _placed(classifier, device):
            stream = _compare(source, classifier, images, device)
        try:
            found.append((stream.compute(), stream.compute(debiased=True)))
        except NotApplicable:
            return {}
    biased, debiased = np.mean(found, axis=0).tolist()
    return {"cka": biased, "cka_debiased": debiased}


def parameter_distance(one: Classifier, other: Classifier) -> float:
    """Euclidean distance of the parameters in front of the head."""
    there = dict(other.body.named_parameters())
    squares = [
        (value.detach().cpu().double() - there[name].detach().cpu().double()).square().sum()
        for name, value in one.body.named_parameters()
    ]
    return float(torch.stack(squares).sum().sqrt()) if squares else 0.0


def _compare(source: Classifier, classifier: Classifier, images: TrainingImages, device: str) -> StreamingCka:
    """Every batch is decoded once and goes through both networks."""
    stream = StreamingCka()
    first, second = tee(evaluation_batches(images, batch_size=BATCH_SIZE, device=device))
    before = run_pass(source, first, read=source.features, like=source.head.weight)
    after = run_pass(classifier, second, read=classifier.features, like=classifier.head.weight)
    for pair in zip(before, after, strict=True):
        stream.update(*pair)
    return stream


@contextmanager
def _placed(classifier: Classifier, device: str) -> Generator[None]:
    """On ``device`` for a while."""
    place = classifier.head.weight.device
    try:
        classifier.to(device)
        yield
    finally:
        classifier.to(place)
