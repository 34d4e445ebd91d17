"""The simplest score that says something: how far the class means lie apart."""

import numpy as np

from crossgraft.scores import score
from crossgraft.types import ClassIndices, Features


@score(title="Class spread", reference="Example of a third-party score; no paper")
def class_spread(features: Features, labels: ClassIndices) -> float:
    """Share of the variance of the features that lies between the class means, in [0, 1]."""
    centred = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    total = float((centred**2).sum())
    means = [centred[labels == label] for label in np.unique(labels)]
    between = sum(len(rows) * float((rows.mean(axis=0) ** 2).sum()) for rows in means)
    return between / total if total > 0 else 0.0
