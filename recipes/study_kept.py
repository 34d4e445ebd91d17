"""What keeping features is for, measured after each training of a study: forgetting, and robustness to changed images."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image
from scipy import ndimage

from crossgraft.data import Dataset, open_dataset
from crossgraft.data.dataset import dataset_from_arrays
from crossgraft.geometry.forgetting import probe_is_right
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.seeding import generator
from crossgraft.tune.engine.cached_features import features_of
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.parts import compute_logits

QUIET = Reporter(quiet=True)
BATCH = 64

Pixels = np.ndarray
"""(height, width) or (height, width, 3) uint8."""


def noise(image: Pixels, draws: np.random.Generator) -> Pixels:
    """Gaussian noise, a tenth of the full range."""
    return _in_range(image + draws.normal(0, 25.5, image.shape))


def blur(image: Pixels, draws: np.random.Generator) -> Pixels:
    """Gaussian, one pixel of the image as it is stored."""
    return _in_range(ndimage.gaussian_filter(image.astype(float), (1, 1, *(0,) * (image.ndim - 2))))


def contrast(image: Pixels, draws: np.random.Generator) -> Pixels:
    """Half the distance of each pixel from the mean."""
    return _in_range(image.mean() + 0.5 * (image - image.mean()))


def brightness(image: Pixels, draws: np.random.Generator) -> Pixels:
    """A fifth of the full range brighter."""
    return _in_range(image + 51.0)


def jpeg(image: Pixels, draws: np.random.Generator) -> Pixels:
    """Quality 10."""
    stored = io.BytesIO()
    Image.fromarray(image).save(stored, "JPEG", quality=10)
    return np.asarray(Image.open(stored))


CORRUPTIONS: Mapping[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    "noise": noise, "blur": blur, "contrast": contrast, "brightness": brightness, "jpeg": jpeg,
}  # fmt: skip


def _in_range(values: np.ndarray) -> Pixels:
    return values.round().clip(0, 255).astype(np.uint8)


class ChangedImages:
    """The test images of a set as they are, and corrupted; what is drawn depends on the set and the kind alone.

    Args:
        test: In 8 bits.
    """

    def __init__(self, test: Dataset) -> None:
        self._test = test
        self._corrupted = {kind: self._changed(kind) for kind in CORRUPTIONS}

    def _changed(self, kind: str) -> Dataset:
        test, draws = self._test, generator(0, "corruption", kind, self._test.name)
        images = [CORRUPTIONS[kind](_eight_bits(test.read(row)), draws) for row in range(len(test))]
        return dataset_from_arrays(images, test.targets, class_names=test.class_names, name=test.name)

    def accuracy(self, classifier: Classifier) -> float:
        """Of the most probable class, on the images as they are."""
        return self._accuracy_on(classifier, self._test)

    def corrupted_accuracy(self, classifier: Classifier) -> float:
        """The same on corrupted ones, mean over the kinds."""
        return float(np.mean([self._accuracy_on(classifier, changed) for changed in self._corrupted.values()]))

    def _accuracy_on(self, classifier: Classifier, images: Dataset) -> float:
        logits = compute_logits(classifier, images, batch_size=BATCH, reporter=QUIET)
        return float((logits.argmax(axis=1) == self._test.targets).mean())


def _eight_bits(image: Pixels) -> Pixels:
    image = image[..., 0] if image.ndim == 3 and image.shape[-1] == 1 else image
    if image.dtype != np.uint8:
        raise TypeError(f"only images of 8 bits are corrupted, found {image.dtype}")
    return image


class Probe:
    """A linear probe on other images, as ``crossgraft.geometry.forgetting`` fits it.

    Args:
        train: Fits it.
        test: Measures it.
    """

    def __init__(self, train: Dataset, test: Dataset) -> None:
        self._train, self._test = train, test

    def accuracy(self, classifier: Classifier) -> float:
        """On the test images, with features of this body."""
        features = [
            features_of(classifier, TrainingImages(part, classifier.preprocessing), batch_size=BATCH, device="cpu")
            for part in (self._train, self._test)
        ]
        fit, seen = (part.numpy() for part in features)
        return float(probe_is_right(fit, seen, self._train.targets, self._test.targets).mean())


@cache
def probe_on(file: Path, num_train: int, num_test: int) -> Probe:
    """On the parts of a set; of a large one, as many rows of each as are asked for, drawn once."""
    return Probe(part_of(file, "train", num_train), part_of(file, "test", num_test))


@cache
def changed_images(file: Path) -> ChangedImages:
    """Of the test part of a set."""
    return ChangedImages(part_of(file, "test", None))


def part_of(file: Path, name: str, most: int | None) -> Dataset:
    """Rows of one part, in their order."""
    dataset = open_dataset(file, use_split=None, default_split=True, reporter=QUIET)
    rows = np.flatnonzero(np.asarray(dataset.splits) == name)
    return dataset.take(np.sort(generator(0, "probe", dataset.name, name).permutation(rows)[:most]))
