"""One pass over the images for all networks: each image is decoded once, and prepared once for each way of preparing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Int
from torch import Tensor

from crossgraft.compare.kept_images import KeptImages
from crossgraft.compare.layer_choice import as_maps, pooled
from crossgraft.compare.networks import ComparedNetwork
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError
from crossgraft.features.passes import run_pass
from crossgraft.progress import Reporter

AT_ONCE = 32
"""Images that are decoded and prepared together."""
Rows = Int[np.ndarray, " _"]
OnBatch = Callable[[Rows, Mapping[str, Mapping[str, Tensor]]], object]
"""Gets the places of the images of a batch, and by network what each layer gave, pooled to one row per image."""


@dataclass(eq=False)
class Looked:
    """What one network said about all images.

    Attributes:
        features: Penultimate features (n, d).
        logits: (n, C); None without a head.
    """

    features: Float32[np.ndarray, "num_images num_features"]
    logits: Float32[np.ndarray, "num_images num_outputs"] | None = None


@dataclass(frozen=True, eq=False)
class Watch:
    """What is taken from layers on the way.

    Attributes:
        layers: By network, the names of its layers.
        pool: ``mean`` or ``flatten``.
        on_batch: Gets the pooled outputs.
        on_maps: Gets network, layer, the places of the images, and maps (b, c, h, w).
        kept: Where prepared images stay, for measures that look at them again.
    """

    layers: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    pool: str = "mean"
    on_batch: OnBatch | None = None
    on_maps: Callable[[str, str, Rows, Tensor], object] | None = None
    kept: KeptImages | None = None

    def say(self, places: Rows, given: Mapping[str, Mapping[str, Tensor]]) -> None:
        """Tell ``on_batch``, if anybody listens."""
        if self.on_batch is not None:
            self.on_batch(places, given)


@dataclass(eq=False)
class _Parts:
    features: list[np.ndarray] = field(default_factory=list[np.ndarray])
    logits: list[np.ndarray] = field(default_factory=list[np.ndarray])


def look_at(
    networks: Mapping[str, ComparedNetwork],
    images: ImageRows,
    rows: Sequence[int] | Rows,
    *,
    watch: Watch | None = None,
    reporter: Reporter,
    title: str,
) -> dict[str, Looked]:
    """Run all networks over the same images.

    Args:
        networks: By a key of the caller's.
        images: Images.
        rows: Their rows, in the order that counts.
        watch: Layers that are looked at, and who gets what they give.
        reporter: Reporter of progress.
        title: Title of the progress line.

    Raises:
        DataError: A network gives NaN or infinite features; the message names it and the first row.
        UsageError, UnknownNameError: As of layer taps.

    Cost: one decoding of each image, and a forward pass of each network per image.
    """
    layers = {key: (watch.layers.get(key, []) if watch else []) for key in networks}
    readers = {key: network.reader(layers[key]) for key, network in networks.items()}
    parts = {key: _Parts() for key in networks}
    kept = watch.kept if watch else None
    with reporter.stage(title, total=len(rows), unit="images") as stage:
        for places in _batches(len(rows)):
            decoded = [images.read(int(rows[place])) for place in places]
            ways = {network.preprocessing for network in networks.values()} | (kept.ways if kept else frozenset())
            inputs = {preprocessing: prepare_batch(decoded, preprocessing) for preprocessing in ways}
            if kept is not None:
                kept.take(inputs)
            given: dict[str, dict[str, Tensor]] = {}
            for key, network in networks.items():
                batch = inputs[network.preprocessing]
                [(output, found)] = run_pass(network.module, [batch], read=readers[key], like=network.weight)
                features = output.features.float().cpu().numpy()
                _refuse_not_finite(network, features, places, rows)
                parts[key].features.append(features)
                if output.source_logits is not None:
                    parts[key].logits.append(output.source_logits.float().cpu().numpy())
                if watch is not None:
                    given[key] = _of_layers(key, network, found, places, watch)
            if watch is not None:
                watch.say(places, given)
            stage.advance(len(places))
    return {
        key: Looked(np.concatenate(each.features), np.concatenate(each.logits) if each.logits else None)
        for key, each in parts.items()
    }


def _batches(num_images: int) -> Iterator[Rows]:
    for start in range(0, num_images, AT_ONCE):
        yield np.arange(start, min(start + AT_ONCE, num_images))


def _of_layers(
    key: str, network: ComparedNetwork, found: Mapping[str, Tensor], places: Rows, watch: Watch
) -> dict[str, Tensor]:
    given: dict[str, Tensor] = {}
    for name, output in found.items():
        if watch.on_maps is not None:
            watch.on_maps(key, name, places, as_maps(output, network.body))
        if watch.on_batch is not None:
            given[name] = pooled(output, network.body, watch.pool).float().cpu()
    return given


def _refuse_not_finite(
    network: ComparedNetwork, features: np.ndarray, places: Rows, rows: Sequence[int] | Rows
) -> None:
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise DataError(
            f"{network.name} gives NaN or infinite features for row {int(rows[int(places[bad[0]])])}. Check this image, the "
            "weights and the preprocessing of the model."
        )
