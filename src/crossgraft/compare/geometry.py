"""Geometry of two models: what applies to them is found before the images are looked at, and measured after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crossgraft.compare import geometry_of_images, geometry_of_weights
from crossgraft.compare.geometry_subjects import Features, Later, Say, SeenImages, Subjects
from crossgraft.compare.looking import KeptImages
from crossgraft.compare.record import GeometryName, ModelGeometry
from crossgraft.compare.words import AskedGeometry
from crossgraft.errors import NotApplicable, UsageError

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

        Args:
            features: Penultimate features of the rows, by label.

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
