from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis

from crossgraft.errors import UsageError
from crossgraft.scores import nca_score
from crossgraft.scores.nca_score import _Objective

from .conftest import make_problem

module = sys.modules["crossgraft.scores.nca_score"]  # the package exports the score under the name of its module


def field_score(features, labels):
    """As the published code does it, with scikit-learn's own parts."""
    nca = NeighborhoodComponentsAnalysis(min(50, features.shape[1]), random_state=42, max_iter=50, tol=1e-5)
    embedded = nca.fit_transform(features, labels)
    posterior = KNeighborsClassifier(5).fit(embedded, labels).predict_proba(embedded)
    return posterior[np.arange(len(labels)), labels].mean()


@pytest.mark.parametrize("shape", [(150, 60, 3), (150, 12, 3), (100, 80, 4), (220, 70, 55)])
def test_equals_scikit_learns_nca(shape):
    features, labels = make_problem(*shape, separation=0.4)
    assert nca_score(features=features, labels=labels) == pytest.approx(field_score(features, labels), abs=0.01)


def literal_objective(flat, rows, targets, shape):
    embedded = rows @ flat.reshape(shape).T
    total = 0.0
    for i in range(len(rows)):
        close = np.exp(-np.square(embedded[i] - embedded).sum(axis=1))
        close[i] = 0
        total += close[targets == targets[i]].sum() / close.sum()
    return -total


def test_objective_and_gradient_are_the_definition():
    features, labels = make_problem(30, 5)
    order = np.argsort(labels, kind="stable")
    rows, targets = features[order], labels[order]
    start = np.random.default_rng(0).standard_normal((3, 5)).ravel()
    value, gradient = _Objective(rows.astype(np.float32), np.array([0, 10, 20, 30]), (3, 5))(start)
    assert value == pytest.approx(literal_objective(start, rows, targets, (3, 5)), rel=1e-5)
    expected = approx_fprime(start, literal_objective, 1e-6, rows, targets, (3, 5))
    np.testing.assert_allclose(gradient, expected, rtol=2e-3, atol=2e-3)


def test_own_neighbour_is_a_gift_that_loo_takes_back():
    features, labels = make_problem(100, 5, 4, separation=0.0)
    with_itself = nca_score(features=features, labels=labels)
    without = nca_score(features=features, labels=labels, loo=True)
    assert with_itself > without


def test_neighbours_by_hand():
    embedded = np.array([[0.0], [1.0], [3.0], [3.5]], dtype=np.float32)
    labels = np.array([0, 1, 1, 1])
    shares = module._share_of_neighbours(embedded, labels, 2, loo=False)
    np.testing.assert_allclose(shares, [0.5, 0.5, 1.0, 1.0])
    np.testing.assert_allclose(module._share_of_neighbours(embedded, labels, 1, loo=True), [0, 0, 1, 1])


def test_large_sets_are_represented_in_proportion_and_said_so():
    features, labels = make_problem(300, 5, 3)
    labels = np.where(np.arange(300) < 2, 3, labels)
    value = nca_score(features=features, labels=labels, max_images=60)
    assert value.parts["images"] == 60
    assert "60 of 300 images" in value.warnings[0]
    chosen = module.in_proportion(labels, 60, np.random.default_rng(0))
    np.testing.assert_allclose(np.bincount(labels[chosen]), [20, 20, 20, 1], atol=1)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 5), min_size=10, max_size=60), st.integers(6, 10), st.integers(0, 99))
def test_a_choice_keeps_every_class(labels, wanted, seed):
    targets = np.unique(labels, return_inverse=True)[1]
    chosen = module.in_proportion(targets, wanted, np.random.default_rng(seed))
    assert len(set(chosen)) == wanted
    assert set(targets[chosen]) == set(targets)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 99))
def test_rotations_change_little(seed):
    features, labels = make_problem(60, 8, seed=seed)
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))[0]
    turned = nca_score(features=features @ rotation, labels=labels)
    assert turned == pytest.approx(nca_score(features=features, labels=labels), abs=0.05)


def test_constant_features_give_the_chance_value_without_the_image_itself():
    value = nca_score(features=np.full((10, 4), 0.1), labels=[0] * 8 + [1] * 2, loo=True)
    assert value == pytest.approx((8 * 7 + 2 * 1) / 10 / 9)
    assert "constant" in value.warnings[0]


@pytest.mark.parametrize("options", [{"k": 0}, {"max_images": 1}])
def test_settings_out_of_range(options):
    with pytest.raises(UsageError, match=next(iter(options))):
        nca_score(*make_problem(), **options)
