"""How alike features before and after fine-tuning are, on rows that neither was fitted to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import tee
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.features.passes import run_pass
from crossgraft.models.classifier import Classifier
from crossgraft.similarity import StreamingCka
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.logits import BATCH_SIZE


class PretrainedFeatures:
    """Computed once, when they are first asked for or sent to other processes, and kept.

    They come from the same preparation, batches and number type as those that training evaluates, in eval mode and without a
    random number, so a resumed training finds the same bits. What is sent is the features, not the network.

    Args:
        images: Images of the rows.
        load: Gives the pretrained network, which is changed and dropped; None where its weights are not here.
        batch_size: Images at a time.
        device: Where the network is run.
        number_type: Float32, or float64 where training is in it.
    """

    def __init__(
        self,
        images: TrainingImages,
        load: Callable[[], Classifier | None],
        *,
        batch_size: int,
        device: str,
        number_type: torch.dtype,
    ) -> None:
        self._source: tuple[TrainingImages, Callable[[], Classifier | None]] | None = (images, load)
        self._batch_size, self._device, self._number_type = batch_size, device, number_type
        self._features: Tensor | None = None

    def __call__(self) -> Float[Tensor, "num_samples num_features"] | None:
        """One row per image, on the CPU; None where there is no pretrained network."""
        if self._source is not None:
            images, load = self._source
            classifier = load()
            if classifier is not None:
                classifier.to(self._device, self._number_type)
                size, device = self._batch_size, self._device
                self._features = features_of(classifier, images, batch_size=size, device=device)
            self._source = None
        return self._features

    def __getstate__(self) -> dict[str, Any]:
        """For other processes."""
        self()
        return self.__dict__.copy()


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
        compared = {"": (pretrained, tuned), "_adapted": (adapted, tuned), "_untouched": (pretrained, adapted)}
        return {ending: (one, other) for ending, (one, other) in compared.items() if one is not None and other is not None}


def similarity_to_source(compared: Sequence[Compared], dataset: Dataset, *, device: str, num_threads: int) -> dict[str, float]:
    """Linear CKA of penultimate features, in eval mode and without augmentation; with folds the mean over them.

    Returns:
        ``cka`` (biased, of the paper) and ``cka_debiased``, of the fine-tuned network to the pretrained one. Where that has
        BatchNorm, also with the ending ``_adapted``, to the pretrained weights with statistics of the training images; and
        ``_untouched``, of those two to each other: what moving statistics does without any training. Left out where there
        are too few rows or features do not vary, and where there is nothing to compare with.

    Cost: a forward pass an image for each of two or three networks; memory for them and O(d²) numbers, however many rows
    there are.
    """
    by_ending: dict[str, list[tuple[float, float]]] = {}
    undefined: set[str] = set()
    for each in compared:
        images = TrainingImages(dataset.take(each.rows), each.tuned.preprocessing, num_threads=num_threads)
        for ending, stream in _compare(each, images, device).items():
            try:
                by_ending.setdefault(ending, []).append((stream.compute(), stream.compute(debiased=True)))
            except NotApplicable:
                undefined.add(ending)
    means = {ending: np.mean(values, axis=0).tolist() for ending, values in by_ending.items() if ending not in undefined}
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
        for outputs in zip(*passes, strict=True):
            features = {id(network): of_it for network, of_it in zip(networks, outputs, strict=True)}
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
