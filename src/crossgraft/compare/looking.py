"""One pass over the images for all networks: each image is decoded once, and prepared once for each way of preparing it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor, nn

from crossgraft.compare.networks import ComparedNetwork, Rows
from crossgraft.compare.record import LayerGrid
from crossgraft.data import Dataset
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, NotApplicable, UnknownNameError, UsageError
from crossgraft.features.passes import run_pass
from crossgraft.models.layers import building_blocks, main_layers, observe_layers
from crossgraft.models.positions import find_layout, mean_over_positions
from crossgraft.models.taps import named_layer
from crossgraft.progress import Reporter
from crossgraft.similarity import LayerCka, MinibatchCka
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import counted

MOST_LAYERS = 12
"""Layers of each network that are compared where nobody names any, spread evenly from the first to the last."""


def choose_layers(network: ComparedNetwork, asked: Sequence[str] | None) -> list[str]:
    """Names of the layers that are compared, first to last.

    Args:
        network: The network.
        asked: What the user named; None: building blocks (of a network without any: all layers), at most ``MOST_LAYERS``.

    Raises:
        UnknownNameError: There is no such layer; the message gives the nearest names.
        UsageError: A layer is named twice.

    Cost: a forward pass of one image where nobody names any.
    """
    if asked:
        for name in asked:
            _refuse_unknown(network, name)
        if len(set(asked)) != len(asked):
            raise UsageError(f"Name each layer once; got {', '.join(asked)}.")
        return list(asked)
    with observe_layers(network.body) as gives_tensor:
        next(run_pass(network.module, [network.probe()], read=network.run, like=network.weight))
    gives_tensor.discard(network.head or "")
    layers = [name for name in building_blocks(network.body) if name in gives_tensor]
    layers = layers if len(layers) > 1 else list(main_layers(network.body, gives_tensor))
    return spread(layers, MOST_LAYERS)


def spread(names: Sequence[str], most: int) -> list[str]:
    """At most ``most`` of them, evenly from the first to the last."""
    if len(names) <= most:
        return list(names)
    return [names[round(place * (len(names) - 1) / (most - 1))] for place in range(most)]


def map_shapes(network: ComparedNetwork, layers: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Channels, height and width of what each layer gives.

    Cost: a forward pass of one image.
    """
    [(_, maps)] = run_pass(network.module, [network.probe()], read=network.reader(list(layers)), like=network.weight)
    shapes: dict[str, tuple[int, int, int]] = {}
    for name, output in maps.items():
        channels, height, width = (int(size) for size in as_maps(output, network.body).shape[1:])
        shapes[name] = channels, height, width
    return shapes


def as_maps(output: Tensor, body: nn.Module) -> Float[Tensor, "num_images channels height width"]:
    """What a layer gives, channels first: maps as they are, tokens in one column (class and register tokens left out)."""
    layout = find_layout(body, output.shape)
    if output.ndim == 2:
        return output[:, :, None, None]
    if output.ndim == 3:
        tokens = output if layout.channel_axis == 2 else output.transpose(1, 2)
        return tokens[:, layout.num_prefix_tokens :].transpose(1, 2)[..., None]
    return output if layout.channel_axis == 1 else output.movedim(layout.channel_axis, 1)


def pooled(output: Tensor, body: nn.Module, pool: str) -> Float[Tensor, "num_images num_features"]:
    """One row per image: the mean over positions, or all channels of all positions."""
    if pool == "flatten":
        return output.flatten(1)
    return mean_over_positions(output, find_layout(body, output.shape))


def _refuse_unknown(network: ComparedNetwork, name: str) -> None:
    try:
        named_layer(network.body, name)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"layer of {network.name}", name, [known for known, _ in network.body.named_modules() if known]
        ) from error


MOST_BYTES = 512 * 2**20
"""Memory of the exact sums of one pair of models, at most."""
MINIBATCH = 128
"""Images of a minibatch; features of so many are kept until it is full."""

Layers = Mapping[str, np.ndarray | Tensor]


