"""Geometry of what the compared models see: one plane of features, one class of them, attention, and other images."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from crossgraft.compare.geometry_subjects import Later, Say, SeenImages, Subjects
from crossgraft.compare.looking import look_at
from crossgraft.compare.networks import ComparedNetwork
from crossgraft.data import Dataset
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.geometry import AttentionMaps, attention_map, feature_map, forgetting_of_features, tsne_maps
from crossgraft.geometry.attention_map import attention_layers
from crossgraft.geometry.describe import forgetting_record
from crossgraft.geometry.describe_maps import attention_record, feature_map_record, tsne_record
from crossgraft.geometry.maps_record import AttentionRecord, FeatureMapRecord, TsneRecord
from crossgraft.geometry.record import ForgettingRecord
from crossgraft.geometry.tsne_map import FEWEST_POINTS
from crossgraft.types import Preprocessing
from crossgraft.words.formatting import counted

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
            said = ", ".join(f"{label} has {each}" for label, each in widths.items())
            raise NotApplicable(f"a common plane needs features of one width, and {said}")
        for label, other in widths.items():
            if other != width:
                say(f"{label} is not in the plane: it has {other} features, and the plane is one of {width}.")
        features = {label: seen.features[label] for label, each in widths.items() if each == width}
        found = feature_map(features, reference=subjects.reference(list(features)))
        return feature_map_record(found, images=subjects.in_words)

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
        found = {}
        with subjects.reporter.stage("Drawing one class", total=len(wide), unit="models") as stage:
            for label, features in wide.items():
                found |= tsne_maps({label: features}, seed=subjects.seed)
                stage.advance()
        return tsne_record(found, class_name=name, num_images=len(places), seed=subjects.seed)

    return Later(measure)


def attention(subjects: Subjects, say: Say) -> Later:
    """Attention of the vision transformers among the models.

    Raises:
        NotApplicable: None is one.
    """
    transformers = {label: each for label, each in subjects.networks.items() if _looks_by_attention(each)}
    if not transformers or subjects.images is None:
        raise NotApplicable(
            "none of the models is a vision transformer whose queries, keys and values lie in one layer"
        )
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
    found: dict[str, AttentionMaps] = {}
    with subjects.reporter.stage("Mapping attention", total=len(networks), unit="networks") as stage:
        for label, network in networks.items():
            try:
                found[label] = attention_map(network.measured, inputs[network.preprocessing])
            except NotApplicable as error:
                say(f"{label}: {error.reason}.")
            stage.advance()
    if not found:
        raise NotApplicable("attention of these networks is of another kind than softmax over all tokens")
    reference = subjects.reference(list(found))
    shape = found[reference].attention.shape
    for label, each in [*found.items()]:
        if each.attention.shape != shape:
            say(f"{label} has another grid of patches than {reference}, so their maps are not compared.")
            del found[label]
    return attention_record(
        found, reference=reference, images=words, drawn=_spread(np.arange(shape[0]), MOST_DRAWN).tolist()
    )


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
        found = forgetting_of_features(
            {label: each[: len(train)] for label, each in features.items()},
            {label: each[len(train) :] for label, each in features.items()},
            other.targets[train],
            other.targets[test],
            groups=None if other.groups is None else other.groups[test],
            reference=subjects.reference(list(features)),
        )
    except NotApplicable as error:
        raise DataError(f"--probe {other.name}: {error.reason}. Give other images with more patients.") from error
    return forgetting_record(found, data=other.name)


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
