from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from crossgraft.scores import etran, sfda

from .conftest import make_problem


def test_the_true_discriminant_is_the_first_stage_of_sfda(problem):
    features, labels = problem
    parts = etran.parts(features=features, labels=labels)
    assert parts["discriminant"] == pytest.approx(sfda(features=features, labels=labels).parts["first_stage"])


def test_the_released_discriminant_is_the_nearest_class_mean(problem):
    features, labels = problem
    means = np.array([features[labels == label].mean(axis=0) for label in np.unique(labels)])
    prior = np.bincount(labels) / len(labels)
    posterior = softmax(features @ means.T - 0.5 * np.sum(means**2, axis=1) + np.log(prior), axis=1)
    parts = etran.parts(features=features, labels=labels, lda="released")
    assert parts["discriminant"] == pytest.approx(posterior[np.arange(len(labels)), labels].mean())


def test_parts_are_scaled_over_the_zoo_before_they_are_mixed():
    parts = [{"energy": 1.0, "discriminant": 0.2}, {"energy": 3.0, "discriminant": 0.6}, {"energy": 2.0, "discriminant": 1.0}]
    assert etran.combine(parts) == pytest.approx([0.0, 0.15 + 0.85 * 0.5, 0.15 * 0.5 + 0.85])


def test_a_zoo_of_one_and_equal_parts_count_as_zero():
    features, labels = make_problem()
    assert etran(features=features, labels=labels) == 0
    assert etran.combine([{"energy": 1.0, "discriminant": 0.5}] * 3) == [0, 0, 0]
