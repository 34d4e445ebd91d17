"""Source data sets of the study of sources: each of them whole, all but one pooled, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from fewshot_student import cifar_train
from ground_truth_sets import SETS, TargetSet
from shortcut_sources_images import resized
from shortcut_sources_network import SOURCE_SIDE

from crossgraft.audit import radial_psd
from crossgraft.audit.spectra import spectral_overlap
from crossgraft.data import Dataset, dataset_from_arrays
from crossgraft.features import extract_features
from crossgraft.models import Backbone
from crossgraft.progress import Reporter
from crossgraft.scores import SCORES, ScoreInputs
from crossgraft.seeding import generator

MEDICAL = tuple(target for target in SETS if target.name not in ("omniglot_greek", "cifar10"))
"""Targets, and sources of one set."""
NATURAL, RANDOM, ALL_BUT = "cifar10", "random", "all but "
MOST_DESCRIBED = 500
"""Images of a source that describe it, drawn once."""
SCORE_NAMES = ("logme", "h_score", "sfda", "parc", "gbc", "transrate", "nca_score")
"""Scores of the frozen features of a source's network on the training images of the target."""

Opener = Callable[[Path], Dataset]


def sources_of(target: TargetSet, medical: Sequence[TargetSet] = MEDICAL) -> dict[str, Opener | None]:
    """Name → what reads its images (None: none, weights are random): no source has images of the target."""
    others = [each for each in medical if not related(each, target)]
    found: dict[str, Opener | None] = {each.name: pooled(each.name, [each]) for each in others}
    all_but = f"{ALL_BUT}{target.name}"
    return {**found, NATURAL: cifar_train, all_but: pooled(all_but, others), RANDOM: None}


def related(one: TargetSet, other: TargetSet) -> bool:
    """Do they have images in common?"""
    return one.name == other.name or (one.group != "" and one.group == other.group)


def pooled(name: str, sets: Sequence[TargetSet]) -> Opener:
    """All images of one or several sets; a class is a set and its class. Of sets with common images the first comes alone."""
    distinct = [each for place, each in enumerate(sets) if not any(related(each, before) for before in sets[:place])]

    def opened(folder: Path) -> Dataset:
        pixels: list[np.ndarray] = []
        labels: list[str] = []
        groups: list[str] = []
        for target in distinct:
            images = target.opened(folder)
            own = range(len(images)) if images.groups is None else images.groups
            pixels += [resized(images.read(row), SOURCE_SIDE) for row in range(len(images))]
            labels += [f"{target.name} {images.class_names[each]}" for each in images.targets]
            groups += [f"{target.name} {each}" for each in own]
        return dataset_from_arrays(pixels, labels, groups=groups, name=name)

    return opened


def described(images: Dataset, reference: Backbone, cache: Path) -> tuple[np.ndarray, np.ndarray]:
    """Features of a network that is no source (m, d), and the mean radial spectrum, of a part of the images."""
    rows = np.sort(generator(0, "described", images.name).permutation(len(images))[:MOST_DESCRIBED])
    some = images.take(rows)
    features = extract_features(some, reference, cache_dir=cache, num_threads=1, reporter=Reporter(quiet=True)).features
    small = [resized(some.read(row), SOURCE_SIDE) for row in range(len(some))]
    spectra = [radial_psd(each / 255.0, quantity="power", window="hann") for each in small]
    return np.asarray(features, dtype=np.float64), np.mean(spectra, axis=0)


def effective_rank(features: np.ndarray) -> float:
    """Diversity: exponential of the entropy of the eigenvalues of the covariance; 1 = all images differ in one way."""
    values = np.linalg.svd(features - features.mean(axis=0), compute_uv=False) ** 2
    shares = values[values > 0] / values.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def frechet_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Between normal distributions with the means and covariances of both (Dowson and Landau, 1982); 0 = the same.

    With centred features A and B, divided by the roots of their numbers less one, tr (AᵀA BᵀB)^½ is the sum of the singular
    values of A Bᵀ, which needs no root of a singular covariance.
    """
    centred = [(each - each.mean(axis=0)) / np.sqrt(len(each) - 1) for each in (first, second)]
    gap = first.mean(axis=0) - second.mean(axis=0)
    shared = np.linalg.svd(centred[0] @ centred[1].T, compute_uv=False).sum()
    return float(gap @ gap + sum((each**2).sum() for each in centred) - 2 * shared)


def similarity(source: tuple[np.ndarray, np.ndarray], target: tuple[np.ndarray, np.ndarray]) -> Mapping[str, float]:
    """Two measures of how alike two sets look, larger = more alike."""
    return {
        "feature_similarity": -frechet_distance(source[0], target[0]),
        "spectral_similarity": spectral_overlap(source[1], target[1]).overlap,
    }


def scores_on(train: Dataset, backbone: Backbone, cache: Path) -> Mapping[str, float]:
    """Scores of frozen features."""
    features = extract_features(train, backbone, cache_dir=cache, num_threads=1, reporter=Reporter(quiet=True)).features
    inputs = ScoreInputs(features=features, labels=train.targets, groups=train.groups)
    return {name: float(SCORES.get(name).evaluate(inputs)) for name in SCORE_NAMES}
