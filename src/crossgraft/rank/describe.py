"""Objects of the layers below become records: plain, without absolute paths and patient ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from crossgraft.data import Dataset
from crossgraft.data.thumbnails import thumbnail_png
from crossgraft.models import Backbone
from crossgraft.records import (
    DatasetRecord,
    ModelRecord,
    PreprocessingRecord,
    Reference,
    Role,
    ScoreRecord,
    Thumbnail,
)
from crossgraft.scores import SCORES, AnyScore
from crossgraft.types import Preprocessing

THUMBNAILS_PER_CLASS = 4
THUMBNAIL_CLASSES = 12


def describe_dataset(dataset: Dataset, *, show_names: bool = False) -> DatasetRecord:
    """The data as the report shows them; names of files only with ``show_names``."""
    return DatasetRecord(
        name=dataset.name,
        source=dataset.source,
        num_images=len(dataset),
        class_names=list(dataset.class_names),
        class_counts=list(dataset.class_counts),
        rows_used=dataset.rows_used,
        split_method=dataset.split_method,
        group_column=dataset.group_column,
        num_groups=None if dataset.groups is None else len(np.unique(dataset.groups)),
        fingerprint=dataset.fingerprint,
        image_kinds=dict(dataset.image_kinds),
        reading=list(dataset.reading),
        task="multi-label" if dataset.is_multi_label else "multi-class",
        ordinal=dataset.ordinal,
        num_skipped_unreadable=len(dataset.skipped_unreadable),
        skipped_unreadable=list(dataset.skipped_unreadable) if show_names else [],
    )


def describe_model(backbone: Backbone, role: Role, *, seconds: float, from_cache: bool) -> ModelRecord:
    """One backbone as the report shows it."""
    return ModelRecord(
        name=backbone.name,
        role=role,
        architecture=backbone.architecture,
        source=backbone.source,
        family=backbone.family,
        licence=backbone.licence,
        num_parameters=backbone.num_parameters,
        num_features=backbone.num_features,
        num_source_classes=backbone.num_source_classes,
        weights_fingerprint=backbone.weights_fingerprint,
        preprocessing=describe_preprocessing(backbone.preprocessing),
        feature_seconds=seconds,
        features_from_cache=from_cache,
    )


def describe_preprocessing(preprocessing: Preprocessing) -> PreprocessingRecord:
    """Size, interpolation, resize policy, mean and standard deviation."""
    return PreprocessingRecord.model_validate({**asdict(preprocessing), "description": preprocessing.describe()})


def describe_score(score: AnyScore) -> ScoreRecord:
    """One score as the report shows it."""
    return ScoreRecord(
        name=score.name,
        title=score.title,
        reference=score.reference,
        inputs=list(score.inputs),
        origin=SCORES.origin(score.name),
        is_reference_probe=score.is_reference_probe,
        cost=score.cost,
    )


def cite(scores: Sequence[AnyScore], *, with_prior: bool = False) -> list[Reference]:
    """The papers behind the numbers of a ranking."""
    statistics: Mapping[str, str] = {
        "jackknife": "Efron and Stein, The jackknife estimate of variance, Annals of Statistics 9(3), 1981.",
        "weighted Kendall": "Vigna, A weighted correlation index for rankings with ties, WWW 2015.",
    }
    if with_prior:
        statistics = {**statistics, "static prior": "Singh, Hess and Vanschoren, arXiv 2510.06448."}
    own = {score.title: score.reference for score in scores}
    return [Reference(key=key, text=text) for key, text in {**own, **statistics}.items()]


def make_thumbnails(dataset: Dataset) -> list[Thumbnail]:
    """The first few images of each class, at most 96 pixels a side."""
    return [
        Thumbnail(class_name=class_name, png_base64=thumbnail_png(dataset.read(int(row))))
        for class_index, class_name in enumerate(dataset.class_names[:THUMBNAIL_CLASSES])
        for row in np.flatnonzero(dataset.members(class_index))[:THUMBNAILS_PER_CLASS]
    ]
