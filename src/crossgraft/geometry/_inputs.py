"""Images as a network takes them, several times over, and what networks of any kind are asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sized
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Float32, Int, Int64
from torch import Tensor, nn
from torch.nn import functional

from crossgraft.data import Dataset
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, UsageError
from crossgraft.features.passes import Images, collect, run_pass
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.words.formatting import counted

BATCH_SIZE = 64
FEWEST_IMAGES = 4
"""Fewer have no shape: a debiased similarity needs four, too."""
MEMORY_LIMIT_BYTES = 2 << 30
"""Prepared images stay in memory if they take at most this much; otherwise every pass decodes again."""

Network = nn.Module | Backbone
AnyImages = Float[Tensor, "num_images channels height width"] | Dataset
"""Images that are prepared for the network, or a data set, which is prepared as the network wants it."""


@runtime_checkable
class PreparedRows(Sized, Protocol):
    """Images that are read by row, in any order."""

    def prepared(self, rows: Int64[Tensor, " batch"]) -> Float[Tensor, "batch channels height width"]:
        """Images of ``rows`` as the network takes them."""
        ...


class NetworkImages:
    """Images in a fixed order, as ``network`` takes them, as often as they are asked for.

    Args:
        images: Prepared images, or a data set.
        network: Classifier or backbone whose preprocessing a data set needs.
        fewest: Number of images that are enough.

    Raises:
        UsageError: A data set, and a network without preprocessing.
        DataError: There are fewer images, or a number of prepared ones is not finite.
    """

    def __init__(self, images: AnyImages, network: Network, *, fewest: int = FEWEST_IMAGES) -> None:
        self._dataset = images if isinstance(images, Dataset) else None
        self._kept = images if isinstance(images, Tensor) else None
        self._number = len(images)
        if len(images) < fewest:
            raise DataError(f"{counted(len(images), 'image')}: too few, at least {fewest} are needed.")
        if isinstance(images, Tensor):
            if not bool(torch.isfinite(images).all()):
                raise DataError("Images hold NaN or infinite numbers. Repair them, or leave them out.")
            return
        if not isinstance(network, Classifier | Backbone):
            raise UsageError(
                f"A {type(network).__name__} does not say how images become its inputs. Give prepared images as a tensor, or a "
                "classifier or backbone of crossgraft."
            )
        self.preprocessing = network.preprocessing
        p = self.preprocessing
        if len(images) * p.channels * p.height_pixels * p.width_pixels * 4 <= MEMORY_LIMIT_BYTES:
            self._kept = self._decoded(torch.arange(len(images)))

    def __len__(self) -> int:
        return self._number

    def prepared(self, rows: Int64[Tensor, " batch"]) -> Float[Tensor, "batch channels height width"]:
        """Images of ``rows`` as the network takes them."""
        return self._decoded(rows) if self._kept is None else self._kept[rows]

    def batches(self, batch_size: int = BATCH_SIZE) -> Generator[Images]:
        """All images in order; the last batch may be smaller."""
        if batch_size < 1:
            raise UsageError(f"A batch needs at least one image, not {batch_size}.")
        for rows in torch.arange(len(self)).split(batch_size):
            yield self.prepared(rows)

    def _decoded(self, rows: Tensor) -> Float32[Tensor, "batch channels height width"]:
        dataset = self._dataset
        parts = [] if dataset is None else [[dataset.read(int(row)) for row in part] for part in rows.split(BATCH_SIZE)]
        return torch.cat([prepare_batch(part, self.preprocessing) for part in parts])


def module_of(network: Network) -> nn.Module:
    """The module itself."""
    return network.module if isinstance(network, Backbone) else network


def shape_in_words(weights: Mapping[str, Tensor], name: str) -> str:
    """As 3×3, or that there is no such tensor."""
    return "×".join(map(str, weights[name].shape)) or "one number" if name in weights else "missing"


def weight_of(network: nn.Module) -> Tensor | None:
    """A weight, to whose device and type images are brought."""
    if isinstance(network, Classifier):
        return network.head.weight
    return next((weight for weight in network.parameters() if weight.is_floating_point()), None)


def feature_reader(network: Network) -> Callable[[Images], Float[Tensor, "batch num_features"]]:
    """What gives penultimate features of a batch, part of the graph.

    Raises:
        UsageError: The network is a plain module, which does not say where its features are.
    """
    if isinstance(network, Classifier):
        return network.features
    if isinstance(network, Backbone):
        return lambda images: network.read_out(images).features
    raise UsageError(
        f"A {type(network).__name__} does not say where its penultimate features are. Wrap it in a crossgraft.models.Backbone."
    )


def features_of(
    network: Network, images: NetworkImages, *, batch_size: int = BATCH_SIZE
) -> Float[np.ndarray, "num_images num_features"]:
    """Penultimate features of all images in order, in eval mode.

    Raises:
        UsageError: As ``feature_reader``.
        DataError: A feature is NaN or infinite.
    """
    read = feature_reader(network)
    module = module_of(network)
    features = collect(run_pass(module, images.batches(batch_size), read=read, like=weight_of(module))).float().numpy()
    return finite_features(features, "the network")


def finite_features(
    features: Float[np.ndarray, "num_images num_features"], name: str
) -> Float[np.ndarray, "num_images num_features"]:
    """``features``, unless they hold NaN or an infinite number, or are too few.

    Raises:
        DataError: They do; ``name`` says whose they are.
    """
    if len(features) < FEWEST_IMAGES:
        raise DataError(f"Features of {name}: {len(features)} images are too few, {FEWEST_IMAGES} or more are needed.")
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if bad.size:
        raise DataError(
            f"Features of {name} hold NaN or infinite numbers, first for image {bad[0]} ({bad.size} of {len(features)} images). "
            "Check its weights, and images at that row."
        )
    return features


ImageTargets = Int[np.ndarray, " num_images"] | Int[np.ndarray, "num_images num_labels"]
PerImage = Callable[[Float[Tensor, "batch num_classes"], Tensor], Float[Tensor, " batch"]]
"""Loss of each image, from logits and targets."""


def targets_of(images: AnyImages, targets: ImageTargets | None, num_images: int) -> Tensor:
    """Targets that were given, or those of the data set.

    Raises:
        UsageError: There are none.
        DataError: They are as many as other images.
    """
    chosen = images.targets if targets is None and isinstance(images, Dataset) else targets
    if chosen is None:
        raise UsageError("A loss needs the class of each image: targets=.")
    if len(chosen) != num_images:
        raise DataError(f"There are {num_images} images and {len(chosen)} targets; they must match.")
    return torch.from_numpy(np.asarray(chosen))


def usual_loss(targets: Tensor) -> PerImage:
    """Cross-entropy of classes; of labels the binary one, summed over them, as the size of RepSim's Table 2 shows."""
    if targets.ndim == 1:
        return lambda logits, classes: functional.cross_entropy(logits, classes.long(), reduction="none")
    return lambda logits, labels: functional.binary_cross_entropy_with_logits(
        logits, labels.to(logits.dtype), reduction="none"
    ).sum(dim=1)


def finite_loss(loss: float) -> float:
    """``loss``, unless it is NaN or infinite.

    Raises:
        DataError: It is.
    """
    if not math.isfinite(loss):
        raise DataError("The loss is NaN or infinite, so that it says nothing. Check weights and images.")
    return loss
