"""Moments of the pretrained features of a data set, kept on disk: the second run on it does not look at the images again."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from crossgraft.errors import CrossgraftWarning, DataError, StorageError
from crossgraft.features.store import cache_folder
from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import structure_fingerprint, weights_fingerprint
from crossgraft.storage.atomic_file import atomic_file
from crossgraft.storage.temporaries import remove_leftovers
from crossgraft.tune.protocols.regularizer import TrainingSet
from crossgraft.tune.regularizers._covariance import Moments, moments_of_all
from crossgraft.tune.regularizers._reference import features_of_batches, has_trained_adapters, starting_network

FORMAT_VERSION = 1


def starting_moments(classifier: Classifier, training_set: TrainingSet, *, passes: int | None) -> Moments:
    """Moments of the starting network's features of all training images, in float64.

    Args:
        classifier: The start.
        training_set: Training images.
        passes: None: as evaluation shows them, kept on disk; otherwise so many epochs of them as training shows them.

    Raises:
        DataError: The features are not finite, or there are fewer than two images.
        StorageError: What was computed cannot be kept on disk.
    """

    def compute() -> Moments:
        shown = training_set.plain_batches() if passes is None else training_set.training_batches(passes)
        network = starting_network(classifier)
        return moments_of_all(features_of_batches(network, shown, like=classifier.head.weight))

    moments = kept_or_computed(classifier, training_set.fingerprint if passes is None else None, compute)
    if not all(bool(tensor.isfinite().all()) for tensor in moments):
        raise DataError(
            "repsim needs finite features of at least two training images, but those of the pretrained network are not "
            "finite, or there are fewer images. Look for broken images, or choose another model."
        )
    return moments


def kept_or_computed(classifier: Classifier, data: str | None, compute: Callable[[], Moments]) -> Moments:
    """The moments of the features that ``classifier`` gives the images of fingerprint ``data``.

    Args:
        classifier: Its body gives the features.
        data: Fingerprint of the images, their order and their preparation; None: nothing is kept.
        compute: Called where nothing is kept, or what was kept is damaged.

    Warns:
        CrossgraftWarning: What was computed cannot be kept: disk full, no permission …

    Cost: hashing the weights, about 0.1 s for 40 million, and a file of d² float64 numbers.
    """
    if data is None:
        return compute()
    path = _path(classifier, data)
    kept = _read(path, classifier.num_features)
    if kept is None:
        remove_leftovers(path.parent)
        kept = compute()
        tensors = {name: tensor.cpu().contiguous() for name, tensor in kept._asdict().items()}
        try:
            with atomic_file(path) as file:
                file.write(save(tensors, metadata={"sha256": _checksum(tensors)}))
        except StorageError as error:
            text = f"The moments of the pretrained features are computed again by the next training: {error}"
            warnings.warn(text, CrossgraftWarning, stacklevel=2)
    return kept


def _path(classifier: Classifier, data: str) -> Path:
    facts = (
        *(["adapters on"] if has_trained_adapters(classifier) else []),
        FORMAT_VERSION,
        data,
        weights_fingerprint(classifier.body),
        structure_fingerprint(classifier.body, classifier.recipe.architecture),
    )
    key = hashlib.sha256("\x1f".join(map(str, facts)).encode()).hexdigest()
    return cache_folder().with_name("moments") / f"{key}.safetensors"


def _read(path: Path, num_features: int) -> Moments | None:
    """What is kept; None where that is nothing, damaged, or of another network."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            checksum = (file.metadata() or {}).get("sha256")
            tensors = {name: file.get_tensor(name) for name in Moments._fields}
    except (OSError, SafetensorError):
        return None
    shapes = [tuple(tensor.shape) for tensor in tensors.values()]
    is_ours = shapes == [(num_features,), (num_features, num_features)]
    is_ours = is_ours and {tensor.dtype for tensor in tensors.values()} == {torch.float64}
    is_sound = is_ours and checksum == _checksum(tensors) and all(bool(t.isfinite().all()) for t in tensors.values())
    return Moments(**tensors) if is_sound else None


def _checksum(tensors: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in Moments._fields:
        digest.update(f"{tuple(tensors[name].shape)}{tensors[name].dtype}".encode())
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()
