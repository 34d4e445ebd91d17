"""The support set of one episode as a head sees it: images and prototypes in a plane, their cosines, and their gap."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from crossgraft.fewshot.episodes import Episode
from crossgraft.fewshot.gap import gap
from crossgraft.fewshot.record import BoundRecord, EpisodeLookRecord, HeadLookRecord
from crossgraft.fewshot.theorems import Bounds, symmetric_cross_entropy, theorem_3_1, theorem_3_2, theorem_5_1
from crossgraft.types import Features

MOST_IMAGES = 100
"""Shown of an episode; more make a picture of a page that nobody can read."""
_MOST_HEADS = 4
_SHIFTS = np.arange(-30, 31) / 10
_SCALE = math.exp(2.0)


def look_at_episode(
    features: Features, labels: np.ndarray, heads: Mapping[str, Any], episode: Episode, *, number: int
) -> EpisodeLookRecord | None:
    """What the heads that have images and prototypes make of one support set; None: there is no such head.

    Args:
        features: (n, d) penultimate features.
        labels: (n,) class of each row.
        heads: Name → head, unfitted.
        episode: Rows of the support set.
        number: Number of the episode.
    """
    names, classes = np.unique(labels[episode.support], return_inverse=True)
    support = np.asarray(features[episode.support], dtype=np.float64)
    shown = first_of_each(classes, MOST_IMAGES)
    seen = [
        _look_at_head(name, head, support, classes, shown)
        for name, head in list(_with_prototypes(heads).items())[:_MOST_HEADS]
    ]
    if not seen:
        return None
    return EpisodeLookRecord(
        number=number, class_names=[str(name) for name in names], classes=classes[shown].tolist(), heads=seen
    )


def _with_prototypes(heads: Mapping[str, Any]) -> dict[str, Any]:
    return {name: head for name, head in heads.items() if callable(getattr(head, "clouds", None))}


def first_of_each(classes: np.ndarray, most: int) -> np.ndarray:
    """Places of at most ``most`` images, but one of each class at least; by class, equally many of each as far as it has them."""
    per_class = max(1, most // (classes.max() + 1))
    return np.concatenate([np.flatnonzero(classes == number)[:per_class] for number in range(classes.max() + 1)])


def gap_shift_curve(
    instances: Features, prototypes: Features, classes: np.ndarray, *, scale: float = _SCALE
) -> tuple[list[float], list[float]]:
    """Shifts s and the loss of CoPA after images moved by s·Δ/2 and prototypes by −s·Δ/2, both made unit vectors again.

    Δ is the vector from the mean prototype to the mean image, each prototype once per image, as for modalities (Liang, Zhang,
    Kwon, Yeung and Zou, Mind the Gap, NeurIPS 2022); the released code of CoPA adds its length to every coordinate instead.

    Args:
        instances: (n, d) what a head makes of images.
        prototypes: (C, d) what it makes of prototypes.
        classes: (n,) class of each image, from 0.
        scale: What cosines are multiplied by; e² as in CoPA.
    """
    images, centres = _unit(instances), _unit(prototypes)
    vector = images.mean(axis=0) - centres[classes].mean(axis=0)
    losses = [  # CoPA's is the mean of both directions
        0.5
        * symmetric_cross_entropy(
            _unit(images + shift / 2 * vector) @ _unit(centres - shift / 2 * vector).T, classes, scale=scale
        )
        for shift in _SHIFTS
    ]
    return _SHIFTS.tolist(), losses


def _look_at_head(name: str, head: Any, support: np.ndarray, classes: np.ndarray, shown: np.ndarray) -> HeadLookRecord:
    fitted: Any = clone(head)
    fitted.fit(support, classes)
    instances, prototypes = (np.asarray(cloud, dtype=np.float64) for cloud in fitted.clouds(support))
    images, centres = _unit(instances), _unit(prototypes)
    points, shares = _plane(np.concatenate([images[shown], centres]))
    shifts, losses = gap_shift_curve(instances, prototypes, classes)
    return HeadLookRecord(
        head=name,
        shares=shares,
        images=[(round(x, 4), round(y, 4)) for x, y in points[: len(shown)].tolist()],
        prototypes=[(round(x, 4), round(y, 4)) for x, y in points[len(shown) :].tolist()],
        similarities=np.round(images[shown] @ centres.T, 3).tolist(),
        gap_by_instance=gap(instances, prototypes, classes),
        gap_by_class=gap(instances, prototypes, classes, weighting="class"),
        shifts=shifts,
        losses=[round(loss, 5) for loss in losses],
        bounds=_bounds(fitted, support, instances, prototypes, classes),
    )


def _bounds(
    head: Any, support: np.ndarray, instances: np.ndarray, prototypes: np.ndarray, classes: np.ndarray
) -> list[BoundRecord]:
    found: dict[str, Bounds] = {"3.1: loss of nearest prototypes": theorem_3_1(instances, classes)}
    weights = getattr(head, "weights_", None)
    if weights is not None:  # one map for both
        found["3.2: squared gap behind a shared map"] = theorem_3_2(support, classes, np.asarray(weights, np.float64))
    found["5.1: symmetric loss"] = theorem_5_1(instances, prototypes, classes)
    return [BoundRecord(name=name, **each._asdict()) for name, each in found.items()]


def _plane(rows: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """The first two principal components, each with its largest weight positive, and their shares of the variance."""
    centred = rows - rows.mean(axis=0)
    left, lengths, right = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    points, total = np.zeros((len(rows), 2)), float((lengths**2).sum())
    count = min(2, len(lengths))
    points[:, :count] = (left * lengths * signs)[:, :count]
    shares = [float(length**2) / total if total else 0.0 for length in lengths[:2]] + [0.0, 0.0]
    return points, (shares[0], shares[1])


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
