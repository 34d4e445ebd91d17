from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.special import softmax

from crossgraft.scores import sfda

from .conftest import make_problem


def within_and_between(features, labels):
    mean = features.mean(axis=0)
    within = np.zeros((features.shape[1],) * 2)
    between = np.zeros_like(within)
    for label in np.unique(labels):
        rows = features[labels == label]
        within += len(rows) / len(features) * np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
        between += len(rows) / len(features) * np.outer(rows.mean(axis=0) - mean, rows.mean(axis=0) - mean)
    return within, between


def discriminant(features, labels, shrinkage):
    """Posterior by the generalised eigenproblem that the paper states, all eigenvectors used."""
    within, between = within_and_between(features, labels)
    size = len(within)
    regular = (1 - shrinkage) * within + shrinkage * np.trace(within) / size * np.eye(size)
    _, vectors = eigh(between, regular)
    means = np.array([features[labels == label].mean(axis=0) for label in np.unique(labels)])
    prior = np.bincount(labels) / len(labels)
    projected = means @ vectors
    return softmax(features @ vectors @ projected.T - 0.5 * np.sum(projected**2, axis=1) + np.log(prior), axis=1)


def literal(features, labels):
    within, _ = within_and_between(features, labels)
    x = within.sum(axis=1)
    for _ in range(3):
        y = within @ x
        y /= np.linalg.norm(y)
        x = within @ y
        x /= np.linalg.norm(x)
    shrinkage = max(np.exp(-5 * (x @ within @ y)), 1e-10)
    posterior = discriminant(features, labels, shrinkage)
    confidence = softmax(posterior, axis=1)[np.arange(len(labels)), labels]
    means = np.array([features[labels == label].mean(axis=0) for label in np.unique(labels)])
    others = np.array([np.delete(means, label, axis=0).mean(axis=0) for label in labels])
    challenged = confidence[:, None] * features + (1 - confidence)[:, None] * others
    return discriminant(challenged, labels, shrinkage)[np.arange(len(labels)), labels].mean(), shrinkage


@pytest.mark.parametrize("scale", [0.1, 1.0])
def test_equals_the_generalised_eigenproblem(problem, scale):
    features, labels = problem
    value = sfda(features=scale * features, labels=labels)
    expected, shrinkage = literal(scale * features, labels)
    assert value.parts["shrinkage"] == pytest.approx(shrinkage, rel=1e-9)
    assert value == pytest.approx(expected, rel=1e-9)
    assert value.parts["miss"] == pytest.approx(1 - expected, abs=1e-12)


def test_unequal_classes(problem):
    features, _ = problem
    labels = (np.arange(len(features)) >= 7).astype(int)
    assert sfda(features=features, labels=labels) == pytest.approx(literal(features, labels)[0], rel=1e-9)


def test_a_saturated_score_says_so_and_keeps_the_difference():
    features, labels = make_problem(separation=8.0)
    value = sfda(features=features, labels=labels)
    assert value == 1.0 and 0 < value.parts["miss"] < 1e-9
    assert "saturated" in value.warnings[0]


def test_a_floor_of_shrinkage_with_fewer_images_than_features_has_a_value():
    features, labels = make_problem(20, 60)
    value = sfda(features=100 * features, labels=labels)
    assert value.parts["shrinkage"] == 1e-10 and np.isfinite(value)


def test_constant_features_leave_the_class_shares():
    """All means are one, so P'_c = p_c whatever A⁻¹, and the mean of p_y over the images is Σ_c p_c · p_c.

    The largest share, which one may expect, would be the accuracy of the discriminant, not its mean posterior.
    """
    labels = np.array([0] * 30 + [1] * 10)
    value = sfda(features=np.full((40, 3), 2.0), labels=labels)
    assert value == pytest.approx(0.75**2 + 0.25**2)


def test_classes_that_are_almost_points_are_not_judged_by_rounding():
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    centres = rng.standard_normal((3, 5))
    for spread in (1e-6, 0.0):
        features = centres[labels] + spread * rng.standard_normal((60, 5))
        value = sfda(features=features, labels=labels)
        assert np.isfinite(value) and value > 0.5
