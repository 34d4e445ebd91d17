"""Losses and gradients of the heads against slow, literal versions of their equations."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression, RidgeClassifier

from crossgraft.errors import CrossgraftWarning
from crossgraft.fewshot import CopaHead, LogisticHead, NccHead, RidgeHead, UrlHead, gap
from crossgraft.fewshot.heads import copa, url
from crossgraft.fewshot.heads._head import Members

SIZES = st.lists(st.integers(1, 5), min_size=2, max_size=5)
SEEDS = st.integers(0, 10**6)


def task(sizes, seed, width=7):
    """Support set of classes with so many images, in a drawn order."""
    random = np.random.default_rng(seed)
    y = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = random.standard_normal((len(sizes), width))[y] + random.standard_normal((len(y), width))
    return X, y


def tensors(sizes, seed):
    X, y = task(sizes, seed)
    support, classes = torch.from_numpy(X), torch.from_numpy(y)
    random = torch.Generator().manual_seed(seed)
    weights = [torch.randn(7, 7, generator=random, dtype=torch.float64).requires_grad_() for _ in range(2)]
    return support, classes, weights


def literal_copa(w_i, w_p, support, classes, scale):
    """N × N pairs, as in equation 3: each image against the expanded prototype of each image."""
    prototypes = torch.stack([support[classes == c].mean(dim=0) for c in classes.unique()])
    z_i = torch.nn.functional.normalize(support @ w_i.T)
    z_p = torch.nn.functional.normalize(prototypes @ w_p.T)[classes]
    pairs, pseudo = scale * z_i @ z_p.T, torch.arange(len(support))
    cross_entropy = torch.nn.functional.cross_entropy
    return 0.5 * (cross_entropy(pairs, pseudo) + cross_entropy(pairs.T, pseudo))


def literal_url(w, support, classes):
    transformed = support @ w.T
    prototypes = torch.stack([transformed[classes == c].mean(dim=0) for c in classes.unique()])
    cosines = torch.nn.functional.cosine_similarity(transformed[:, None], prototypes[None], dim=2)
    return torch.nn.functional.cross_entropy(10 * cosines, classes)


@given(SIZES, SEEDS, st.floats(0.5, 10))
def test_the_loss_of_copa_over_classes_is_that_over_pairs_with_its_gradients(sizes, seed, scale):
    support, classes, (w_i, w_p) = tensors(sizes, seed)
    expected = literal_copa(w_i, w_p, support, classes, scale)
    expected.backward()
    members = Members.of(classes, len(sizes), support)
    found = copa.loss_and_gradients(w_i.detach(), w_p.detach(), support, members.means(support), members, scale)
    assert found.loss == pytest.approx(expected.item(), rel=1e-12)
    torch.testing.assert_close(found.to_instance_weights, w_i.grad, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found.to_prototype_weights, w_p.grad, rtol=1e-9, atol=1e-12)


@given(SIZES, SEEDS)
def test_the_loss_of_url_and_its_gradient_through_the_prototypes(sizes, seed):
    support, classes, (w, _) = tensors(sizes, seed)
    expected = literal_url(w, support, classes)
    expected.backward()
    loss, gradient = url.loss_and_gradient(w.detach(), support, Members.of(classes, len(sizes), support))
    assert loss == pytest.approx(expected.item(), rel=1e-12, abs=1e-12)
    torch.testing.assert_close(gradient, w.grad, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weight_decay", [0.1, 0.0])
def test_copa_is_adam_on_its_loss(weight_decay):
    X, y = task([4, 2, 3], 0)
    support, classes = torch.from_numpy(X), torch.from_numpy(y)
    heads = [torch.eye(7, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.Adam(heads, lr=1e-3, weight_decay=weight_decay)
    for _ in range(12):
        optimizer.zero_grad()
        literal_copa(*heads, support, classes, math.exp(2)).backward()
        optimizer.step()
    head = CopaHead(steps=12, weight_decay=weight_decay).fit(X, y)
    np.testing.assert_allclose(head.instance_weights_, heads[0].detach(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(head.prototype_weights_, heads[1].detach(), rtol=1e-9, atol=1e-12)


def test_copa_with_one_image_per_class_warns_and_keeps_both_heads_equal():
    X, y = task([1, 1, 1], 0)
    with pytest.warns(CrossgraftWarning, match="one image per class"):
        head = CopaHead().fit(X, y)
    np.testing.assert_allclose(head.instance_weights_, head.prototype_weights_, rtol=0, atol=1e-15)
    assert head.gap_.after.by_instance == pytest.approx(0, abs=1e-12)
    drawn = CopaHead(init="random").fit(X, y)
    assert np.abs(drawn.instance_weights_ - drawn.prototype_weights_).max() > 0.1


def test_drawn_heads_depend_on_the_seed_alone():
    X, y = task([3, 3], 0)
    first, again, other = (CopaHead(init="random", seed=seed).fit(X, y).instance_weights_ for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_no_step_of_training_is_ncc():
    X, y = task([3, 4], 1)
    query = task([5, 5], 2)[0]
    expected = NccHead().fit(X, y).predict_proba(query)
    for head in (UrlHead(steps=0), CopaHead(steps=0)):
        np.testing.assert_allclose(head.fit(X, y).predict_proba(query), expected, rtol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_distances_of_ncc(offset):
    X, y = task([3, 4, 2], 3)
    X, query = X + offset, task([4, 4], 4)[0] + offset
    centres = np.stack([X[y == c].mean(axis=0) for c in range(3)])
    distances = ((query[:, None] - centres) ** 2).sum(axis=2)
    expected = np.exp(distances.min(axis=1, keepdims=True) - distances)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(NccHead(distance="l2").fit(X, y).predict_proba(query), expected, rtol=1e-6, atol=1e-12)
    linear = query @ centres.T
    assert NccHead(distance="lin").fit(X, y).predict(query).tolist() == linear.argmax(axis=1).tolist()


@pytest.mark.parametrize("sizes", [[6, 5], [3, 4, 5]])
def test_logistic_regression_is_that_of_scikit_learn_on_unit_length(sizes):
    X, y = task(sizes, 5)
    query = task([4, 4], 6)[0]
    reference = LogisticRegression(C=10, max_iter=1000).fit(X / np.linalg.norm(X, axis=1, keepdims=True), y)
    expected = reference.predict_proba(query / np.linalg.norm(query, axis=1, keepdims=True))
    np.testing.assert_allclose(LogisticHead().fit(X, y).predict_proba(query), expected, rtol=1e-9)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [9, 8, 7]], ids=["fewer images than features", "more"])
def test_ridge_regression_is_that_of_scikit_learn_on_unit_length(sizes):
    X, y = task(sizes, 7)
    query = task([4, 4], 8)[0]
    reference = RidgeClassifier(alpha=1.0).fit(X / np.linalg.norm(X, axis=1, keepdims=True), y)
    head = RidgeHead().fit(X, y)
    np.testing.assert_allclose(head.weights_, reference.coef_, rtol=1e-9, atol=1e-12)
    expected = reference.predict(query / np.linalg.norm(query, axis=1, keepdims=True))
    np.testing.assert_array_equal(head.predict(query), expected)


@given(SIZES, SEEDS)
def test_the_gap_by_hand(sizes, seed):
    X, y = task(sizes, seed)
    centres = np.stack([X[y == c].mean(axis=0) for c in range(len(sizes))])
    images, units = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, centres))
    by_instance = np.linalg.norm(images.mean(axis=0) - units[y].mean(axis=0))
    by_class = np.linalg.norm(images.mean(axis=0) - units.mean(axis=0))
    assert gap(X, centres, y) == pytest.approx(by_instance, abs=1e-12)
    assert gap(X, centres, y, weighting="class") == pytest.approx(by_class, abs=1e-12)
    if len(set(sizes)) == 1:
        assert by_instance == pytest.approx(by_class, abs=1e-12)


def test_the_gap_of_arrays_and_tables_of_any_kind():
    X = np.random.default_rng(0).integers(-9, 9, (12, 5))
    centres, y = X[:3] + 1, np.repeat([0, 1, 2], 4)
    expected = gap(X.astype(float), centres.astype(float), y)
    assert expected > 0.01
    for kind in (np.float16, np.float32, np.int64):
        assert gap(X.astype(kind), centres.astype(kind), y.astype(np.uint8)) == expected
    assert gap(X[::-1], centres, y[::-1]) == pytest.approx(expected)
    assert gap(pd.DataFrame(X), pd.DataFrame(centres), pd.Series(y)) == expected
