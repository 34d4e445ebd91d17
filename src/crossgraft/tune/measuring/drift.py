"""How alike features before and after fine-tuning are, on rows that neither was fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import tee
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossgraft.data import Dataset
from crossgraft.errors import CrossgraftError, NotApplicable
from crossgraft.features.extract import seconds_a_row
from crossgraft.features.passes import run_pass
from crossgraft.models.classifier import Classifier
from crossgraft.progress import TypicalClock
from crossgraft.seeding import generator
from crossgraft.similarity import StreamingCka
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.engine.gradient_norms import SMOOTHING, GradientNorms
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.evaluation import FoldPredictions, evaluate_alone, logits_of
from crossgraft.tune.measuring.thresholds import fit_temperature
from crossgraft.tune.parts import BATCH_SIZE, FoldRows
from crossgraft.tune.record import BlockGradientRecord, GradientNormsRecord

SPIKE = 2.0
"""How many times the moving average of the step before a norm must be to count as a spike."""
_MOST_STEPS = 200


def describe_gradient_norms(job: str, norms: GradientNorms) -> GradientNormsRecord:
    """Medians, extremes and spikes of each block, and its moving average in at most 200 steps.

    Args:
        job: Name of the training.
        norms: Norms of all its steps.
    """
    num_steps, averages = len(norms.values), norms.averages
    listed = np.unique(np.linspace(0, num_steps - 1, min(num_steps, _MOST_STEPS)).round().astype(int))
    spikes = (norms.values[1:] > SPIKE * averages[:-1]).sum(axis=0)
    blocks: list[BlockGradientRecord] = []
    for place, block in enumerate(norms.blocks):
        finite = norms.values[np.isfinite(norms.values[:, place]), place]
        blocks.append(
            BlockGradientRecord(
                block=block,
                median=float(np.median(finite)) if len(finite) else None,
                largest=float(finite.max()) if len(finite) else None,
                num_spikes=int(spikes[place]),
                averages=[None if math.isnan(each) else each for each in averages[listed, place].tolist()],
            )
        )
    return GradientNormsRecord(job=job, num_steps=num_steps, smoothing=SMOOTHING, steps=(listed + 1).tolist(), blocks=blocks)


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


_ESTIMATING = 1.5
"""A look of BatchNorm in train mode takes so many of others."""
_PASSES_OVER_TEST = 3
"""Predictions, and features before and after."""


class MeasuringCost(NamedTuple):
    """Expected seconds.

    Attributes:
        look: Time of reading, preparing and looking at one image.
        metrics: Time of all metrics of one network.
    """

    look: float
    metrics: float


def measure_cost(
    classifier: Classifier, dataset: Dataset, parts: FoldRows, *, number: int, device: str, num_threads: int
) -> MeasuringCost:
    """Look at a few images for training and time it; test is neither looked at nor its labels.

    Args:
        classifier: Network of its own, which is moved to the device.
        dataset: Images.
        parts: Rows of train, val and test.
        number: Number of looks that are to come; the more, the more images are timed.
        device: Where the network will run.
        num_threads: Threads that read images.
    """
    look = _seconds_per_look(classifier, dataset, parts.train, number=number, device=device, num_threads=num_threads)
    return MeasuringCost(look, _seconds_of_metrics(dataset, parts, num_outputs=classifier.num_outputs))


def num_looks_after(parts: FoldRows, *, adapts: bool) -> int:
    """How many images are looked at once a network is trained.

    Args:
        parts: Rows of train, val and test.
        adapts: Whether features are also compared with those under BatchNorm statistics of the training images.
    """
    return len(parts.val) + (_PASSES_OVER_TEST + adapts) * len(parts.test)


def num_looks_to_adapt(parts: FoldRows) -> int:
    """How many looks give these statistics, once for all trainings of a fold, and the features of val under them."""
    return round(_ESTIMATING * len(parts.train)) + len(parts.val)


def count_looks(parts: FoldRows, alphas: Sequence[float], *, estimates: bool, adapts: bool) -> int:
    """How many looks at an image it takes to measure the networks between two.

    Args:
        parts: Rows of train, val and test.
        alphas: Places of the networks.
        estimates: Whether statistics of BatchNorm are estimated on the training rows for networks that are no end.
        adapts: As in ``num_looks_after``; those statistics are estimated once.
    """
    estimated = (sum(0 < alpha < 1 for alpha in alphas) if estimates else 0) + adapts
    return len(alphas) * num_looks_after(parts, adapts=adapts) + round(_ESTIMATING * estimated * len(parts.train))


def _seconds_per_look(
    classifier: Classifier, dataset: Dataset, rows: np.ndarray, *, number: int, device: str, num_threads: int
) -> float:
    """Arguments as in ``measure_cost``."""

    def look(first: int) -> object:
        images = TrainingImages(dataset.take(rows[:first]), classifier.preprocessing, num_threads=num_threads)
        return logits_of(classifier, images, device=device)

    return seconds_a_row(look, most=min(len(rows), BATCH_SIZE), num_rows=number) if len(rows) else 0.0


def _seconds_of_metrics(dataset: Dataset, parts: FoldRows, *, num_outputs: int) -> float:
    """From made-up logits and targets of rows for training, as many as there are in val and test."""
    rng = generator(0, "made-up logits")
    val, test = (parts.train[np.arange(len(part)) % len(parts.train)] for part in (parts.val, parts.test))
    of_val, of_test = (rng.standard_normal((len(part), num_outputs), dtype=np.float32) for part in (val, test))
    now = TypicalClock()
    start = now()
    try:
        temperature = fit_temperature(of_val, dataset.targets[val], task=dataset.task) if len(val) else None
        predictions = FoldPredictions(FoldRows(parts.train, val, test), of_val, of_test, temperature, [])
        evaluate_alone(predictions, dataset, task=dataset.task)
    except CrossgraftError:
        return 0.0  # if the metrics cannot be computed, that is said when they are
    return now() - start


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
