from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.decomposition import PCA

from crossgraft.errors import UsageError
from crossgraft.scores import gbc

from .conftest import make_problem


def literal(features, labels, *, spherical, copies=1):
    """Every ordered pair of classes, one after the other."""
    names = np.unique(labels)
    means = [features[labels == name].mean(axis=0) for name in names]
    variances = [np.maximum(features[labels == name].var(axis=0), 1e-4) for name in names]
    if spherical:
        variances = [np.array([variance.mean()]) for variance in variances]
    total = 0.0
    for i in range(len(names)):
        for j in range(len(names)):
            if i != j:
                pooled = (variances[i] + variances[j]) / 2
                logs = np.log(pooled) - 0.5 * np.log(variances[i]) - 0.5 * np.log(variances[j])
                distance = np.sum((means[i] - means[j]) ** 2 / pooled) / 8 + 0.5 * copies * np.sum(logs)
                total += math.exp(-distance)
    return -total


@pytest.mark.parametrize("covariance", ["spherical", "diagonal"])
def test_equals_the_definition_on_the_features_themselves(problem, covariance):
    features, labels = problem
    value = gbc(features=features, labels=labels, covariance=covariance, n_dims=None)
    expected = literal(features, labels, spherical=covariance == "spherical")
    assert value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("covariance", ["spherical", "diagonal"])
def test_equals_the_definition_on_principal_components(problem, covariance):
    features, labels = problem
    points = PCA(5, svd_solver="full").fit_transform(features)
    value = gbc(features=features, labels=labels, covariance=covariance, n_dims=5)
    assert value == pytest.approx(literal(points, labels, spherical=covariance == "spherical"), rel=1e-10)


def test_strict_counts_the_logarithms_of_every_feature(problem):
    features, labels = problem
    value = gbc(features=features, labels=labels, n_dims=None, strict=True)
    expected = literal(features, labels, spherical=True, copies=features.shape[1])
    assert value == pytest.approx(expected, rel=1e-10)
    assert value != pytest.approx(gbc(features=features, labels=labels, n_dims=None), rel=1e-6)


def test_the_logarithm_of_the_sum_does_not_underflow():
    features, labels = make_problem(separation=300.0)
    plain = gbc(features=features, labels=labels, n_dims=None)
    logarithm = gbc(features=features, labels=labels, n_dims=None, log_sum=True)
    assert plain == 0 and "underflows" in plain.warnings[0]
    assert logarithm > 700 and not logarithm.warnings


def test_both_forms_order_models_alike():
    near, labels = make_problem(separation=0.3)
    far, _ = make_problem(separation=1.5)
    for log_sum in (False, True):
        assert gbc(features=far, labels=labels, log_sum=log_sum) > gbc(features=near, labels=labels, log_sum=log_sum)


def test_no_dimension_is_refused(problem):
    features, labels = problem
    with pytest.raises(UsageError, match="`n_dims`"):
        gbc(features=features, labels=labels, n_dims=0)
