"""Features that never change are computed once; then only the head is trained.

Used where the method freezes everything but the head and nothing varies the images, and for the head's own phase of
``--head-first``, which therefore sees images as they are: neither augmented nor mixed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from crossgraft.compute import is_out_of_memory, return_cached_memory, sent
from crossgraft.errors import CrossgraftWarning, OutOfMemoryError
from crossgraft.features.passes import collect, run_pass
from crossgraft.models.classifier import Classifier, ClassifierOutput
from crossgraft.tune.engine.contract import Feed
from crossgraft.tune.engine.step import dropped
from crossgraft.tune.feed.batches import BatchMaker, evaluation_batches
from crossgraft.tune.feed.images import TrainingImages


@dataclass(frozen=True)
class FeatureBatch:
    """A batch whose images are features already: (b, d, 1, 1)."""

    rows: Int64[Tensor, " batch"]
    images: Float[Tensor, "batch num_features 1 1"]
    targets: Float[Tensor, "batch num_classes"]
    domains: Int64[Tensor, " batch"] | None = None


class FeatureFeed:
    """The batches of ``feed`` with features in the place of images."""

    def __init__(self, feed: BatchMaker, features: Float[Tensor, "num_samples num_features"]) -> None:
        self._feed = feed
        self._features = sent(features, feed.device)

    @property
    def steps_per_epoch(self) -> int:
        """As of the feed."""
        return self._feed.steps_per_epoch

    def batches(self, epoch: int, *, start: int = 0) -> Iterator[FeatureBatch]:
        """The batches of ``epoch`` from number ``start`` on."""
        for rows in self._feed.plan.epoch(epoch)[start:]:
            features = self._features.index_select(0, sent(rows, self._feed.device))
            domains = None if self._feed.plan.domains is None else self._feed.plan.domains[rows]
            yield FeatureBatch(rows, features[:, :, None, None], self._feed.targets[rows], domains)


class HeadOnly(nn.Module):
    """A network that takes features (b, d, 1, 1) for images, as a ``FeatureFeed`` gives them."""

    def __init__(self, classifier: Classifier, dropout: float = 0.0) -> None:
        super().__init__()
        self.head, self.dropout = classifier.head, dropout

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Features (b, d) and logits (b, C)."""
        features = images.flatten(1)
        return features, self.head(dropped(features, self.dropout))


def shows_plain_images(feed: Feed) -> bool:
    """Whether every epoch shows the same images with the same targets."""
    return isinstance(feed, BatchMaker) and feed.is_plain


_Found = TypeVar("_Found")


def in_batches_that_fit(look: Callable[[int], _Found], batch_size: int) -> _Found:
    """What ``look`` gives for batches of ``batch_size`` images, or of half as many while memory runs out.

    Raises:
        OutOfMemoryError: A single image does not fit.

    Warns:
        CrossgraftWarning: Batches were made smaller.
    """
    while True:
        try:
            return look(batch_size)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if batch_size == 1:
                raise OutOfMemoryError(
                    "There is not enough memory to look at a single image between two epochs. Close other programs, or choose a "
                    "smaller --batch-size for training, a smaller --image-size or another --device."
                ) from error
        return_cached_memory()
        batch_size //= 2
        warnings.warn(f"Out of memory; looking at batches of {batch_size} images.", CrossgraftWarning, stacklevel=2)


def features_of(
    classifier: Classifier, images: TrainingImages, *, batch_size: int, device: str
) -> Float[Tensor, "num_samples num_features"]:
    """Penultimate features of all rows in order, on the CPU; the network runs in eval mode and keeps its modes.

    Batches of another size may round the last bit differently; they are smaller where ``batch_size`` images do not fit.
    """

    def look(size: int) -> Tensor:
        batches = evaluation_batches(images, batch_size=size, device=device)
        return collect(run_pass(classifier, batches, read=classifier.features, like=classifier.head.weight))

    return in_batches_that_fit(look, batch_size)


class EvaluationLogits:
    """Logits of a fixed list of images, again and again while the network is trained."""

    def __init__(self, images: TrainingImages, *, batch_size: int, device: str = "cpu") -> None:
        self._images = images
        self._batch_size = batch_size
        self._device = device
        self._keep = False
        self._features: Tensor | None = None

    def keep_features(self, keep: bool) -> None:
        """From now on features are the same in every call (or no longer); the trainer says so."""
        self._keep = keep
        self._features = None

    def __call__(self, classifier: Classifier) -> Float[Tensor, "num_samples num_classes"]:
        """Logits of all rows in order, on the CPU."""
        return self.features_and_logits(classifier).logits

    def features_and_logits(self, classifier: Classifier) -> ClassifierOutput:
        """Both of all rows in order, from one pass, on the CPU."""
        features = self._features
        if features is None:
            features = features_of(classifier, self._images, batch_size=self._batch_size, device=self._device)
        if self._keep:
            self._features = features
        with torch.inference_mode():
            parts = features.split(self._batch_size)
            logits = torch.cat([classifier.head(part.to(classifier.head.weight.device)).cpu() for part in parts])
        return ClassifierOutput(features, logits)
