"""Small problems shared by the tests of the scores."""

from __future__ import annotations

import numpy as np
import pytest


def make_problem(num_samples=90, num_features=12, num_classes=3, *, separation=0.8, seed=0, offset=3.0):
    """Overlapping Gaussian classes away from the origin, with a decaying spectrum; float64."""
    rng = np.random.default_rng(seed)
    labels = np.arange(num_samples) % num_classes
    centres = separation * rng.standard_normal((num_classes, num_features))
    features = (centres[labels] + rng.standard_normal((num_samples, num_features))) / np.sqrt(1 + np.arange(num_features))
    return features + offset, labels


@pytest.fixture(params=[(90, 12), (40, 70)], ids=["n>d", "n<d"])
def problem(request):
    return make_problem(*request.param)
