"""One head on one task: it learns the support set, and says how probable each class is for each query."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from crossgraft.compute import is_out_of_memory
from crossgraft.data import Dataset
from crossgraft.data.rows import ImageRows
from crossgraft.errors import CrossgraftError, UsageError
from crossgraft.features import extract_features
from crossgraft.fewshot.heads import reads_images
from crossgraft.fewshot.heard_warnings import heard_warnings
from crossgraft.fewshot.images import EpisodeImages
from crossgraft.fewshot.options import SupportOptions
from crossgraft.models import Backbone
from crossgraft.progress import Reporter

QUERIES_AT_ONCE = 256
"""Prepared images in memory together, where a head reads images."""


class Learned(NamedTuple):
    """Probabilities and their logarithms for the queries, and what the head warned of."""

    probabilities: np.ndarray
    logits: np.ndarray
    warnings: list[str]


def learn_and_predict(
    head: Any,
    support: Dataset,
    queries: ImageRows,
    backbone: Backbone,
    options: SupportOptions,
    reporter: Reporter,
) -> Learned:
    """Columns in the order of the classes of ``support``.

    The head learns names of classes, by which class weights are given, and not their numbers.
    """
    fresh: Any = clone(head)
    labels = np.array(support.class_names)[support.targets]
    if fresh.get_params().get("seed") == 0 and not _names_seed(options.head):
        fresh.set_params(seed=options.seed)
    warned: list[str] = []
    if reads_images(fresh):
        fresh.set_params(backbone=backbone)
        with heard_warnings(warned):
            found = _learn_from_images(fresh, support, labels, queries, backbone, at_once=options.batch_size)
    else:
        of_support, of_queries = (
            extract_features(
                images, backbone, cache_dir=options.cache_dir, batch_size=options.batch_size, reporter=reporter
            ).features
            for images in (support, queries)
        )
        with heard_warnings(warned):
            found = _probabilities(fresh, of_support, labels, of_queries)
    probabilities = np.zeros((len(found), len(support.class_names)))
    probabilities[:, [support.class_names.index(name) for name in fresh.classes_]] = found
    return Learned(probabilities, np.log(np.maximum(probabilities, np.finfo(np.float64).tiny)), warned)


def _probabilities(head: Any, support: np.ndarray, labels: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Probabilities of the classes that the head knows.

    Raises:
        UsageError: A head of another package raised an error, which is the cause of this one.
    """
    try:
        return head.fit(support, labels).predict_proba(queries)
    except CrossgraftError:
        raise
    except Exception as error:  # heads of others raise many kinds
        if is_out_of_memory(error):
            raise  # no fault of the options, and told otherwise
        raise UsageError(f"Head {type(head).__name__}: {type(error).__name__}: {error}") from error


def _names_seed(head: Any) -> bool:
    """Whether a seed was written with the head; that of an object counts unless it is 0, the default."""
    if isinstance(head, str):
        return re.search(r"[:,]\s*seed\s*=", head) is not None
    return isinstance(head, Mapping) and "seed" in head


def _learn_from_images(
    head: Any, support: Dataset, labels: np.ndarray, queries: ImageRows, backbone: Backbone, *, at_once: int | None
) -> np.ndarray:
    """Probabilities of the queries, of which few are in memory together; all of the support set is."""
    prepared = EpisodeImages(support.read, backbone.preprocessing)
    head.fit(prepared(range(len(support))).numpy(), labels)
    of_queries, number = EpisodeImages(queries.read, backbone.preprocessing), len(queries)
    size = at_once or QUERIES_AT_ONCE
    chunks = (range(first, min(first + size, number)) for first in range(0, number, size))
    return np.concatenate([head.predict_proba(of_queries(chunk).numpy()) for chunk in chunks])