class LayerPairs:
    """Gets what the layers of two models gave, batch by batch.

    Args:
        most_bytes: Memory of the exact sums, at most.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._exact: LayerCka | None = None
        self._means: MinibatchCka | None = None
        self._waiting: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = []
        self._bytes = 0

    def update(self, layers: Layers, others: Layers) -> None:
        """Add a batch of the same images.

        Raises:
            DataError: As of ``LayerCka``.
        """
        first, second = ({name: np.asarray(rows) for name, rows in side.items()} for side in (layers, others))
        if self._exact is None and self._means is None:
            self._bytes = LayerCka.needs_bytes(*([rows.shape[1] for rows in side.values()] for side in (first, second)))
            if self._bytes <= self._most_bytes:
                self._exact = LayerCka()
            else:
                self._means = MinibatchCka()
        if self._exact is not None:
            self._exact.update(first, second)
            return
        self._waiting.append((first, second))
        if sum(len(next(iter(side.values()))) for side, _ in self._waiting) >= MINIBATCH:
            self._flush()

    def grid(self) -> LayerGrid:
        """CKA of all pairs, debiased: biased values of few images would be high for any layers.

        Raises:
            NotApplicable: There are fewer than four images.
        """
        if self._exact is not None:
            similarity, notes = self._exact.compute(debiased=True), list[str]()
        else:
            self._flush()
            if self._means is None:
                raise NotApplicable("CKA of layers needs at least 4 images, found 0.")
            similarity = self._means.compute()
            notes = [
                f"From {counted(self._means.num_batches, 'minibatch', 'minibatches')}: exact sums would take "
                f"{self._bytes / 2**30:.1f} GiB, more than {self._most_bytes / 2**30:.1f}."
            ]
        return LayerGrid(
            rows=list(similarity.rows),
            columns=list(similarity.columns),
            values=similarity.matrix.tolist(),
            estimator=similarity.estimator,
            num_images=similarity.n,
            left_out_rows=dict(similarity.left_out_rows),
            left_out_columns=dict(similarity.left_out_columns),
            notes=[*notes, *similarity.warnings],
        )

    def _flush(self) -> None:
        if not self._waiting or self._means is None:
            return
        joined = [
            {name: np.concatenate([batch[side][name] for batch in self._waiting]) for name in self._waiting[0][side]}
            for side in (0, 1)
        ]
        self._waiting.clear()
        self._means.update(*joined)


MEMORY_LIMIT_BYTES = 2 << 30
"""Prepared images are kept if they take at most this much; otherwise those who need them decode them again."""


class KeptImages:
    """Images of one pass, as several networks take them.

    Args:
        images: All images.
        rows: Those of the pass, in its order.
        ways: Preprocessing of the networks that will look at them again.
    """

    def __init__(self, images: Dataset, rows: Int[np.ndarray, " num_rows"], ways: Iterable[Preprocessing]) -> None:
        self._images, self._rows = images, rows
        asked = frozenset(ways)
        size = sum(each.channels * each.height_pixels * each.width_pixels * 4 for each in asked)
        self.ways = asked if size * len(rows) <= MEMORY_LIMIT_BYTES else frozenset[Preprocessing]()
        self._parts: dict[Preprocessing, list[Tensor]] = {each: [] for each in self.ways}

    def take(self, inputs: Mapping[Preprocessing, Float[Tensor, "batch channels height width"]]) -> None:
        """Keep the next batch of the pass."""
        for way, parts in self._parts.items():
            parts.append(inputs[way])

    def of(self, way: Preprocessing) -> Float[Tensor, "num_rows channels height width"] | Dataset:
        """The images as a network takes them; the data themselves where they were not kept."""
        parts = self._parts.get(way)
        return torch.cat(parts) if parts else self._images.take(self._rows)


AT_ONCE = 32
"""Images that are decoded and prepared together."""
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
        for start in range(0, len(rows), AT_ONCE):
            places: Rows = np.arange(start, min(start + AT_ONCE, len(rows)))
            decoded = [images.read(int(rows[place])) for place in places]
            ways = {network.preprocessing for network in networks.values()} | (kept.ways if kept else frozenset())
            inputs = {preprocessing: prepare_batch(decoded, preprocessing) for preprocessing in ways}
            if kept is not None:
                kept.take(inputs)
            given: dict[str, dict[str, Tensor]] = {}
            for key, network in networks.items():
                batch = inputs[network.preprocessing]
                [(output, maps)] = run_pass(network.module, [batch], read=readers[key], like=network.weight)
                features = output.features.float().cpu().numpy()
                _refuse_not_finite(network, features, places, rows)
                parts[key].features.append(features)
                if output.source_logits is not None:
                    parts[key].logits.append(output.source_logits.float().cpu().numpy())
                if watch is not None:
                    given[key] = _of_layers(key, network, maps, places, watch)
            if watch is not None:
                watch.say(places, given)
            stage.advance(len(places))
    return {
        key: Looked(np.concatenate(each.features), np.concatenate(each.logits) if each.logits else None)
        for key, each in parts.items()
    }


def _of_layers(key: str, network: ComparedNetwork, maps: Mapping[str, Tensor], places: Rows, watch: Watch) -> dict[str, Tensor]:
    given: dict[str, Tensor] = {}
    for name, output in maps.items():
        if watch.on_maps is not None:
            watch.on_maps(key, name, places, as_maps(output, network.body))
        if watch.on_batch is not None:
            given[name] = pooled(output, network.body, watch.pool).float().cpu()
    return given


def _refuse_not_finite(network: ComparedNetwork, features: np.ndarray, places: Rows, rows: Sequence[int] | Rows) -> None:
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise DataError(
            f"{network.name} gives NaN or infinite features for row {int(rows[int(places[bad[0]])])}. Check this image, the "
            "weights and the preprocessing of the model."
        )
