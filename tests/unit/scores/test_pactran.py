from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
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
