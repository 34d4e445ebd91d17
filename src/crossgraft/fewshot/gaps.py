"""The gap between images and prototypes, set to other values, to see whether a wider one classifies better.

CoPA (Tian et al., NeurIPS 2024) argues that one map for images and prototypes narrows their gap, that two maps keep it, and that
this is why CoPA generalises. Here the gap is moved and nothing else, so that what follows of it can be seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from crossgraft.fewshot.episodes import Episode
from crossgraft.fewshot.look import gap_of, theorem_3_2
from crossgraft.fewshot.record import GapPoint
from crossgraft.types import Features

SHIFTS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 4.0)
"""In gaps: −1 closes it, 1 doubles it, up to the division by lengths that follows."""
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Shares of the difference of both maps: 0 is one map for both, 1 as trained."""
MOMENTS = (0.0, 0.125, 0.25, 0.5, 1.0)
"""Shares of the training, after which one map for both is looked at."""
AS_IT_IS = {"features": 0.0, "maps": 1.0}


def sets_gaps(head: object) -> bool:
    """Whether a head has images and prototypes that can be moved."""
    return callable(getattr(head, "clouds", None)) and getattr(head, "distance", "cos") == "cos"


def gap_points(name: str, head: Any, features: Features, labels: np.ndarray, episode: Episode) -> Iterator[GapPoint]:
    """One head, fitted to the episode, with its gap moved.

    Args:
        name: What the head is called.
        head: A fitted head with ``clouds`` whose prediction is the nearest prototype by cosine.
        features: (n, d) of all rows.
        labels: (n,).
        episode: Rows of the support set and of the queries.

    Cost: 8 predictions; of CoPA with two maps 7 more; of one map for both the head is fitted anew for each of 4 numbers of steps.
    """
    support, query = (np.asarray(features[rows], dtype=np.float64) for rows in (episode.support, episode.query))
    names, classes = np.unique(labels[episode.support], return_inverse=True)
    right = np.searchsorted(names, labels[episode.query])

    def point(moved: Any, at: float, images: np.ndarray, prototypes: np.ndarray, queries: np.ndarray, **more: Any) -> GapPoint:
        both = gap_of(torch.from_numpy(images), torch.from_numpy(prototypes), torch.from_numpy(classes))
        hits = (_unit(queries) @ _unit(prototypes).T).argmax(axis=1) == right
        facts = {"gap": both.by_instance, "gap_by_class": both.by_class, "accuracy": float(hits.mean())}
        return GapPoint(head=name, moved=moved, at=at, **facts, **more)

    images, prototypes = (_unit(np.asarray(cloud, np.float64)) for cloud in head.clouds(support))
    queries = _unit(np.asarray(head.clouds(query)[0], np.float64))
    vector = images.mean(axis=0) - prototypes[classes].mean(axis=0)  # Δ, each prototype once per image
    for shift in SHIFTS:
        along = shift / 2 * vector
        yield point("features", shift, images + along, prototypes - along, queries + along)
    of_images = getattr(head, "instance_weights_", None)
    one_map = getattr(head, "weights_", None)
    if of_images is not None and one_map is None:
        yield from _maps_apart(head, support, query, point)
    if one_map is not None:
        for steps in dict.fromkeys(round(moment * head.steps) for moment in MOMENTS):  # of few steps, moments fall together
            now = head
            if steps != head.steps:
                unfitted: Any = clone(head)
                now = unfitted.set_params(steps=steps).fit(features[episode.support], classes)
            bound = theorem_3_2(support, classes, np.asarray(now.weights_, np.float64))
            squared = float(np.square(support.mean(axis=0) - _means(support, classes).mean(axis=0)).sum())
            clouds = (np.asarray(cloud, np.float64) for cloud in (*now.clouds(support), now.clouds(query)[0]))
            of_bound: dict[str, float] = {}
            if squared > _LEAST_SQUARE * float(np.square(support).sum(axis=1).mean()):
                of_bound = {"coefficient": (bound.upper or 0.0) / squared, "squared_ratio": bound.value / squared}
            yield point("training", float(steps), *clouds, **of_bound)


_LEAST_SQUARE = 1e-12
"""Share of the mean squared length of features: a smaller squared gap is rounding, as where all classes have as many images."""


def _maps_apart(head: Any, support: np.ndarray, query: np.ndarray, point: Any) -> Iterator[GapPoint]:
    """W_I = S + t·D and W_P = S − t·D, S the mean of both maps and D half of their difference."""
    first, second = (np.asarray(each, np.float64) for each in (head.instance_weights_, head.prototype_weights_))
    shared, half = (first + second) / 2, (first - second) / 2
    prototypes = np.asarray(head.prototypes_, np.float64)
    for share in SHARES:
        for_images, for_prototypes = shared + share * half, shared - share * half
        yield point("maps", share, support @ for_images.T, prototypes @ for_prototypes.T, query @ for_images.T)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _means(rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.stack([rows[classes == number].mean(axis=0) for number in range(classes.max() + 1)])
