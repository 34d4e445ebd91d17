"""Who is in the picture, read from features: a probe for sex, age or another column, on patients that it has not learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.nn import functional

from crossgraft.audit.attributes import BinaryAttribute
from crossgraft.audit.explained import features_of
from crossgraft.audit.learning_priority import prepared_batches
from crossgraft.audit.record import AuditMetric, ReadableRow
from crossgraft.data import Dataset
from crossgraft.errors import CrossgraftError, DataError
from crossgraft.metrics import auc, auc_combination
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.models.recipe import NetworkRecipe, build_network
from crossgraft.models.trusted_code import TrustedCode
from crossgraft.progress import Reporter
from crossgraft.seeding import derive_seed
from crossgraft.types import Preprocessing

Features = Float[np.ndarray, "num_images num_features"]
UNTRAINED, PIXELS, CLASS = "random weights", "pixels", "class alone"
PENALTIES = (1e-3, 1e-2, 1e-1)
"""Inverse penalties of the probe, of which cross-validation on its own training images picks one."""
NUM_FOLDS, PIXEL_SIDE = 3, 16
LEAST_IMAGES = 10
"""Images with the attribute and without it, in the part that is learned from and in the part that is read."""


class ProbedFeatures(NamedTuple):
    """Features of all images.

    Attributes:
        name: What they are of.
        features: (n, d), in the order of the images.
    """

    name: str
    features: Features


def looks_beside(
    network: Backbone | Classifier, images: Dataset, *, seed: int, trusted: TrustedCode, device: str, reporter: Reporter
) -> list[ProbedFeatures]:
    """What a probe reads without any training of the network: random weights, pixels, and the class of each image.

    Cost: two passes over the images, one of them without a network.
    """
    recipe = network.recipe.network if isinstance(network, Classifier) else network.network
    found: list[ProbedFeatures] = []
    plain = None if recipe is None else _untrained(recipe, network.preprocessing, seed, trusted, device)
    if plain is not None:
        found.append(ProbedFeatures(UNTRAINED, features_of(plain, images, reporter, named=UNTRAINED)))
    classes = np.eye(len(images.class_names))[images.targets] if images.task.partitions else images.targets.astype(np.float64)
    return [*found, ProbedFeatures(PIXELS, _coarse_pixels(images, network.preprocessing)), ProbedFeatures(CLASS, classes)]


def _untrained(
    recipe: NetworkRecipe, preprocessing: Preprocessing, seed: int, trusted: TrustedCode, device: str
) -> Backbone | None:
    """The same architecture with the weights that a training from scratch begins with; None where nobody can build it again."""
    try:
        module = build_network(recipe, preprocessing, seed=derive_seed(seed, UNTRAINED), trusted=trusted)
    except CrossgraftError:
        return None
    return Backbone(
        module,
        name=UNTRAINED,
        architecture=recipe.source,
        source="factory",
        family=UNTRAINED,
        preprocessing=preprocessing,
        device=device,
        network=recipe,
    )


def _coarse_pixels(images: Dataset, preprocessing: Preprocessing) -> Features:
    """(n, 3 · 16²) what the network gets, each channel as means of 16 × 16 areas."""
    batches = prepared_batches(images, preprocessing)
    return np.concatenate([functional.adaptive_avg_pool2d(batch, PIXEL_SIDE).flatten(1).numpy() for batch in batches])


def read_attribute(
    model: str,
    name: str,
    looks: Sequence[ProbedFeatures],
    attribute: BinaryAttribute,
    learned: np.ndarray,
    read: np.ndarray,
    groups: np.ndarray | None,
    *,
    seed: int = 0,
) -> list[ReadableRow]:
    """AUC of a probe for an attribute on features of held-out images, and how much more than with random weights.

    Args:
        model: Name of the model.
        name: The attribute, as it was written.
        looks: What is read from; the first one is the network.
        attribute: Who has it.
        learned: Rows that the probe is fitted to.
        read: Rows that it is asked about, of other patients.
        groups: (n,) patient of each image; None takes images as independent.
        seed: Random seed of the folds that pick its penalty.

    Raises:
        DataError: There are fewer than ``LEAST_IMAGES`` with the attribute, or without it; or a patient is in both parts.

    Cost: ten logistic regressions for each look.
    """
    train, test = learned[attribute.known[learned]], read[attribute.known[read]]
    for part, where in ((train, "train and val"), (test, "test")):
        number = int(attribute.flags[part].sum())
        if min(number, len(part) - number) < LEAST_IMAGES:
            raise DataError(
                f"To read {name} takes {LEAST_IMAGES} images with it and {LEAST_IMAGES} without it; {where} has {number} and "
                f"{len(part) - number}. Give more images, or another cut."
            )
    if groups is not None and len(shared := np.intersect1d(groups[train], groups[test])):
        raise DataError(f"{len(shared)} groups have images in test and in another part: {name} would be known by heart.")
    labels = attribute.flags.astype(np.int64)
    of_test = None if groups is None else groups[test]
    scores = [_probe(look.features, labels, train, test, groups, seed) for look in looks]
    of_look = {look.name: score for look, score in zip(looks, scores, strict=True)}

    def minus(look: ProbedFeatures, other: str, name: str) -> AuditMetric | None:
        if look.name == other or other not in of_look:
            return None
        terms = [(1.0, of_look[look.name]), (-1.0, of_look[other])]
        return AuditMetric.over_patients(name, auc_combination(terms, labels[test], of_test))

    rows: list[ReadableRow] = []
    for look, score in zip(looks, scores, strict=True):
        rows.append(
            ReadableRow(
                model=model,
                attribute=name,
                said=attribute.in_words,
                features=look.name,
                num_images=len(test),
                num_with=int(labels[test].sum()),
                auc=AuditMetric.over_patients("readable_auc", auc(score, labels[test], of_test)),
                more_than_random_weights=minus(look, UNTRAINED, "more_than_random_weights"),
                more_than_class=minus(look, CLASS, "more_than_class"),
            )
        )
    return rows


def unread(model: str, name: str, attribute: BinaryAttribute, reason: str) -> ReadableRow:
    """An attribute that could not be read, and why."""
    return ReadableRow(
        model=model,
        attribute=name,
        said=attribute.in_words,
        features="features",
        num_images=0,
        num_with=0,
        auc=AuditMetric(name="readable_auc", value=None, no_interval_reason=reason),
        more_than_random_weights=None,
        more_than_class=None,
    )


def _probe(
    features: Features, labels: np.ndarray, train: np.ndarray, test: np.ndarray, groups: np.ndarray | None, seed: int
) -> np.ndarray:
    """(n_test,) scores of logistic regression with the penalty that does best on left-out patients among its own images."""
    rows, units = features.astype(np.float64), np.arange(len(features)) if groups is None else groups
    folds = StratifiedGroupKFold(NUM_FOLDS, shuffle=True, random_state=derive_seed(seed, "readable"))
    parts = list(folds.split(rows[train], labels[train], units[train]))

    def quality(penalty: float) -> float:
        areas = [
            auc(_fitted(rows, labels, train[one], penalty).decision_function(rows[train[other]]), labels[train[other]]).value
            for one, other in parts
            if len(set(labels[train[one]].tolist())) == len(set(labels[train[other]].tolist())) == 2
        ]
        return float(np.mean(areas)) if areas else 0.0

    return _fitted(rows, labels, train, max(PENALTIES, key=quality)).decision_function(rows[test])


def _fitted(rows: Features, labels: np.ndarray, numbers: np.ndarray, penalty: float) -> Pipeline:
    probe = make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=1000))
    return probe.fit(rows[numbers], labels[numbers])
