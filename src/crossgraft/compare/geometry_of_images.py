"""Geometry of what the compared models see: one plane of features, one class of them, attention, and other images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from crossgraft.compare import OtherImages
from crossgraft.compare.geometry_subjects import Later, Say, SeenImages, Subjects
from crossgraft.compare.looking import look_at, spread
from crossgraft.compare.networks import ComparedNetwork
from crossgraft.compare.options import CompareModelsOptions
from crossgraft.compare.record import LayerCca
from crossgraft.data import Dataset
from crossgraft.data.given_images import open_images
from crossgraft.data.opening import open_divided
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.geometry import AttentionMaps, TsneMap, attention_map, feature_map, forgetting_of_features, tsne_maps
from crossgraft.geometry.attention_map import attention_layers, attention_record
from crossgraft.geometry.feature_map import FEWEST_POINTS, feature_map_record, tsne_row
from crossgraft.geometry.record import AttentionRecord, FeatureMapRecord, ForgettingRecord, TsneRecord
from crossgraft.options._option import from_mapping, options_of
from crossgraft.options.data import DatasetOptions, ImageOptions
from crossgraft.progress import Reporter
from crossgraft.similarity import Similarity
from crossgraft.similarity.cca import POSITIONS, Draw, channels_last, draws_of, thesis_mean
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import counted

MOST_LAYERS = 5
"""Layers of a network that are drawn from, as the thesis has them, spread evenly from the first to the last."""

Shape = tuple[int, int, int]


class MapDraws:
    """Keeps the drawn positions and channels of a few layers of each network; layers correspond by their place.

    Args:
        shapes: By network, its layers in order with channels, height and width of their maps; networks with another number of
            layers cannot be compared with each other.
        num_images: Images of the whole pass.
        preset: ``thesis`` or ``released``.
        seed: Random seed.

    Memory: 25 MB per layer and network, at most.
    """

    def __init__(self, shapes: Mapping[str, Mapping[str, Shape]], num_images: int, *, preset: str, seed: int) -> None:
        self._layers = {key: spread(list(layers), MOST_LAYERS) for key, layers in shapes.items()}
        self._preset, self._seed = preset, seed
        places = [(key, place) for key, names in self._layers.items() for place in range(len(names))]
        self._shapes = {(key, place): shapes[key][self._layers[key][place]] for key, place in places}
        self._draws = {where: self._drawn(where, num_images) for where in places}
        self._rows: dict[tuple[str, int], list[list[np.ndarray]]] = {
            where: [[] for _ in draws] for where, draws in self._draws.items()
        }

    def _drawn(self, where: tuple[str, int], num_images: int) -> list[Draw]:
        """The same for all networks with maps of this size at this place: of the channels that all of them have."""
        key, place = where
        _, height, width = self._shapes[where]
        alike = [
            shape[0]
            for (other, its_place), shape in self._shapes.items()
            if its_place == place and len(self._layers[other]) == len(self._layers[key]) and shape[1:] == (height, width)
        ]
        shape = min(alike), height, width
        return draws_of(num_images, shape, shape, preset=self._preset, seed=self._seed, layer=f"{place}")

    def take(self, key: str, layer: str, places: np.ndarray, maps: Tensor) -> None:
        """What a layer gave for the images at ``places``: (b, c, h, w)."""
        if layer not in self._layers.get(key, ()):
            return
        where = key, self._layers[key].index(layer)
        for draw, rows in zip(self._draws[where], self._rows[where], strict=True):
            here = np.flatnonzero(np.isin(places, draw.images))
            if len(here):
                rows.append(channels_last(maps[here.tolist()][:, draw.channels.tolist()].float().cpu().numpy()))

    def values(self, first: str, second: str, untrained: tuple[str, str] | None) -> list[LayerCca]:
        """CCA of each layer of one network with the layer of the other at the same place.

        Raises:
            NotApplicable: The networks have another number of layers, so that none corresponds.
        """
        names = self._layers[first], self._layers[second]
        if len(names[0]) != len(names[1]):
            raise NotApplicable(
                f"Layers correspond by their place, and {len(names[0])} of one model and {len(names[1])} of the other are "
                "compared."
            )
        return [
            self._value(first, second, number, names[0][number], names[1][number], untrained) for number in range(len(names[0]))
        ]

    def _value(self, first: str, second: str, number: int, layer: str, other: str, untrained: tuple[str, str] | None) -> LayerCca:
        cca, reason = self._computed(first, second, number)
        floor = None if untrained is None else self._computed(*untrained, number)[0]
        return LayerCca(
            layer=layer,
            other_layer=other,
            value=None if cca is None else float(cca),
            spread=None if cca is None else cca.parts["spread_of_draws"],
            untrained=None if floor is None else float(floor),
            positions=0 if cca is None else int(cca.parts["positions"]),
            positions_asked_for=POSITIONS[self._preset],
            channels=0 if cca is None else int(cca.parts["channels"]),
            reason=reason,
        )

    def _computed(self, first: str, second: str, number: int) -> tuple[Similarity | None, str | None]:
        shapes = self._shapes[first, number], self._shapes[second, number]
        if shapes[0][1:] != shapes[1][1:]:
            sizes = [f"{height} × {width}" for _, height, width in shapes]
            return None, f"maps of {sizes[0]} and {sizes[1]} have no positions in common"
        one, other = (self._rows[key, number] for key in (first, second))
        pairs = [(np.concatenate(rows), np.concatenate(others)) for rows, others in zip(one, other, strict=True)]
        try:
            return thesis_mean(pairs, preset=self._preset, seed=self._seed), None
        except NotApplicable as error:
            return None, str(error)


_OF_ANY_DATA = ("allow_outside", "window", "slices", "allow_download", "skip_unreadable", "holdout", "seed")
"""Options that say how any data are read; columns and class names are those of one data set."""


def open_others(options: CompareModelsOptions, reporter: Reporter) -> OtherImages:
    """What ``probe`` and ``source_images`` name; nothing where neither is given.

    Raises:
        DataError: Data are missing, damaged or unsound.
        UsageError: An option has no meaning for these data.
    """
    source: ImageRows | None = None
    if options.source_images is not None:
        how = {name: getattr(options, name) for name in {*_OF_ANY_DATA} & {*options_of(ImageOptions)}}
        source = open_images(options.source_images, from_mapping(ImageOptions, how), reporter)
    if options.probe is None:
        return OtherImages(source=source)
    named = () if isinstance(options.probe, Dataset) else _OF_ANY_DATA
    how = {name: getattr(options, name) for name in {*named, "seed"} & {*options_of(DatasetOptions)}}
    other = open_divided(options.probe, from_mapping(DatasetOptions, how), use_split=None, reporter=reporter)
    splits = np.full(len(other), "train") if other.splits is None else other.splits
    return OtherImages(other, np.flatnonzero(splits == "train"), np.flatnonzero(splits == "test"), source)


MOST_DRAWN = 4
"""Images whose attention is drawn, evenly spread over all."""
MOST_IN_TSNE = 1000
MOST_OF_SOURCE = 256
_AT_ONCE = 32


def common_plane(subjects: Subjects, say: Say) -> Later:
    """Features of all models of the width of the reference in one plane; where nobody shares it, of another width."""

    def measure(seen: SeenImages) -> FeatureMapRecord:
        widths = {label: seen.features[label].shape[1] for label in subjects.models}
        width = next((each for each in widths.values() if [*widths.values()].count(each) > 1 and each > 1), None)
        if width is None:
            in_words = ", ".join(f"{label} has {each}" for label, each in widths.items())
            raise NotApplicable(f"a common plane needs features of one width, and {in_words}")
        for label, other in widths.items():
            if other != width:
                say(f"{label} is not in the plane: it has {other} features, and the plane is one of {width}.")
        features = {label: seen.features[label] for label, each in widths.items() if each == width}
        plane = feature_map(features, reference=subjects.reference(list(features)))
        return feature_map_record(plane, images=subjects.in_words)

    return Later(measure)


def inside_one_class(subjects: Subjects, say: Say) -> Later:
    """t-SNE of the images of the commonest class.

    Raises:
        NotApplicable: There are no classes, or no class has images enough.
    """
    images = subjects.images
    if images is None or not images.task.partitions:
        raise NotApplicable("t-SNE shows one class, and these images have none or several each")
    targets = images.targets[subjects.rows]
    counts = np.bincount(targets, minlength=len(images.class_names))
    common = int(counts.argmax())
    name, most = images.class_names[common], int(counts[common])
    if most < FEWEST_POINTS:
        raise NotApplicable(f"t-SNE needs {FEWEST_POINTS} images of one class, and the commonest, {name}, has {most}")
    places = _spread(np.flatnonzero(targets == common), MOST_IN_TSNE)
    if len(places) < most:
        say(f"{len(places)} of {most} images of {name} are drawn, evenly spread over all.")

    def measure(seen: SeenImages) -> TsneRecord:
        wide = {label: seen.features[label][places] for label in subjects.models if seen.features[label].shape[1] > 1}
        if not wide:
            raise NotApplicable("the features are single numbers, which no map is needed for")
        maps: dict[str, TsneMap] = {}
        with subjects.reporter.stage("Drawing one class", total=len(wide), unit="models") as stage:
            for label, features in wide.items():
                maps |= tsne_maps({label: features}, seed=subjects.seed)
                stage.advance()
        return TsneRecord(
            class_name=name,
            num_images=len(places),
            perplexity=next(iter(maps.values())).perplexity,
            seed=subjects.seed,
            networks=[tsne_row(label, each) for label, each in maps.items()],
        )

    return Later(measure)


def attention(subjects: Subjects, say: Say) -> Later:
    """Attention of the vision transformers among the models.

    Raises:
        NotApplicable: None is one.
    """
    transformers = {label: each for label, each in subjects.networks.items() if _looks_by_attention(each)}
    if not transformers or subjects.images is None:
        raise NotApplicable("none of the models is a vision transformer with queries, keys and values")
    for label in subjects.models:
        if label not in transformers:
            say(f"Not measured: {label} is no vision transformer.")

    def measure(seen: SeenImages) -> AttentionRecord:
        kept = seen.kept
        if kept is None:
            raise NotApplicable("there are no images")
        inputs = {way: kept.of(way) for way in {each.preprocessing for each in transformers.values()}}
        return _attention(subjects, transformers, inputs, subjects.in_words, say)

    return Later(measure, frozenset(each.preprocessing for each in transformers.values()))


def attention_to_source(subjects: Subjects, say: Say) -> Later:
    """The same for images of the source.

    Raises:
        NotApplicable: None of the models is a vision transformer.
    """
    source = subjects.others.source
    if source is None:
        raise NotApplicable("there are no images of the source")
    attention(subjects, lambda _: None)

    def measure(_: SeenImages) -> AttentionRecord:
        networks = {label: each for label, each in subjects.networks.items() if _looks_by_attention(each)}
        rows = _spread(source.readable_rows, MOST_OF_SOURCE)
        ways = {each.preprocessing for each in networks.values()}
        some = f"{len(rows)} of " if len(rows) < len(source.readable_rows) else ""
        words = f"{some}{counted(len(source.readable_rows), 'image')} of the source"
        return _attention(subjects, networks, _prepared(source, rows, ways), words, say)

    return Later(measure)


def _looks_by_attention(network: ComparedNetwork) -> bool:
    try:
        attention_layers(network.module)
    except UsageError:
        return False
    return True


def _attention(
    subjects: Subjects,
    networks: Mapping[str, ComparedNetwork],
    inputs: Mapping[Preprocessing, Tensor | Dataset],
    words: str,
    say: Say,
) -> AttentionRecord:
    maps: dict[str, AttentionMaps] = {}
    with subjects.reporter.stage("Mapping attention", total=len(networks), unit="networks") as stage:
        for label, network in networks.items():
            try:
                maps[label] = attention_map(network.measured, inputs[network.preprocessing])
            except NotApplicable as error:
                say(f"{label}: {error.reason}.")
            stage.advance()
    if not maps:
        raise NotApplicable("attention of these networks is of another kind than softmax over all tokens")
    reference = subjects.reference(list(maps))
    shape = maps[reference].attention.shape
    for label, each in [*maps.items()]:
        if each.attention.shape != shape:
            say(f"{label} has another grid of patches than {reference}, so their maps are not compared.")
            del maps[label]
    return attention_record(maps, reference=reference, images=words, drawn=_spread(np.arange(shape[0]), MOST_DRAWN).tolist())


def _prepared(images: ImageRows, rows: np.ndarray, ways: set[Preprocessing]) -> dict[Preprocessing, Tensor]:
    """Each image is decoded once."""
    parts: dict[Preprocessing, list[Tensor]] = {way: [] for way in ways}
    for start in range(0, len(rows), _AT_ONCE):
        decoded = [images.read(int(row)) for row in rows[start : start + _AT_ONCE]]
        for way, several in parts.items():
            several.append(prepare_batch(decoded, way))
    return {way: torch.cat(several) for way, several in parts.items()}


def what_was_forgotten(subjects: Subjects) -> ForgettingRecord | None:
    """Linear probes of all networks on other images; None where there are none.

    Raises:
        UsageError: No model is a network, or an image has several labels.
        DataError: There are no training or test images, or only one class, or one patient.
    """
    other, train, test = subjects.others.probe, subjects.others.probe_train, subjects.others.probe_test
    if other is None:
        return None
    networks = subjects.networks
    title = f"Looking at {counted(len(train) + len(test), 'image')} of {other.name} for linear probes"
    looked = look_at(networks, other, np.concatenate([train, test]), reporter=subjects.reporter, title=title)
    features = {label: each.features for label, each in looked.items()}
    try:
        return forgetting_of_features(
            {label: each[: len(train)] for label, each in features.items()},
            {label: each[len(train) :] for label, each in features.items()},
            other.targets[train],
            other.targets[test],
            groups=None if other.groups is None else other.groups[test],
            reference=subjects.reference(list(features)),
            data=other.name,
        )
    except NotApplicable as error:
        raise DataError(f"--probe {other.name}: {error.reason}. Give other images with more patients.") from error


def refuse_probe(subjects: Subjects) -> None:
    """Raise before anything is computed, where nothing could be probed.

    Raises:
        UsageError: No model is a network, or images have several labels.
        DataError: Too few images, or one class.
    """
    other, train, test = subjects.others.probe, subjects.others.probe_train, subjects.others.probe_test
    if other is None:
        return
    if not subjects.networks:
        raise UsageError("--probe looks at other images through networks, and both models are features on disk.")
    if not other.task.partitions:
        raise UsageError(f"--probe needs one class per image, and images of {other.name} have several labels each.")
    if len(train) < 4 or len(test) < 4 or len(np.unique(other.targets[train])) < 2:
        raise DataError(
            f"--probe {other.name}: {len(train)} training and {len(test)} test images do not do for a linear probe of two "
            "classes or more. Give four of each at least."
        )


def _spread(rows: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` of them, evenly from the first to the last."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int))]
