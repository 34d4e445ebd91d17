"""How alike features before and after fine-tuning are, on rows that neither was fitted to."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import tee

import numpy as np
from jaxtyping import Int

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.features.passes import run_pass
from crossgraft.models.classifier import Classifier
from crossgraft.similarity import StreamingCka
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.logits import BATCH_SIZE


@dataclass(frozen=True, eq=False)
class Compared:
    """A fine-tuned network, and what its features are compared with.

    Attributes:
        tuned: Fine-tuned network.
        rows: Its test rows.
        pretrained: Network that it came from; None where its weights are not here.
        adapted: The same weights with BatchNorm statistics of the training images; None where it has no BatchNorm.
    """

    tuned: Classifier
    rows: Int[np.ndarray, " num_test"]
    pretrained: Classifier | None
    adapted: Classifier | None = None

    @property
    def pairs(self) -> dict[str, tuple[Classifier, Classifier]]:
        """Ending of the name of a similarity → the two networks."""
        pretrained, adapted, tuned = self.pretrained, self.adapted, self.tuned
        found = {"": (pretrained, tuned), "_adapted": (adapted, tuned), "_untouched": (pretrained, adapted)}
        return {ending: (one, other) for ending, (one, other) in found.items() if one is not None and other is not None}


def similarity_to_source(
    compared: Sequence[Compared], dataset: Dataset, *, device: str, num_threads: int
) -> dict[str, float]:
    """Linear CKA of penultimate features, in eval mode and without augmentation; with folds the mean over them.

    Returns:
        ``cka`` (biased, of the paper) and ``cka_debiased``, of the fine-tuned network to the pretrained one. Where that has
        BatchNorm, also with the ending ``_adapted``, to the pretrained weights with statistics of the training images; and
        ``_untouched``, of those two to each other: what moving statistics does without any training. Left out where there
        are too few rows or features do not vary, and where there is nothing to compare with.

    Cost: a forward pass an image for each of two or three networks; memory for them and O(d²) numbers, however many rows
    there are.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    undefined: set[str] = set()
    for each in compared:
        images = TrainingImages(dataset.take(each.rows), each.tuned.preprocessing, num_threads=num_threads)
        for ending, stream in _compare(each, images, device).items():
            try:
                found.setdefault(ending, []).append((stream.compute(), stream.compute(debiased=True)))
            except NotApplicable:
                undefined.add(ending)
    means = {ending: np.mean(values, axis=0).tolist() for ending, values in found.items() if ending not in undefined}
    return {
        f"{name}{ending}": value
        for ending, both in means.items()
        for name, value in zip(("cka", "cka_debiased"), both, strict=True)
    }


def _compare(compared: Compared, images: TrainingImages, device: str) -> dict[str, StreamingCka]:
    """Every batch is decoded once and goes through each network once."""
    streams = {ending: StreamingCka() for ending in compared.pairs}
    if not streams:
        return {}
    networks = list({id(one): one for pair in compared.pairs.values() for one in pair}.values())
    batches = evaluation_batches(images, batch_size=BATCH_SIZE, device=device)
    with ExitStack() as places:
        for network in networks:
            places.enter_context(_placed(network, device))
        passes = [
            run_pass(network, own, read=network.features, like=network.head.weight)
            for network, own in zip(networks, tee(batches, len(networks)), strict=True)
        ]
        for said in zip(*passes, strict=True):
            features = {id(network): of_it for network, of_it in zip(networks, said, strict=True)}
            for ending, (one, other) in compared.pairs.items():
                streams[ending].update(features[id(one)], features[id(other)])
    return streams


@contextmanager
def _placed(classifier: Classifier, device: str) -> Generator[None]:
    """On ``device`` for a while."""
    place = classifier.head.weight.device
    try:
        classifier.to(device)
        yield
    finally:
        classifier.to(place)
