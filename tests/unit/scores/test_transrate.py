from __future__ import annotations

import numpy as np
import pytest

from crossgraft.errors import UsageError
from crossgraft.scores import transrate


def literal(features, labels, epsilon=1e-4):
    def rate(rows):
        gram = rows.T @ rows
        return 0.5 * np.linalg.slogdet(np.eye(len(gram)) + gram / (len(rows) * epsilon))[1]

    centred = features - features.mean(axis=0)
    return rate(centred) - np.mean([rate(centred[labels == label]) for label in np.unique(labels)])


def test_equals_the_definition(problem):
    features, labels = problem
    assert transrate(features=features, labels=labels) == pytest.approx(literal(features, labels), rel=1e-10)


def test_every_class_weighs_the_same(problem):
    features, _ = problem
    labels = (np.arange(len(features)) >= 5).astype(int)  # 5 images against all others
    value = transrate(features=features, labels=labels, epsilon=0.01)
    assert value == pytest.approx(literal(features, labels, epsilon=0.01), rel=1e-10)


def test_epsilon_must_be_positive(problem):
    features, labels = problem
    with pytest.raises(UsageError, match="`epsilon` must be positive"):
        transrate(features=features, labels=labels, epsilon=0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(60, 20), (30, 80)])
def test_empty_directions_of_large_features_count_nothing(shape, dtype):
    rng = np.random.default_rng(0)
    features = rng.integers(-9, 10, (shape[0], 5)) @ rng.integers(-9, 10, (5, shape[1])).astype(float)
    labels = np.arange(shape[0]) % 3
    value = transrate(features=(64 * features).astype(dtype), labels=labels)

    def rate(rows):
        return np.log1p(np.linalg.svd(rows, compute_uv=False) ** 2 / (len(rows) * 1e-4)).sum() / 2

    centred = 64 * (features - features.mean(axis=0))
    expected = rate(centred) - np.mean([rate(centred[labels == label]) for label in range(3)])
    assert value == pytest.approx(expected, rel=1e-6)


def test_a_direction_that_all_images_of_a_class_share_is_not_lost_in_float32():
    """The images of each class add up to nothing: one eigenvalue is rounding, and only the last pivot shows some of it."""
    rng = np.random.default_rng(0)
    rows = 59 * rng.standard_normal((2, 300, 400))
    single = (rows - rows.mean(axis=1, keepdims=True)).reshape(600, 400).astype(np.float32)
    labels = np.repeat([0, 1], 300)
    double = transrate(features=single.astype(np.float64), labels=labels)
    assert transrate(features=single, labels=labels) == pytest.approx(double, abs=0.01)
