"""All that is measured of two models, and of what they were fine-tuned from, in one pass over the images."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from crossgraft.compare import StoredFeatures, geometry_of_images, geometry_of_weights
from crossgraft.compare.geometry_of_images import MapDraws
from crossgraft.compare.geometry_subjects import Features, Later, OtherImages, Say, SeenImages, Subjects
from crossgraft.compare.looking import KeptImages, LayerPairs, Layers, Looked, Watch, choose_layers, look_at, map_shapes
from crossgraft.compare.measures import Predicted, measure_features, own_predictions, probe_predictions, shared_mistakes
from crossgraft.compare.networks import ComparedNetwork, Model, Rows, untrained
from crossgraft.compare.record import (
    ComparedModel,
    GeometryName,
    LayerCca,
    ModelComparisonRecord,
    ModelGeometry,
    ModelPair,
    PairOf,
    SharedMistakes,
)
from crossgraft.compare.words import AskedGeometry, HowToCompare
from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError, NotApplicable, UnknownNameError, UsageError
from crossgraft.models.trusted_code import TrustedCode
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference
from crossgraft.words.formatting import counted

_REFERENCES = (
    ("CKA", "Kornblith, Norouzi, Lee and Hinton, Similarity of Neural Network Representations Revisited, ICML 2019."),
    (
        "CCA of layers",
        "Raghu, Gilmer, Yosinski and Sohl-Dickstein, SVCCA, NeurIPS 2017; drawn as in Juodelyte's thesis, eq. 3.1.",
    ),
    ("PWCCA", "Morcos, Raghu and Bengio, Insights on Representational Similarity in Neural Networks, NeurIPS 2018."),
    ("Procrustes", "Ding, Denain and Steinhardt, Grounding Representation Similarity with Statistical Testing, NeurIPS 2021."),
    ("RSA", "Kriegeskorte, Mur and Bandettini, Representational similarity analysis, Front. Syst. Neurosci. 2 (2008) 4."),
    ("Shared mistakes", "Mania, Miller, Schmidt, Hardt and Recht, Model Similarity Mitigates Test Set Overuse, NeurIPS 2019."),
    ("κ of mistakes", "Geirhos, Meding and Wichmann, Beyond accuracy: quantifying trial-by-trial behaviour, NeurIPS 2020."),
)


def layers_frame(record: ModelComparisonRecord) -> pd.DataFrame:
    """One row per pair of layers of each pair of models: CKA, and that of untrained networks."""
    rows: list[dict[str, object]] = []
    for pair in record.pairs:
        for grid, what in ((pair.cka, "models"), (pair.cka_untrained, "untrained")):
            if grid is None:
                continue
            about = {"first": pair.first, "second": pair.second, "of": what}
            rows.extend(
                {**about, "layer": row, "other_layer": column, "cka": value}
                for row, values in zip(grid.rows, grid.values, strict=True)
                for column, value in zip(grid.columns, values, strict=True)
            )
    return pd.DataFrame(rows)


FEWEST_IMAGES = 4
_STORED_AT_ONCE = 1024
_AROUND: tuple[tuple[str, str, PairOf], ...] = (
    ("A before", "A", "change"),
    ("B before", "B", "change"),
    ("A before", "B before", "before"),
)
Targets = Int[np.ndarray, "num_images *labels"]


class Comparison:
    """One comparison of models.

    Args:
        models: By label: A, B and perhaps 'A before' and 'B before'.
        how: What is asked for.
        trusted: The code that the user named.
        reporter: Reporter of progress.

    Attributes:
        predicted: What each model said of the images, by its label, once they were looked at.

    Raises:
        UnknownNameError: There is no such layer; the message gives the nearest names.
    """

    def __init__(self, models: Mapping[str, Model], how: HowToCompare, *, trusted: TrustedCode, reporter: Reporter) -> None:
        self._models, self._how, self._trusted, self._reporter = dict(models), how, trusted, reporter
        self.predicted: dict[str, Predicted] = {}
        self._layers = {label: self._choose(label) for label in models}
        self._networks = {label: each for label, each in models.items() if isinstance(each, ComparedNetwork)}
        of: PairOf = "change" if _is_start(models["A"], models["B"]) else "models"
        links: list[tuple[str, str, PairOf]] = [("A", "B", of), *_AROUND]
        self._links = [link for link in links if link[0] in models and link[1] in models]
        self._floors = {link[:2]: self._floor_of(link[0], link[1]) for link in self._links}
        self.notes = [
            f"{each.name} cannot be built again without its weights, so no untrained network stands beside it."
            for label, each in self._networks.items()
            if label in models and each.recipe is None
        ]

    def run(
        self,
        images: Dataset | None,
        rows: Rows,
        train: Rows,
        targets: Targets | None,
        *,
        in_words: str = "images",
        others: OtherImages | None = None,
    ) -> ModelComparisonRecord:
        """Look at the images, and measure.

        Args:
            images: All images; None where every model is features on disk.
            rows: Rows that similarity is of.
            train: Rows that a linear probe learns from.
            targets: Classes of all images; None without classes.
            in_words: What the rows are.
            others: Further images, of the source and for linear probes.

        Raises:
            UsageError: A measure of geometry that was named applies to none of the models.
            DataError: There are fewer than four images, features on disk are of another number of images, or features are NaN.
        """
        began = time.perf_counter()
        if len(rows) < FEWEST_IMAGES:
            raise DataError(f"A comparison needs at least {FEWEST_IMAGES} images; there are {len(rows)}.")
        geometry = GeometryOfModels(self._subjects(images, rows, train, in_words, others or OtherImages()), self._how.geometry)
        stored = {
            label: (each, each.rows_of(label, rows, images))
            for label, each in self._models.items()
            if isinstance(each, StoredFeatures)
        }
        maps = MapDraws(
            {key: map_shapes(each, self._layers[key]) for key, each in self._networks.items()},
            len(rows),
            preset=self._how.cca_preset,
            seed=self._how.seed,
        )
        grids = {pair: LayerPairs() for pair in {*self._floors, *filter(None, self._floors.values())}}

        def on_batch(places: Rows, given: Mapping[str, Layers]) -> None:
            layers = {**given, **{label: each.at(rows_there[places]) for label, (each, rows_there) in stored.items()}}
            for (first, second), grid in grids.items():
                grid.update(layers[first], layers[second])

        looked = self._look(images, rows, Watch(self._layers, self._how.pool, on_batch, maps.take, geometry.kept))
        features = {label: np.asarray(each.penultimate[there]) for label, (each, there) in stored.items()}
        features |= {key: each.features for key, each in looked.items()}
        self.predicted = predicted = self._predict(images, train, targets, looked)
        classes = np.zeros(len(rows), dtype=np.int64) if targets is None else targets[rows]
        groups = None if images is None or images.groups is None else images.groups[rows]
        return ModelComparisonRecord(
            models=[
                self._described(label, features[label].shape[1], len(train) if each.by_probe else None)
                for label, each in predicted.items()
            ],
            pairs=[
                self._measure(
                    link, grids, maps, features, shared_mistakes(predicted[link[0]], predicted[link[1]], classes, groups)
                )
                for link in self._links
            ],
            dataset=None if images is None else describe_dataset(images),
            num_images=len(rows),
            images_in_words=in_words,
            geometry=geometry.measure(features),
            pool=self._how.pool,
            cca_preset=self._how.cca_preset,
            seed=self._how.seed,
            notes=self.notes,
            references=[Reference(key=key, text=text) for key, text in _REFERENCES],
            seconds=time.perf_counter() - began,
        )

    def _described(self, label: str, num_features: int, probe_train_images: int | None) -> ComparedModel:
        model, network = self._models[label], self._networks.get(label)
        return ComparedModel(
            label=label,
            name=model.name,
            kind="features" if network is None else "pretrained" if network.saved is None else "fine-tuned",
            architecture=network and network.architecture,
            weights_fingerprint=network and network.weights_fingerprint,
            start_fingerprint=network and network.start_fingerprint,
            num_features=num_features,
            num_parameters=network and network.num_parameters,
            multiply_adds=network and network.multiply_adds(),
            layers=self._layers[label],
            images_become=network and network.preprocessing.describe(),
            probe_train_images=probe_train_images,
        )

    def _subjects(self, images: Dataset | None, rows: Rows, train: Rows, words: str, others: OtherImages) -> Subjects:
        """The models as geometry sees them: one start of both stands once."""
        models = dict(self._models)
        starts = [models.get(f"{label} before") for label in ("A", "B")]
        if _are_the_same(*starts):
            del models["B before"]
        again = {"B before": "A before"} if "B before" not in models else {}
        links = {(again.get(first, first), again.get(second, second)): None for first, second, _ in self._links}
        links = [link for link in links if link[0] != link[1]]
        return Subjects(models, links, images, rows, train, words, others, self._how.seed, self._reporter)

    def _choose(self, label: str) -> list[str]:
        model = self._models[label]
        asked = self._how.layers_b if label.startswith("B") and self._how.layers_b else self._how.layers
        if isinstance(model, ComparedNetwork):
            return choose_layers(model, asked)
        for name in asked or ():
            if name not in model.layers:
                raise UnknownNameError(f"array of {model.name}", name, model.layers)
        return list(asked or model.layers)

    def _floor_of(self, first: str, second: str) -> tuple[str, str] | None:
        """Keys of two untrained networks of the architectures of a pair; None where there are none."""
        keys: list[str] = []
        for number, label in enumerate((first, second), start=1):
            network = self._networks.get(label)
            if network is None:
                return None
            key = self._untrained(network, label, number)
            if key is None:
                return None
            keys.append(key)
        return keys[0], keys[1]

    def _untrained(self, network: ComparedNetwork, label: str, number: int) -> str | None:
        """The key of an untrained network, one for all models of the same architecture, layers and preprocessing."""
        for key, other in self._networks.items():
            if key.startswith(f"untrained {number} ") and (
                other.has_body_of(network) and self._layers[key] == self._layers[label]
            ):
                return key
        made = untrained(network, seed=self._how.seed, number=number, trusted=self._trusted)
        if made is None:
            return None
        key = f"untrained {number} {label}"
        self._networks[key], self._layers[key] = made, self._layers[label]
        return key

    def _look(self, images: ImageRows | None, rows: Rows, watch: Watch) -> dict[str, Looked]:
        if self._networks and images is not None:
            title = f"Looking at {counted(len(rows), 'image')} with {counted(len(self._networks), 'network')}"
            return look_at(self._networks, images, rows, watch=watch, reporter=self._reporter, title=title)
        for start in range(0, len(rows), _STORED_AT_ONCE):
            watch.say(np.arange(start, min(start + _STORED_AT_ONCE, len(rows))), {})
        return {}

    def _predict(
        self, images: ImageRows | None, train: Rows, targets: Targets | None, looked: Mapping[str, Looked]
    ) -> dict[str, Predicted]:
        """Predictions of every model; linear probes share one pass over the training images."""
        by_label: dict[str, Predicted] = {}
        for label, model in self._models.items():
            if images is None or targets is None or isinstance(model, StoredFeatures):
                by_label[label] = Predicted(None, f"{model.name} is features without images and classes")
            else:
                by_label[label] = own_predictions(model.name, model.class_names, looked[label].logits, images)
        headless = {
            label: each
            for label, each in self._networks.items()
            if self._how.linear_probe and label in by_label and each.class_names is None and by_label[label].classes is None
        }
        if not headless or images is None or targets is None or not images.task.partitions:
            return by_label
        if len(train) == 0:
            none = Predicted(None, "there are no training images for a linear probe")
            return {**by_label, **dict.fromkeys(headless, none)}
        title = f"Looking at {counted(len(train), 'training image')} for linear probes"
        learned = look_at(headless, images, train, reporter=self._reporter, title=title)
        for label in headless:
            features = learned[label].features, looked[label].features
            by_label[label] = probe_predictions(features[0], targets[train], features[1])
        return by_label

    def _measure(
        self,
        link: tuple[str, str, PairOf],
        grids: Mapping[tuple[str, str], LayerPairs],
        maps: MapDraws,
        features: Mapping[str, np.ndarray],
        mistakes: tuple[SharedMistakes | None, str | None],
    ) -> ModelPair:
        first, second, of = link
        floor = self._floors[first, second]
        beside = None if floor is None else (features[floor[0]], features[floor[1]])
        cca, cca_reason = self._cca(first, second, floor, maps)
        return ModelPair(
            first=first,
            second=second,
            of=of,
            cka=grids[first, second].grid(),
            cka_untrained=None if floor is None else grids[floor].grid(),
            features=measure_features(features[first], features[second], beside, seed=self._how.seed),
            cca=cca,
            cca_reason=cca_reason,
            mistakes=mistakes[0],
            mistakes_reason=mistakes[1],
        )

    def _cca(self, first: str, second: str, floor: tuple[str, str] | None, maps: MapDraws) -> tuple[list[LayerCca], str | None]:
        if first not in self._networks or second not in self._networks:
            return [], "Features on disk have no positions to draw from."
        try:
            return maps.values(first, second, floor), None
        except NotApplicable as error:
            return [], str(error)


def _are_the_same(first: Model | None, second: Model | None) -> bool:
    """Whether both are one network."""
    if not isinstance(first, ComparedNetwork) or not isinstance(second, ComparedNetwork):
        return False
    return first.weights_fingerprint == second.weights_fingerprint and first.preprocessing == second.preprocessing


def _is_start(first: Model, second: Model) -> bool:
    """Whether the second was fine-tuned from the first."""
    if not isinstance(first, ComparedNetwork) or not isinstance(second, ComparedNetwork):
        return False
    return second.start_fingerprint == first.weights_fingerprint != second.weights_fingerprint


_MEASURES: dict[GeometryName, Callable[[Subjects, Say], Later]] = {
    "feature_map": geometry_of_images.common_plane,
    "parameter_distance": geometry_of_weights.distances,
    "interpolation_path": geometry_of_weights.path,
    "sharpness": geometry_of_weights.sharpnesses,
    "filters": geometry_of_weights.filters,
    "attention": geometry_of_images.attention,
    "tsne": geometry_of_images.inside_one_class,
}
_SOURCE = "source_attention"


class GeometryOfModels:
    """What is measured of the weights and features of the models.

    Args:
        subjects: Models and images.
        asked: What is asked for.

    Attributes:
        kept: Where the pass over the images leaves those that are looked at again; None where there are none.

    Raises:
        UsageError: A measure that the user named applies to none of the models, or ``--probe`` to none.
        DataError: There are too few other images.
    """

    def __init__(self, subjects: Subjects, asked: AskedGeometry) -> None:
        geometry_of_images.refuse_probe(subjects)
        self._subjects, self._asked = subjects, asked
        self._notes: dict[str, list[str]] = {}
        self._later: dict[str, Later] = {}
        measures: dict[str, Callable[[Subjects, Say], Later]] = {name: _MEASURES[name] for name in asked.names}
        if subjects.others.source is not None:
            measures[_SOURCE] = geometry_of_images.attention_to_source
        for name, measure in measures.items():
            try:
                self._later[name] = measure(subjects, self._sayer(name))
            except NotApplicable as error:
                self._refuse(name, error)
        ways = {way for each in self._later.values() for way in each.ways}
        images = subjects.images
        self.kept = None if images is None or not ways else KeptImages(images, subjects.rows, ways)

    def measure(self, features: Mapping[str, Features]) -> ModelGeometry | None:
        """The record; None where nothing was asked for.

        Raises:
            UsageError: As of the class, where only features say so.
            DataError: Weights, features or a loss are not finite.

        Cost: that of each measure.
        """
        if not self._asked.names and self._subjects.others.probe is None and _SOURCE not in self._later:
            return None
        seen = SeenImages({label: np.asarray(features[label]) for label in self._subjects.models}, self.kept)
        records: dict[str, Any] = {}
        for name, later in self._later.items():
            try:
                records[name] = later.measure(seen)
            except NotApplicable as error:
                self._refuse(name, error)
        forgotten = geometry_of_images.what_was_forgotten(self._subjects)
        return ModelGeometry(asked=list(self._asked.names), forgetting=forgotten, notes=self._notes, **records)

    def _sayer(self, name: str) -> Say:
        return lambda sentence: self._notes.setdefault(name, []).append(sentence)

    def _refuse(self, name: str, error: NotApplicable) -> None:
        if self._asked.is_named or name == _SOURCE:
            flag = "--source-images" if name == _SOURCE else f"--geometry {name}"
            raise UsageError(f"{flag} does not apply to these models: {error.reason}.") from error
        self._notes.setdefault(name, []).append(f"Not measured: {error.reason}.")
