"""How much of the similarity of two fine-tuned networks is what tells the classes apart, of the study of similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from similarity_kept import features_on
from similarity_rows import ClassesRow
from studies import EXAMPLES

from crossgraft.data import Dataset
from crossgraft.similarity import both_linear_cka
from crossgraft.tune.saving.saved_model import load_saved_model

Features = np.ndarray
"""(n, d), penultimate."""


def classes_rows(runs: Mapping[str, Mapping[str, Path]], test: Dataset, *, seed: int) -> list[ClassesRow]:
    """Of every two sources.

    Args:
        runs: ``before`` (runs of LINEAR, whose bodies are the pretrained ones) and ways to fine-tune → source → run directory.
        test: Test images.
        seed: Of the trainings.
    """
    rows: list[ClassesRow] = []
    for variant, folders in runs.items():
        features = {
            source: features_on(test, load_saved_model(run, allow_code=EXAMPLES).classifier) for source, run in folders.items()
        }
        rows += pairs_of(features, test.targets, variant=variant, seed=seed)
    return rows


def pairs_of(features: Mapping[str, Features], classes: np.ndarray, *, variant: str, seed: int) -> list[ClassesRow]:
    """Of every two of these features."""
    parts = {name: _within(each.astype(np.float64), classes) for name, each in features.items()}
    rows: list[ClassesRow] = []
    for first, second in combinations(features, 2):
        numbers = {
            "share": parts[first][1],
            "other_share": parts[second][1],
            "cka": both_linear_cka(features[first], features[second]).debiased,
            "cka_within": both_linear_cka(parts[first][0], parts[second][0]).debiased,
        }
        rounded = {name: round(float(value), 5) for name, value in numbers.items()}
        rows.append(ClassesRow(variant=variant, seed=seed, first=first, second=second, **rounded))
    return rows


def _within(features: Features, classes: np.ndarray) -> tuple[Features, float]:
    """Features less the mean of their class, and the share of the variance that this took away."""
    means = {each: features[classes == each].mean(axis=0) for each in np.unique(classes)}
    within = features - np.stack([means[each] for each in classes])
    total = ((features - features.mean(axis=0)) ** 2).sum()
    return within, 1 - float((within**2).sum() / total)


def all_there(rows: Sequence[ClassesRow], seed: int, sources: Sequence[str]) -> bool:
    """Whether a seed is done."""
    wanted = {(variant, *pair) for variant in ("before", "full") for pair in combinations(sources, 2)}
    return wanted <= {(row.variant, row.first, row.second) for row in rows if row.seed == seed}
