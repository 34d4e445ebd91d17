"""Images and prototypes as a head sees them: their gap, in a plane, their cosines, and what follows where the gap is moved."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from sklearn.base import clone
from torch import Tensor

from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.episodes import Episode
from crossgraft.fewshot.record import BoundRecord, EpisodeLookRecord, GapPoint, HeadLookRecord
from crossgraft.types import Features

Weighting = Literal["instance", "class"]


class Gap(NamedTuple):
    """‖Δ‖ by both weightings, between 0 and 2.

    Attributes:
        by_instance: Each image counts its prototype once, as in the figures of CoPA.
        by_class: Each prototype counts once, as in the formula of its slides.
    """

    by_instance: float
    by_class: float


class GapShift(NamedTuple):
    """The gap of the features as they come, and of what the head makes of them."""

    before: Gap
    after: Gap


def gap(instances: Features, prototypes: Features, labels: np.ndarray, *, weighting: Weighting = "instance") -> float:
    """‖Δ‖₂, Δ the mean unit vector of the images minus that of the prototypes.

    Args:
        instances: (n, d) what a head makes of images.
        prototypes: (C, d) what it makes of the prototypes.
        labels: (n,) the row of ``prototypes`` that belongs to each image.
        weighting: ``instance``: a prototype counts as often as it has images, as the code behind the figures of CoPA does;
            ``class``: once, as its formula says. Both are the same where all classes have equally many images.

    Raises:
        DataError: Shapes do not belong together, a value is not finite, or a label is no row of ``prototypes``.
        UsageError: The weighting is not known.

    Source: Tian et al., Mind the Gap Between Prototypes and Images in Cross-domain Finetuning, NeurIPS 2024.

    Example:
        >>> images, centre = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0]])
        >>> round(gap(images, centre, np.array([0, 0])), 4)
        0.2929
    """
    if weighting not in ("instance", "class"):
        raise UsageError(f"weighting must be instance or class, got {weighting!r}.")
    images, centres = _cloud(instances, "instances"), _cloud(prototypes, "prototypes")
    if images.shape[1] != centres.shape[1]:
        raise DataError(f"instances have the width {images.shape[1]}, and prototypes {centres.shape[1]}. Give both of one head.")
    both = gap_of(images, centres, _rows_of_prototypes(labels, num_images=len(images), num_classes=len(centres)))
    return both.by_instance if weighting == "instance" else both.by_class


def _cloud(values: Any, what: str) -> Float[Tensor, "rows width"]:
    """From any array or table: half precision is too coarse for means, and torch takes no reversed views."""
    try:
        rows = np.require(values, np.float64, ["C", "W"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers of shape (rows, width): {error}") from error
    if rows.ndim != 2 or not rows.size:
        raise DataError(f"{what} must have the shape (rows, width) and at least one row, found {rows.shape}.")
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        raise DataError(f"Row {bad[0]} of {what} holds NaN or infinite values, the first of {len(bad)}.")
    return torch.from_numpy(rows)


def _rows_of_prototypes(labels: Any, *, num_images: int, num_classes: int) -> Tensor:
    numbers = np.asarray(labels)
    if numbers.shape != (num_images,) or numbers.dtype.kind not in "iu":
        raise DataError(
            f"labels must be {num_images} whole numbers, the row of prototypes of each image; found {numbers.dtype} of shape "
            f"{numbers.shape}."
        )
    wrong = np.flatnonzero((numbers < 0) | (numbers >= num_classes))
    if len(wrong):
        raise DataError(f"Label {numbers[wrong[0]]} of row {wrong[0]} is no row of prototypes; there are 0 to {num_classes - 1}.")
    return torch.from_numpy(numbers.astype(np.int64))


def gap_of(instances: Float[Tensor, "rows width"], prototypes: Float[Tensor, "num_classes width"], classes: Tensor) -> Gap:
    """By both weightings."""
    images, centres = torch.nn.functional.normalize(instances), torch.nn.functional.normalize(prototypes)
    mean = images.mean(dim=0)
    return Gap(
        float(torch.linalg.vector_norm(mean - centres[classes].mean(dim=0))),
        float(torch.linalg.vector_norm(mean - centres.mean(dim=0))),
    )


# Both sides of the theorems of CoPA, as numbers.
#
# Source: Tian, Liu, Zhou, Liu, Zhang and Han, Mind the Gap Between Prototypes and Images in Cross-domain Finetuning,
# NeurIPS 2024.

Rows = np.ndarray


def theorem_3_1(instances: Features, classes: np.ndarray, *, share: float = 1.0) -> BoundRecord:
    """The NCC loss of unit vectors, cosines not scaled, is at least −mean zᵢ·c + (α/n) Σᵢ Σ_z′ zᵢ·z′.

    It follows from Jensen's inequality where the cosines that α leaves out sum to no less than −log N_C; with opposed features of
    unbalanced classes it need not hold, which is why both sides are given.

    Args:
        instances: (n, d) what a head makes of images; divided by their lengths here.
        classes: (n,) class of each, from 0.
        share: α as a share of its limit, 1 / (N_C · size of the largest class), in [0, 1].
    """
    unit, counts = _unit(instances), np.bincount(classes)
    means = _means(unit, classes)
    logits = unit @ means.T
    own = logits[np.arange(len(unit)), classes]
    alpha = share / (len(counts) * counts.max())
    total = unit.sum(axis=0)
    loss = float((_log_sum_exp(logits) - own).mean())
    lower = float(-own.mean() + alpha * (total @ total) / len(unit))
    return BoundRecord(name="3.1: loss of nearest prototypes", lower=lower, value=loss)


def theorem_3_2(features: Features, classes: np.ndarray, weights: Features) -> BoundRecord:
    """The squared gap behind a shared map Θ lies between m and M times ‖Θ‖²_F ‖Δ‖², not normalised, prototypes counted once.

    m and M are the smallest and the largest cos²(Δ, column of Θ).

    Args:
        features: (n, d) as they come.
        classes: (n,) class of each, from 0.
        weights: (d_out, d) W = Θᵀ, applied as X Wᵀ.
    """
    gap = features.mean(axis=0) - _means(features, classes).mean(axis=0)
    lengths = np.linalg.norm(weights, axis=1)
    squared = float(gap @ gap)
    along = (weights @ gap) ** 2
    cosines = along / np.maximum(lengths**2 * squared, np.finfo(np.float64).tiny)
    scale = float((weights**2).sum()) * squared
    return BoundRecord(
        name="3.2: squared gap behind a shared map",
        lower=float(cosines.min()) * scale,
        value=float(along.sum()),
        upper=float(cosines.max()) * scale,
    )


def theorem_5_1(instances: Features, prototypes: Features, classes: np.ndarray) -> BoundRecord:
    """The symmetric loss of unit vectors, cosines not scaled, is at least −(2/n) Σ zᵢ·cᵢ + (2/n) Σᵢ Σ_k (n_k/n) zᵢ·c_k.

    Args:
        instances: (n, d) what a head makes of images; divided by their lengths here.
        prototypes: (C, d) what it makes of prototypes; the same.
        classes: (n,) class of each, from 0.
    """
    images, centres, counts = _unit(instances), _unit(prototypes), np.bincount(classes)
    cosines = images @ centres.T
    own = cosines[np.arange(len(images)), classes].mean()
    pulled = float((cosines @ (counts / counts.sum())).mean())
    loss = symmetric_cross_entropy(cosines, classes)
    return BoundRecord(name="5.1: symmetric loss", lower=float(2 * (pulled - own)), value=loss)


def symmetric_cross_entropy(cosines: Features, classes: np.ndarray, *, scale: float = 1.0) -> float:
    """Equation 4, the sum of both directions over expanded prototypes, from (n, C) cosines.

    A prototype stands in n_c rows and columns of the n × n matrix.
    """
    similarities, counts = scale * cosines, np.bincount(classes)
    own = similarities[np.arange(len(similarities)), classes]
    of_rows = _log_sum_exp(similarities + np.log(counts)) - own
    of_columns = _log_sum_exp(similarities.T)[classes] - own
    return float(of_rows.mean() + of_columns.mean())


def _unit(rows: Rows) -> Rows:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _means(rows: Rows, classes: np.ndarray) -> Rows:
    return np.stack([rows[classes == number].mean(axis=0) for number in range(classes.max() + 1)])


def _log_sum_exp(rows: Rows) -> Rows:
    most = rows.max(axis=1)
    return most + np.log(np.exp(rows - most[:, None]).sum(axis=1))


MOST_IMAGES = 100
"""Shown of an episode; more make a picture of a page that nobody can read."""
_MOST_HEADS = 4
_SHIFTS_OF_CURVE = np.arange(-30, 31) / 10
_SCALE = math.exp(2.0)  # of cosines, as in CoPA


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
    with_prototypes = [(name, head) for name, head in heads.items() if callable(getattr(head, "clouds", None))]
    seen = [_look_at_head(name, head, support, classes, shown) for name, head in with_prototypes[:_MOST_HEADS]]
    if not seen:
        return None
    return EpisodeLookRecord(
        number=number, class_names=[str(name) for name in names], classes=classes[shown].tolist(), heads=seen
    )


def first_of_each(classes: np.ndarray, most: int) -> np.ndarray:
    """Places of at most ``most`` images, but one of each class at least; by class, equally many of each as far as it has them."""
    per_class = max(1, most // (classes.max() + 1))
    return np.concatenate([np.flatnonzero(classes == number)[:per_class] for number in range(classes.max() + 1)])


def gap_shift_curve(instances: Features, prototypes: Features, classes: np.ndarray) -> tuple[list[float], list[float]]:
    """Shifts s and the loss of CoPA after images moved by s·Δ/2 and prototypes by −s·Δ/2, both made unit vectors again.

    Δ is the vector from the mean prototype to the mean image, each prototype once per image, as for modalities (Liang, Zhang,
    Kwon, Yeung and Zou, Mind the Gap, NeurIPS 2022); the released code of CoPA adds its length to every coordinate instead.

    Args:
        instances: (n, d) what a head makes of images.
        prototypes: (C, d) what it makes of prototypes.
        classes: (n,) class of each image, from 0.
    """
    images, centres = _unit(instances), _unit(prototypes)
    vector = images.mean(axis=0) - centres[classes].mean(axis=0)
    losses = [  # CoPA's is the mean of both directions
        0.5
        * symmetric_cross_entropy(
            _unit(images + shift / 2 * vector) @ _unit(centres - shift / 2 * vector).T, classes, scale=_SCALE
        )
        for shift in _SHIFTS_OF_CURVE
    ]
    return _SHIFTS_OF_CURVE.tolist(), losses


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
    weights = getattr(head, "weights_", None)  # one map for both
    of_map = [] if weights is None else [theorem_3_2(support, classes, np.asarray(weights, np.float64))]
    return [theorem_3_1(instances, classes), *of_map, theorem_5_1(instances, prototypes, classes)]


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


# The gap, set to other values, to see whether a wider one classifies better.
#
# CoPA argues that one map for images and prototypes narrows their gap, that two maps keep it, and that this is why CoPA
# generalises. Here the gap is moved and nothing else, so that what follows of it can be seen.

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
