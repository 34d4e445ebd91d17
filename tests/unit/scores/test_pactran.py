from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from crossgraft.errors import UsageError
from crossgraft.scores import pactran

from .conftest import make_problem


def literal(features, labels, beta=10.0, s=100.0):
    """The bound with scikit-learn's head, and the trace of the full Hessian."""
    num_samples, width = features.shape
    centred = features - features.mean(axis=0)
    model = LogisticRegression(C=beta, tol=1e-10, max_iter=20_000).fit(centred, labels)
    weight, bias = model.coef_.T, model.intercept_
    if weight.shape[1] == 1:  # two classes: one logit is the difference of two of half the size
        raise NotImplementedError
    logits = centred @ weight + bias
    cross_entropy = -log_softmax(logits, axis=1)[np.arange(num_samples), labels].mean()
    trace = 0.0
    for row, p in zip(centred, softmax(logits, axis=1), strict=True):
        trace += np.trace(np.kron(np.diag(p) - np.outer(p, p), np.outer(row, row))) / num_samples
    precision = beta * num_samples  # λ σ₀²
    lam = precision / (s / width)
    size = width * (labels.max() + 1)
    prior = np.sum(weight**2) / (2 * precision)
    return cross_entropy, prior, size / (2 * lam) * np.log(1 + precision * trace / size)


def test_is_the_bound(problem):
    features, labels = problem
    value = pactran(features=features, labels=labels)
    cross_entropy, prior, flatness = literal(features, labels)
    assert value == pytest.approx(-(cross_entropy + prior + flatness), rel=1e-5)
    assert value.parts["flatness"] == pytest.approx(flatness, rel=1e-4)
    assert value == pytest.approx(-sum(value.parts.values()))


def test_settings_reach_the_bound():
    features, labels = make_problem()
    value = pactran(features=features, labels=labels, regularization=0.5, prior_variance=10.0)
    assert value == pytest.approx(-sum(literal(features, labels, 0.5, 10.0)), rel=1e-5)


def test_third_term_bounds_laplaces_determinant():
    """log det(I + M) ≤ k log(1 + tr M / k) for the Hessian at any point."""
    rng = np.random.default_rng(0)
    rows, p = rng.standard_normal((9, 3)), softmax(rng.standard_normal((9, 4)), axis=1)
    hessian = sum(np.kron(np.diag(q) - np.outer(q, q), np.outer(row, row)) for q, row in zip(p, rows, strict=True))
    assert np.linalg.slogdet(np.eye(12) + hessian)[1] <= 12 * np.log(1 + np.trace(hessian) / 12)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99))
def test_never_beats_the_entropy_of_nothing_and_is_negative(seed):
    features, labels = make_problem(40, 4, seed=seed)
    value = pactran(features=features, labels=labels)
    assert value < 0
    assert value.parts["cross_entropy"] + value.parts["prior"] <= np.log(3) + 1e-9


def test_head_that_does_not_settle_is_said(monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["crossgraft.scores.pactran"], "_MAX_ITERATIONS", 1)
    assert "did not converge in 1 steps" in pactran(*make_problem()).warnings[0]


@pytest.mark.parametrize("option", ["regularization", "prior_variance"])
def test_settings_out_of_range(option):
    with pytest.raises(UsageError, match=option):
        pactran(*make_problem(), **{option: 0.0})


def released_by_etran(features, labels, beta, s):
    """What ETran's repository calls PACTran, with the head fitted to its end; the sign is that of the bound."""
    features = features - features.mean(axis=0)
    num_samples, width = features.shape
    num_classes = int(labels.max()) + 1
    own = np.eye(num_classes)[labels]
    strength = beta * num_samples

    def objective(flat):
        weight, bias = np.split(flat.reshape(width + 1, num_classes), [width])
        log_posterior = log_softmax(features @ weight + bias, axis=1)
        slope = (np.exp(log_posterior) - own) / num_samples
        gradient = np.vstack([features.T @ slope + weight / strength, slope.sum(axis=0, keepdims=True)])
        return np.square(weight).sum() / (2 * strength) - (own * log_posterior).sum() / num_samples, gradient.ravel()

    start = np.zeros((width + 1) * num_classes)
    fit = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "maxfun": 9000})
    weight, bias = np.split(fit.x.reshape(width + 1, num_classes), [width])
    posterior = softmax(features @ weight + bias, axis=1)
    variances = posterior * (1 - posterior)
    curvature = np.sum(np.square(features).T @ variances + 1 / strength) + variances.sum()  # a sum over images, no mean
    size = num_classes * width
    return fit.fun + size * (s / width) / (2 * strength) * np.log(curvature * strength / size)


@pytest.mark.parametrize(("name", "bound", "released"), [("P1", 0.8826, 4.4030), ("P3", 0.3711, 2.4078)])
def test_etrans_release_is_not_the_bound(name, bound, released):
    """Its third term has the sum of the curvature over the images where the bound has its mean."""
    with np.load(Path(__file__).parents[2] / "golden" / "transferability.npz") as arrays:
        features, labels = arrays[f"{name}/features"].astype(np.float64), arrays[f"{name}/labels"].astype(int)
    value = pactran(features=features, labels=labels, regularization=1.0, prior_variance=100.0)
    assert -value == pytest.approx(bound, abs=1e-3)
    assert released_by_etran(features, labels, 1.0, 100.0) == pytest.approx(released, abs=1e-3)
