from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

from crossgraft.errors import UsageError
from crossgraft.scores import Statistics, lead
from crossgraft.scores._statistics import FeatureStatistics

from .conftest import make_problem

module = sys.modules["crossgraft.scores.lead"]  # the package exports the score under the name of its module


def test_squared_gradients_are_those_of_torch(monkeypatch):
    monkeypatch.setattr(module, "_HIDDEN", (7, 9))
    head = module._RandomHead(5, 3, np.random.default_rng(0))
    weights = [torch.tensor(weight, requires_grad=True) for weight in head._weights]
    rows = np.random.default_rng(1).standard_normal((4, 5)).astype(np.float32)
    expected = []
    for row in torch.tensor(rows):
        logits = torch.relu(torch.relu(row @ weights[0]) @ weights[1]) @ weights[2]
        expected.append(sum(float(g.square().sum()) for g in torch.autograd.grad(logits.sum(), weights)))
    np.testing.assert_allclose(head.squared_gradients(rows), expected, rtol=1e-4)


def test_ridge_is_scikit_learns():
    features, labels = make_problem(50, 6)
    centred = features - features.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    statistics = Statistics(FeatureStatistics(features), labels)
    signs = np.where(labels[:, None] == np.arange(3), 1.0, -1.0)
    expected = Ridge(alpha=1.0).fit(centred, signs).predict(centred)
    np.testing.assert_allclose(module._ridge_scores(centred @ axes.T, statistics), expected, rtol=1e-8, atol=1e-10)


def test_svm_is_scikit_learns_up_to_the_free_bias():
    features, labels = make_problem(80, 6)
    centred = features - features.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    points = centred @ axes.T
    signs = np.where(labels == 1, 1.0, -1.0)
    theirs = LinearSVC(C=1.0, intercept_scaling=1000.0, tol=1e-8, max_iter=200_000, dual=False).fit(points, signs)
    ours = module._svm(points, signs[:, None], points)[:, 0]
    np.testing.assert_allclose(ours, theirs.decision_function(points), atol=5e-3)


def test_value_is_the_solution_of_the_equation_at_time_t(monkeypatch):
    features, labels = make_problem()
    speeds = np.array([0.5, 1.0, 1.5])
    monkeypatch.setattr(module, "_speeds", lambda *arguments: speeds)
    start = np.exp(lead(features=features, labels=labels, time=1e-9).parts["start"])
    early, late = (lead(features=features, labels=labels, time=time) for time in (1e-9, 50.0))
    assert early == pytest.approx(np.log(start), abs=1e-6)
    assert late == pytest.approx(0, abs=1e-9)
    assert early < lead(features=features, labels=labels) < late


@pytest.mark.parametrize("initial", ["ridge", "svm"])
def test_prefers_separable_classes(initial):
    near, far = (make_problem(120, 8, separation=separation) for separation in (0.1, 4.0))
    assert lead(*far, initial=initial) > lead(*near, initial=initial)


def test_a_class_too_small_to_calibrate_keeps_its_margin():
    features, labels = make_problem(60, 5)
    labels = np.where(np.arange(60) == 0, 3, labels)
    assert np.isfinite(lead(features=features, labels=labels, initial="svm"))


def test_platts_sigmoid_is_fitted():
    rng = np.random.default_rng(0)
    margins = rng.standard_normal((4000, 1))
    signs = np.where(rng.random((4000, 1)) < 1 / (1 + np.exp(-(2 * margins - 1))), 1.0, -1.0)
    slope, offset = module._platt(margins, signs)
    assert slope[0] == pytest.approx(2, abs=0.2)
    assert offset[0] == pytest.approx(-1, abs=0.2)


@pytest.mark.parametrize("option", ["rate", "time"])
def test_settings_out_of_range(option):
    with pytest.raises(UsageError, match=option):
        lead(*make_problem(), **{option: 0.0})
